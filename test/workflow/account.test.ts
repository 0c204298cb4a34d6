import type { ICredentialsHelper, IDataObject } from 'n8n-workflow';

import { additionalData } from './engine';
import { field, imageNode, keepsGoing, prompts, stage, text } from './support';

const on = stage();

/** A credential whose key is the expression {{ $json.key }}. */
function byRow(): { host: { credentialsHelper: ICredentialsHelper }; lookUps: () => number } {
	let lookUps = 0;
	const getDecrypted: ICredentialsHelper['getDecrypted'] = async (...given) => {
		lookUps++;
		const [, , , , , raw, values] = given;
		const row: IDataObject = values?.connectionInputData[values.itemIndex]?.json ?? {};
		return { ...on.credential, apiKey: raw === true ? '={{ $json.key }}' : String(row.key) };
	};
	const { credentialsHelper } = additionalData(on.credential);
	const host = { credentialsHelper: Object.assign(credentialsHelper, { getDecrypted }) };
	return { host, lookUps: () => lookUps };
}

const rows = (...keys: string[]) =>
	keys.map((key, index) => ({ json: { prompt: `Prompt ${index}`, key, taskId: `task-${index}` } }));

const reads = (operation: string) => ({
	parameters: { resource: 'task', operation, taskId: '={{ $json.taskId }}' },
});

it.each([
	['held', imageNode({}, keepsGoing)],
	['that is stored first', imageNode({ suspendAfter: 0 }, keepsGoing)],
	['of Get', { ...keepsGoing, ...reads('get') }],
	['of Wait', { ...keepsGoing, ...reads('wait') }],
])('a run %s whose credential gives its items several keys asks nothing', async (_what, node) => {
	const { host } = byRow();
	const key = on.service.apiKey;
	const { output } = await on.run(node, rows(key, key, 'sk-live-carl'), { host });
	const error = text('The credential gives item 3 another account than item 1');
	expect(field(output, 'error')).toEqual(Array(3).fill(error));
	expect(on.service.requests).toEqual([]);
});

it('the error says what to do', async () => {
	const { host } = byRow();
	const { error, description } = await on.run(imageNode(), rows('sk-live-a', 'sk-live-b'), {
		host,
	});
	expect(error?.message).toContain('a run has one account');
	expect(description).toContain('Loop Over Items with a Batch Size of 1');
});

it('a run whose items have one key by an expression orders with it', async () => {
	const { host } = byRow();
	const { apiKey } = on.service;
	const { output } = await on.run(imageNode(), rows(apiKey, apiKey), { host });
	expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
});

it('a credential without an expression is not looked up for each item', async () => {
	const getDecrypted = jest.fn(async () => ({ ...on.credential }));
	const { credentialsHelper } = additionalData(on.credential);
	Object.assign(credentialsHelper, { getDecrypted });
	const { apiKey } = on.service;
	await on.run(imageNode(), rows(apiKey, apiKey, apiKey), { host: { credentialsHelper } });
	expect(getDecrypted.mock.calls.length).toBeLessThanOrEqual(2);
});

describe('an account that runs dry, or whose key is refused,', () => {
	const NINE = Array.from({ length: 9 }, (_, index) => `Prompt ${index}`);
	const out = { status: 402, after: 1 };
	const revoked = { status: 401, after: 1 };

	it.each([
		['credits, If Some Items Fail: Keep All Items', out, {}],
		['credits, asleep', out, { suspendAfter: 0 }],
		['the key', revoked, {}],
	])(
		'ends the run as an error, and the retry orders exactly the rest (%s)',
		async (_what, createStatus, options) => {
			on.service.configure({ createStatus });
			const run = await on.start(imageNode({ ...options, maxInFlight: 1 }), prompts(...NINE));
			await run.end();
			expect(run.row.status).toBe('error');
			expect(run.ran.description).toContain("'Retry execution' in the list of executions");
			expect(run.ran.description).toContain(on.taskIds[0]);
			expect(on.created).toBe(1);
			on.service.resetSettings();
			const retry = await run.retry();
			await retry.end();
			expect(retry.row.status).toBe('success');
			expect(on.inputs.map(({ prompt }) => prompt)).toEqual(NINE);
			expect(field(retry.ran.output, 'taskId')).toEqual(on.taskIds);
		},
	);

	it('lets all items out where On Error says so', async () => {
		on.service.configure({ createStatus: out });
		const { output } = await on.images(NINE, { maxInFlight: 1 }, keepsGoing);
		expect(field(output, 'state')).toEqual(['SUCCESS', ...Array<undefined>(8).fill(undefined)]);
	});
});
