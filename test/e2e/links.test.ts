import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { describe as describeExecution, type Execution, outputItems } from '../n8n/client';
import { inARow, itemsNode, manualTrigger, Stage } from './stage';

jest.setTimeout(400_000);

let stage: Stage;
beforeAll(async () => {
	stage = await Stage.open();
}, 900_000);
afterAll(async () => await stage?.close());
beforeEach(() => stage.reset());

/** Seconds that a link is good for. */
const TIMEOUT = 10;

/** A picture, and then a video that is made from its file. */
async function pictureToVideo(options: IDataObject): Promise<Execution> {
	const { client } = stage;
	const workflow = await client.createWorkflow({
		name: 'Picture to video',
		...inARow(
			manualTrigger(),
			stage.mediaNode('mediaGeneration', 'Picture', {
				resource: 'image',
				operation: 'generate',
				prompt: 'a lighthouse',
				completion: 'wait',
				options: { downloadResults: true },
			}),
			stage.mediaNode('mediaGeneration', 'Video', {
				resource: 'video',
				operation: 'generate',
				prompt: 'waves roll in',
				imageSource: 'binary',
				durationSeconds: 2,
				completion: 'wait',
				options: { sendFilesAs: 'link', ...options },
			}),
		),
	});
	return await client.waitForExecution(await client.run(workflow.id), 120_000);
}

test('the service fetches a file by the link that n8n has signed, and not after its time', async () => {
	const { service, client } = stage;
	const execution = await pictureToVideo({ timeout: TIMEOUT });
	if (execution.status !== 'success') throw new Error(describeExecution(execution));
	const [picture, video] = [...service.tasks.values()];
	const taskId = video?.taskId ?? '';
	const body = JSON.stringify(video?.record.input);
	expect(body).toContain('/rest/binary-data/signed?token=');
	expect(body.length).toBeLessThan(1000);

	const [original] = await service.fetchFiles((await copyOf(picture?.record.resultUrls)).taskId);
	const [fetched] = await service.fetchFiles(taskId);
	expect(fetched).toMatchObject({ status: 200, type: 'image/png' });
	expect(original?.body.length).toBeGreaterThan(1000);
	expect(fetched?.body.equals(original?.body ?? Buffer.alloc(0))).toBe(true);

	// Whoever has the link can open it, and nobody sees it in n8n.
	const [, token = ''] = /token=([\w.-]+)/.exec(fetched?.url ?? '') ?? [];
	expect(token).toMatch(/^eyJ/);
	const stored = JSON.stringify(await client.getExecution(execution.id));
	expect(stored).toContain('waves roll in');
	expect(stored).not.toContain(token.split('.').at(-1));
	expect(outputItems(execution, 'Video')[0]?.json).toMatchObject({
		state: 'SUCCESS',
		input: { image_url: expect.stringMatching(/^data:image\/png;base64,… \(.*bytes\)$/) as string },
	});

	await sleep((TIMEOUT + 1) * 1000);
	const [late] = await service.fetchFiles(taskId);
	console.log(
		`${fetched?.url.replace(token, '***')}: ${fetched?.status}, ${fetched?.body.length} bytes; after ${TIMEOUT} s: ${late?.status} ${late?.body.toString()}`,
	);
	expect(late?.status).toBe(400);
});

/** A task whose input has the addresses of the results of another. */
const copyOf = async (urls: string[] = []) =>
	await Promise.resolve(stage.service.createTask('some/model', { urls }));

test('a service elsewhere, which cannot reach this n8n, is sent nothing', async () => {
	const { client } = stage;
	const elsewhere = await client.createCredential('Elsewhere', 'mediaGenerationApi', {
		baseUrl: 'https://service.example.com',
		apiKey: 'sk-elsewhere',
	});
	const video = {
		...stage.mediaNode('mediaGeneration', 'Media', {
			resource: 'task',
			operation: 'create',
			model: 'some/model',
			completion: 'return',
			options: {
				files: { file: [{ inputField: 'picture', binaryPropertyName: 'data' }] },
				sendFilesAs: 'link',
			},
		}),
		credentials: { mediaGenerationApi: elsewhere },
	};
	const picture = stage.mediaNode('mediaGeneration', 'Picture', {
		resource: 'image',
		operation: 'generate',
		prompt: 'a lighthouse',
		completion: 'wait',
		options: { downloadResults: true },
	});
	const workflow = await client.createWorkflow({
		name: 'Out of reach',
		...inARow(manualTrigger(), picture, video),
	});
	const execution = await client.waitForExecution(await client.run(workflow.id));
	expect(execution.status).toBe('error');
	expect(describeExecution(execution)).toContain('the service cannot reach n8n at');
});

test('rows go on beside their results, with their files, also after a power cut in a suspended run', async () => {
	const { client, service } = stage;
	service.configure({ callbackLost: true, latencyMs: 20_000 });
	const picture = stage.mediaNode('mediaGeneration', 'Picture', {
		resource: 'image',
		operation: 'generate',
		prompt: 'a lighthouse',
		completion: 'wait',
		options: {
			downloadResults: true,
			includeInput: true,
			additionalInput: '{ "simulate": { "latencyMs": 100 } }',
		},
	});
	const media = stage.mediaNode('mediaGeneration', 'Media', {
		resource: 'image',
		operation: 'generate',
		prompt: '={{ $json.title }}',
		completion: 'wait',
		options: { includeInput: true, suspendAfter: 0, outputBinaryField: 'result' },
	});
	const rows = ['A', 'B'].map((title, row) => ({ row, title, state: 'to do', tags: [title] }));
	const workflow = await client.createWorkflow({
		name: 'Rows',
		...inARow(manualTrigger(), itemsNode('Rows', rows), picture, media),
	});
	const id = await client.run(workflow.id);
	await client.waitForSuspension(id);
	await stage.killAndRestart();
	const execution = await client.waitForExecution(id, 300_000);
	if (execution.status !== 'success') throw new Error(describeExecution(execution));
	const items = outputItems(execution, 'Media');
	const ordered = [...service.tasks.keys()].slice(2);
	expect(items).toMatchObject(
		rows.map(({ row, title }) => ({
			json: { row, title, tags: [title], state: 'SUCCESS', taskId: ordered[row] },
			binary: { data: { mimeType: 'image/png' } },
			pairedItem: { item: row },
		})),
	);
	expect(items.some(({ json }) => 'timedOut' in json || 'error' in json)).toBe(false);
	const files = outputItems(execution, 'Picture').map(({ binary }) => binary?.data?.id);
	expect(items.map(({ binary }) => binary?.data?.id)).toEqual(files);
});
