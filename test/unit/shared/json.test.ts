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

	it('has null for what Python writes for numbers that JSON does not have', () => {
		const text = '{"taskId": "a", "loss": NaN, "range": [-Infinity, Infinity], "at": -1.5}';
		const numbers = { loss: null, range: [null, null], at: -1.5 };
		expect(parsedJson(text)).toEqual({ taskId: 'a', ...numbers });
		const kept = '{"prompt": "NaN, \\"Infinity", "id": 1234567890123456789, "loss": NaN}';
		expect(parsedJson(kept)).toEqual({
			prompt: 'NaN, "Infinity',
			id: '1234567890123456789',
			loss: null,
		});
	});

	it.each(['{"a": NaNny}', 'NaN: "x"', '{"a": nan}', '<p>NaN</p>', '{"a": NaN'])(
		'does not come of %s',
		(text) => expect(parsedJson(text)).toBeUndefined(),
	);

	it('that is cut off is none', () => {
		expect(parsedJson('{"id": 1234567890123456789, "text": "x')).toBeUndefined();
	});
});
