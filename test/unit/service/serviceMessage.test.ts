import { findServiceMessage } from '../../../nodes/MediaGeneration/service/serviceMessage';

it.each([
	['Not enough credits'],
	[{ error: { message: 'Not enough credits', code: 'x' } }],
	[{ error: { code: 7, detail: 'Not enough credits' } }],
	[{ errors: [{ message: 'Not enough credits' }, { message: 'second' }] }],
	[{ detail: [{ loc: ['body'], message: 'Not enough credits' }] }],
	[{ detail: [{ loc: ['body'], msg: 'Not enough credits' }] }],
	[{ code: 402, msg: 'Not enough credits' }],
	[{ data: { error: { message: 'Not enough credits' } } }],
	[{ status: 402, title: 'Not enough credits' }],
	[{ message: '', error: 'Not enough credits' }],
	[{ message: { text: 1 }, reason: 'Not  enough\n\tcredits' }],
])('finds the message of the service in %j', (body) => {
	expect(findServiceMessage(body)).toBe('Not enough credits');
});

it.each([[undefined], [null], [''], [' \n'], [7], [{}], [[]], [{ code: 'x' }], [{ message: 7 }]])(
	'finds none in %j',
	(body) => {
		expect(findServiceMessage(body)).toBeUndefined();
	},
);

it('cuts a long message at 500 characters', () => {
	expect(findServiceMessage({ message: 'x'.repeat(501) })).toBe('x'.repeat(500));
});

it('looks no deeper than four levels, so that a body cannot send it astray', () => {
	const nested = (depth: number): unknown => (depth === 0 ? 'deep' : { error: nested(depth - 1) });
	expect(findServiceMessage(nested(4))).toBe('deep');
	expect(findServiceMessage(nested(5))).toBeUndefined();
});
