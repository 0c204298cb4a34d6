import type { IDataObject } from 'n8n-workflow';

import { descriptionOf, stage } from './support';

const on = stage();

const creditsNode = (options: IDataObject = {}, more = {}) => ({
	type: 'mediaGenerationCredits',
	parameters: { operation: 'getBalance', options },
	...more,
});

it('puts out the balance and the record', async () => {
	const { output } = await on.run(creditsNode());
	expect(output).toEqual([
		{
			json: { balance: 100_000, record: { balance: 100_000, reserved: 0 } },
			pairedItem: { item: 0 },
		},
	]);
});

it('reads once for all items, and puts out one for each', async () => {
	const { output } = await on.run(creditsNode(), [{ json: {} }, { json: {} }, { json: {} }]);
	expect(output.map(({ pairedItem }) => pairedItem)).toEqual([0, 1, 2].map((item) => ({ item })));
	expect(on.requests('GET')).toHaveLength(1);
});

describe('the input', () => {
	const rows = () => [
		{ json: { row: 1, record: 'mine' }, binary: { data: { data: 'QQ==', mimeType: 'a/b' } } },
		{ json: { row: 2 } },
	];

	it('goes on beside the balance, with its files', async () => {
		const { output } = await on.run(creditsNode(), rows());
		expect(output.map(({ json }) => [json.row, json.balance, Object.keys(json).at(-1)])).toEqual([
			[1, 100_000, 'record'],
			[2, 100_000, 'record'],
		]);
		expect(output[0]?.json.record).toEqual({ balance: 100_000, reserved: 0 });
		expect(output[0]?.binary).toMatchObject({ data: { data: 'QQ==' } });
	});

	it('goes on beside the reason too, where the node continues', async () => {
		const node = creditsNode({ minimumBalance: 1e9 }, { onError: 'continueRegularOutput' });
		const { output } = await on.run(node, rows());
		expect(output[1]?.json).toMatchObject({
			row: 2,
			balance: 100_000,
			error: expect.stringContaining('below the minimum') as string,
		});
	});

	it('is on the error output once, where there is one', async () => {
		const node = creditsNode({ minimumBalance: 1e9 }, { onError: 'continueErrorOutput' });
		const { errors } = await on.run(node, rows());
		expect(errors.map(({ json }) => [json.row, Object.keys(json.details as object)])).toEqual([
			[1, ['balance', 'record']],
			[2, ['balance', 'record']],
		]);
	});

	it('stays behind where the option is off', async () => {
		const { output } = await on.run(creditsNode({ includeInput: false }), rows());
		expect(output.map(({ json, binary }) => [Object.keys(json), binary])).toEqual(
			Array(2).fill([['balance', 'record'], undefined]),
		);
	});
});

it.each([
	[{ data: { credits: '$balance' } }, {}],
	[{ wallets: [{ amount: '$balance' }] }, { balanceField: 'wallets.0.amount' }],
	['$balance', {}],
])('finds the balance in %j with the options %j', async (creditsShape, options) => {
	on.service.configure({ creditsShape });
	const { output } = await on.run(creditsNode(options));
	expect(output[0]?.json.balance).toBe(100_000);
});

it('puts out null where no field can be told to be the balance', async () => {
	on.service.configure({ creditsShape: { amounts: { a: '$balance' } } });
	const { output } = await on.run(creditsNode());
	expect(output[0]?.json).toEqual({ balance: null, record: { amounts: { a: 100_000 } } });
});

describe('the minimum', () => {
	it.each([0, 100_000])('of %d is met by 100000 credits', async (minimumBalance) => {
		const { error } = await on.run(creditsNode({ minimumBalance }));
		expect(error).toBeUndefined();
	});

	it('that is not met is an error that names both figures', async () => {
		const ran = await on.run(creditsNode({ minimumBalance: 100_001 }));
		expect(ran.error?.message).toBe('The balance is 100000 credits, below the minimum of 100001');
		expect(descriptionOf(ran)).toContain('Buy credits');
	});

	it('that is not met leaves the balance on the item, where the node continues', async () => {
		const { output } = await on.run(
			creditsNode({ minimumBalance: 100_001 }, { onError: 'continueRegularOutput' }),
		);
		expect(output[0]?.json).toMatchObject({
			balance: 100_000,
			error: expect.stringContaining('below the minimum') as string,
		});
	});

	it('that cannot be checked is an error, since nothing may pass unchecked', async () => {
		const ran = await on.run(creditsNode({ minimumBalance: 1, balanceField: 'no.such' }));
		expect(ran.error?.message).toBe("The answer of the service has no number at 'no.such'");
		expect(descriptionOf(ran)).toContain("'Balance Field'");
	});

	it.each([undefined, null, ''])(
		'whose expression gives %j is no minimum of 0',
		async (minimum) => {
			const ran = await on.run(creditsNode({ minimumBalance: '={{ $json.minimum }}' }), [
				{ json: { ...(minimum !== undefined && { minimum }) } },
			]);
			expect(ran.error?.message).toBe("The expression in 'Minimum Balance' gives nothing");
		},
	);

	it('that cannot be read is an error of its own item', async () => {
		const minimumBalance = "={{ $json.minimum ?? $('No such node').item.json.minimum }}";
		const { output, errors } = await on.run(
			creditsNode({ minimumBalance }, { onError: 'continueErrorOutput' }),
			[{ json: { minimum: 1 } }, { json: {} }],
		);
		expect([output.length, errors.length]).toEqual([1, 1]);
	});

	it('is checked for each item', async () => {
		const { output, errors } = await on.run(
			creditsNode({ minimumBalance: '={{ $json.minimum }}' }, { onError: 'continueErrorOutput' }),
			[{ json: { minimum: 1 } }, { json: { minimum: 200_000 } }],
		);
		expect([output.length, errors.length]).toEqual([1, 1]);
	});
});

it.each([401, 500])('HTTP %d is an error with that status', async (status) => {
	on.service.configure({ creditsStatus: status });
	const { error } = await on.run(creditsNode());
	expect(error?.message).toContain(`(HTTP ${status})`);
});
