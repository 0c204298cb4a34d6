import type { ICredentialDataDecryptedObject, IDataObject, INode } from 'n8n-workflow';

import type { StoredCredential } from '../n8n/client';
import { PUBLISHED } from '../service/standIns';
import { type StandInServer, startStandIn } from '../service/standInServer';
import { inARow, itemNodes, manualTrigger, node, to, webhook } from './nodes';
import { errorOf, itemsOf, promptOf, succeeded } from './run';
import { AT_ONCE, openScene } from './scene';

/** What goes to whose account, and what leaves in place of a result that failed. */

const scene = openScene();

/** A node whose credential has the key of each row: {{ $json.key }}. */
async function ofRow(operation: string, parameters: IDataObject = {}): Promise<INode> {
	const { id, name } = await scene.client.createCredential('By row', 'mediaGenerationApi', {
		baseUrl: scene.service.url,
		apiKey: '={{ $json.key }}',
	});
	const order =
		operation === 'generate'
			? { resource: 'image', prompt: '={{ $json.prompt }}', downloadResults: false }
			: { resource: 'task', taskId: '={{ $json.taskId }}' };
	const credentials = { mediaGenerationApi: { id, name } };
	const more = { credentials, onError: 'continueRegularOutput' as const };
	return scene.media({ ...order, operation, ...parameters }, more);
}

const rows = () =>
	itemNodes(
		'Rows',
		[scene.service.apiKey, 'sk-live-bob', scene.service.apiKey].map((key, index) => ({
			...{ prompt: `Row ${index}`, key, taskId: `task-${index}` },
		})),
	);

const keysOf = () => scene.creates.map(({ authorization }) => authorization);

test.each<[string, string, IDataObject]>([
	['held', 'generate', { options: { suspendAfter: 30 } }],
	['asleep', 'generate', { options: AT_ONCE }],
	['Get', 'get', {}],
	['Wait', 'wait', {}],
])('rows with several keys are refused before the first request: %s', async (...given) => {
	const [name, operation, parameters] = given;
	const media = await ofRow(operation, parameters);
	const execution = succeeded(await scene.run(`Keys, ${name}`, rows(), media));
	const errors = itemsOf(execution).map(
		({ error, advice }) => `${String(error)} ${String(advice)}`,
	);
	expect(errors).toHaveLength(3);
	for (const error of errors) {
		expect(error).toContain('item 2 another account than item 1');
		expect(error).toContain('Loop Over Items with a Batch Size of 1');
	}
	expect(scene.creates.length + scene.reads.length).toBe(0);
});

test('in a loop with batch size 1 each order has the key of its row', async () => {
	const loop = node('n8n-nodes-base.splitInBatches', 'Loop', { batchSize: 1, options: {} }, 3);
	const media = await ofRow('generate');
	const { nodes, connections } = inARow(manualTrigger(), rows(), loop);
	connections.Loop = { main: [[], ...to('Media')] };
	connections.Media = { main: to('Loop') };
	const all = { name: 'Keys in a loop', nodes: [...nodes, media], connections };
	const execution = succeeded(await (await scene.startWorkflow(all)).end());
	const bearer = `Bearer ${scene.service.apiKey}`;
	// A refused order is sent once more.
	const keys = keysOf().filter((key, index, all) => key !== all[index - 1]);
	expect(keys).toEqual([bearer, 'Bearer sk-live-bob', bearer]);
	const rounds = execution.data.resultData.runData.Media ?? [];
	const states = rounds.map(({ data }) => data?.main?.[0]?.[0]?.json.state);
	expect(states).toEqual(['SUCCESS', undefined, 'SUCCESS']);
});

test('an account that runs dry ends the run as an error, and the retry orders exactly the rest', async () => {
	const count = 9;
	scene.service.configure({ createStatus: { status: 402, after: 1 } });
	const run = await scene.startImages(Array<IDataObject>(count).fill({}), {
		name: 'Dry',
		options: { maxInFlight: 1 },
		byWebhook: true,
	});
	const ended = await run.end();
	expect(ended.status).toBe('error');
	expect(errorOf(ended)?.description).toContain("'Retry execution' in the list of executions");
	expect(run.tasks).toHaveLength(1);
	scene.service.resetSettings();
	const items = itemsOf(succeeded(await run.retry()));
	expect(items.map(({ state }) => state)).toEqual(Array(count).fill('SUCCESS'));
	const orders = run.tasks.map(({ record }) => promptOf(record));
	expect(orders).toEqual([...Array(count).keys()].map((index) => `Dry ${index}`));
});

