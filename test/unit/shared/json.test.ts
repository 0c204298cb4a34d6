import { parsedJson } from '../../../nodes/MediaGeneration/shared/json';

describe('a JSON text', () => {
	it('keeps a whole number exact that JavaScript cannot hold', () => {
		const text = '{"id": 1234567890123456789, "list": [-9007199254740993, 9007199254740991, 7]}';
		expect(parsedJson(text)).toEqual({
			id: '1234567890123456789',
			list: ['-9007199254740993', 9007199254740991, 7],
		});
	});

	it.each([
		['{"text": "id: 1234567890123456789 \\" 1234567890123456789"}'],
		['{"share": 0.12345678901234567890, "huge": 1e300, "small": 1234567890123456789.5}'],
		[`{"text": "${'\\\\'.repeat(20)}1234567890123456789"}`],
	])('has its texts and its other numbers as they are: %s', (text) => {
		expect(parsedJson(text)).toEqual(JSON.parse(text));
	});

	it('that is cut off is none', () => {
		expect(parsedJson('{"id": 1234567890123456789, "text": "x')).toBeUndefined();
	});
});
