import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import type { Settings } from '../service/settings';
import { field, hasErrorOutput, keepsGoing, stage, text } from './support';

const on = stage();

const credits = async (options: IDataObject = {}, items?: INodeExecutionData[], more = {}) => {
	const parameters = { operation: 'getBalance', options };
	return await on.run({ type: 'mediaGenerationCredits', parameters, ...more }, items);
};
const json = (...items: IDataObject[]) => items.map((item) => ({ json: item }));

const RECORD = { balance: 100_000, reserved: 0 };

it('reads once for all items, and puts out the balance and the record for each', async () => {
	const { output } = await credits({}, json({}, {}, {}));
	const result = { balance: 100_000, record: RECORD };
	expect(output).toEqual([0, 1, 2].map((item) => ({ json: result, pairedItem: { item } })));
	expect(on.requests('GET')).toHaveLength(1);
});

describe('the input', () => {
	const file = { data: 'QQ==', mimeType: 'a/b' };
	const rows = () => [
		{ json: { row: 1, record: 'mine' }, binary: { data: { ...file } } },
		{ json: { row: 2 } },
	];

	it('goes on beside the balance, with its files', async () => {
		const { output } = await credits({}, rows());
		expect(output.map(({ json }) => Object.entries(json))).toEqual(
			[1, 2].map((row) => Object.entries({ row, balance: 100_000, record: RECORD })),
		);
		expect(output[0]?.binary).toMatchObject({ data: file });
	});

	it('goes on beside the reason, without an earlier balance, where there is none now', async () => {
		on.service.configure({ creditsStatus: 500 });
		const { output } = await credits({}, json({ row: 1, balance: 7 }), keepsGoing);
		const advice = text('The service may work again later');
		expect(output[0]?.json).toEqual({ row: 1, error: text('(HTTP 500)'), advice });
	});

	it('stays behind where the option is off', async () => {
		const { output } = await credits({ includeInput: false }, rows());
		expect(output.map(({ json, binary }) => [Object.keys(json), binary])).toEqual(
			Array(2).fill([['balance', 'record'], undefined]),
		);
	});
});

it.each<[string, Settings['creditsStatus'], string]>([
	['401', 401, 'refused the API key'],
	['a pause of a minute', { status: 429, retryAfter: 60 }, 'too many'],
	['a web page', { status: 200, body: '<h1>Please sign in</h1>' }, 'not JSON'],
	['503', 503, 'not working'],
])('reads the balance once, and says why after %s', async (_what, creditsStatus, said) => {
	on.service.configure({ creditsStatus });
	const { error } = await credits();
	expect(error?.message).toContain(said);
	expect(on.requests('GET')).toHaveLength(1);
	expect(on.elapsed).toBeLessThan(3_000);
});

it('finds the balance where the user says', async () => {
	on.service.configure({ creditsShape: { wallets: [{ amount: '$balance' }], balance: 1 } });
	const { output } = await credits({ balanceField: 'wallets.0.amount' });
	expect(field(output, 'balance')).toEqual([100_000]);
});

describe('the minimum', () => {
	it('is a field of its own, too', async () => {
		const parameters = { operation: 'getBalance', minimumBalance: 100_001, options: {} };
		const { error } = await on.run({ type: 'mediaGenerationCredits', parameters });
		expect(error?.message).toContain('below the minimum of 100001');
	});

	it.each([0, 100_000])('of %d is met by 100000 credits', async (minimumBalance) => {
		expect((await credits({ minimumBalance })).error).toBeUndefined();
	});

	it('that is not met is an error that names both figures', async () => {
		const ran = await credits({ minimumBalance: 100_001 });
		expect(ran.error?.message).toBe('The balance is 100000 credits, below the minimum of 100001');
		expect(ran.description).toContain('Buy credits');
	});

	it('that cannot be checked is an error, since nothing may pass unchecked', async () => {
		const ran = await credits({ minimumBalance: 1, balanceField: 'no.such' });
		expect(ran.error?.message).toBe("The answer of the service has no number at 'no.such'");
		expect(ran.description).toContain("'Balance Field'");
	});

	it('whose expression gives nothing is no minimum of 0', async () => {
		const { error } = await credits({ minimumBalance: '={{ $json.minimum }}' }, json({}));
		expect(error?.message).toBe("The expression in 'Minimum Balance' gives nothing");
	});

	it.each([
		['={{ $json.minimum }}', { minimum: 200_000 }],
		// It cannot be read.
		["={{ $json.minimum ?? $('No such node').item.json.minimum }}", {}],
	])('%s is checked for each item', async (minimumBalance, second) => {
		const items = json({ minimum: 1 }, second);
		const { output, errors } = await credits({ minimumBalance }, items, hasErrorOutput);
		expect([output.length, errors.length]).toEqual([1, 1]);
	});
});
