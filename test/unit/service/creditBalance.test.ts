import { findBalance } from '../../../nodes/MediaGeneration/service/creditBalance';
import { numberAt } from '../../../nodes/MediaGeneration/shared/json';

describe('the balance', () => {
	it.each([
		['a numeric string', { balance: '42' }],
		['a bare number', 42],
		['snake case', { credit_balance: 42 }],
		['camel case', { availableCredits: 42 }],
		['upper case', { CREDITS: 42 }],
		['the telling name among others', { credits: 7, used: 3, balance: 42 }],
		['what remains, beside all credits', { credits: 100, used: 58, remaining: 42 }],
		['a wrapped number', { data: 42 }],
		['an object named after it', { credits: { remaining: 42, total: 100 } }],
		['an envelope with a code', { code: 200, message: 'ok', data: { credits: 42 } }],
		['three levels', { data: { account: { balance: 42 } } }],
		['the shallowest place', { balance: 42, data: { balance: 7 } }],
	])('is found in %s', (_shape, body) => {
		expect(findBalance(body)).toBe(42);
	});

	it.each([0, -3.5])('may be %d', (balance) => {
		expect(findBalance({ balance })).toBe(balance);
	});

	it.each([
		['nothing', undefined],
		['null', null],
		['an empty object', {}],
		['other numbers', { total: 100, used: 58 }],
		['a text', 'plenty'],
		['a text field', { balance: 'plenty' }],
		['a boolean', { balance: true }],
		['two wallets that both name one', { image: { balance: 1 }, video: { balance: 2 } }],
		['a list', [{ balance: 42 }]],
		['four levels', { a: { b: { c: { balance: 42 } } } }],
	])('is null rather than wrong in %s', (_shape, body) => {
		expect(findBalance(body)).toBeNull();
	});
});

describe('the balance at a place that the user named', () => {
	const body = { data: { wallet: { amount: '42', name: 'main' } }, list: [{ credits: 7 }] };

	it('is the number there', () => {
		const paths = ['data.wallet.amount', 'list.0.credits', 'list[0].credits'];
		expect(paths.map((path) => numberAt(body, path))).toEqual([42, 7, 7]);
	});

	const NOT_THERE = ['data.none.amount', 'list.1.credits', 'data.wallet.amount.more', ''];
	const NO_NUMBER = ['data.wallet.name', 'data.wallet', 'list.credits'];
	it.each([...NOT_THERE, ...NO_NUMBER, 'constructor.length', 'list.length'])(
		'%j is null, since no number stands there',
		(path) => {
			expect(numberAt(body, path)).toBeNull();
		},
	);
});