test("a video that fails does not leave with the caller's own photo", async () => {
	const PHOTO = 'the photo of the caller';
	const start = webhook('Start', { responseMode: 'responseNode' });
	const simulate = { outcome: 'FAILURE', failureMessage: 'Unsafe picture' };
	const video = scene.media(
		{
			...{ resource: 'video', operation: 'generate', prompt: 'A wave', imageSource: 'binary' },
			options: { additionalInput: JSON.stringify({ simulate }) },
		},
		{ onError: 'continueRegularOutput' },
	);
	const respond = node(
		'n8n-nodes-base.respondToWebhook',
		'Respond',
		{ respondWith: 'binary' },
		1.1,
	);
	const { id } = await scene.client.createWorkflow({
		name: 'Photo',
		...inARow(start, video, respond),
	});
	const path = `/webhook/${start.webhookId}`;
	await scene.client.publish(id, [path]);
	const body = new FormData();
	body.append('data', new Blob([PHOTO], { type: 'image/png' }), 'photo.png');
	const answer = await fetch(scene.stage.webhookUrl + path, { method: 'POST', body });
	expect(await answer.text()).not.toContain(PHOTO);
	expect(scene.creates).toHaveLength(1);
	const [{ id: execution = '' } = {}] = await scene.client.waitForExecutions(id, 1);
	const [item] = itemsOf(await scene.client.getExecution(execution));
	expect(item).toMatchObject({ state: 'FAILURE', error: expect.stringContaining('(task ') });
});

describe.each(PUBLISHED.filter(({ service }) => ['kie', 'replicate', 'fal'].includes(service)))(
	'with $service, through the credential alone',
	(published) => {
		const KEY = 'key-of-this-account';
		let standIn: StandInServer;
		let data: ICredentialDataDecryptedObject;
		let credential: StoredCredential;
		beforeAll(async () => {
			standIn = await startStandIn(published, KEY);
			const { service } = published;
			data = { service, baseUrl: standIn.url, apiKey: KEY };
			credential = await scene.client.createCredential(service, 'mediaGenerationApi', data);
		});
		afterAll(() => standIn?.close());

		const mediaOf = (prompt: string) => {
			const { id, name } = credential;
			const model = { __rl: true, mode: 'id', value: published.model };
			const order = { resource: 'image', operation: 'generate', model, prompt };
			const credentials = { mediaGenerationApi: { id, name } };
			return scene.media(
				{ ...order, downloadResults: true },
				{ credentials, onError: 'continueRegularOutput' },
			);
		};

		test('the test of the credential tells the right key from a wrong one', async () => {
			const right = await scene.client.testCredential(credential, data);
			const wrong = await scene.client.testCredential(credential, { ...data, apiKey: 'wrong' });
			expect([right.status, wrong.status]).toEqual(['OK', 'Error']);
			expect(wrong.message).toContain("does not accept this 'API Key' (401)");
		});

		test('a picture comes with its file, after a refusal and a task that is not ready', async () => {
			Object.assign(standIn.service, { busyFor: 1, course: { reads: 1 } });
			const execution = succeeded(await scene.run('Picture', itemNodes('One', [{}]), mediaOf('x')));
			const [item] = itemsOf(execution);
			const [id = ''] = standIn.service.ids;
			expect(item).toMatchObject({ taskId: published.shownId?.(id) ?? id, state: 'SUCCESS' });
			expect(standIn.service.unknown).toEqual([]);
			expect(standIn.fileHeaders).toHaveLength(1);
			expect(JSON.stringify([standIn.fileHeaders, execution])).not.toContain(KEY);
		});

		test('a failure leaves with the words of the service', async () => {
			standIn.service.course = { end: 'failed' };
			const [item] = itemsOf(
				succeeded(await scene.run('Failure', itemNodes('One', [{}]), mediaOf('fails'))),
			);
			expect(String(item?.error)).toContain(published.reason);
			expect(item?.state).toBe('FAILURE');
		});
	},
);
