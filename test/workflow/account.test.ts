import type { ICredentialsHelper, IDataObject } from 'n8n-workflow';

import { additionalData } from './engine';
import { field, imageNode, keepsGoing, stage, text } from './support';

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
