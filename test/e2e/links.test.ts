import type { IDataObject } from 'n8n-workflow';

import { outputItems, until } from '../n8n/client';
import { needing } from './needs';
import { itemNodes } from './nodes';
import { succeeded } from './run';
import { openScene } from './scene';

const scene = openScene();

/** How the output shows a file. */
const SHOWN_FILE = /^data:image\/png;base64,… \(.*bytes\)$/;

/** Seconds that a link is good for. */
const TIMEOUT = 30;

/** A node that makes a picture and downloads it. */
const picture = (more: IDataObject = {}) => {
	const options = { downloadResults: true, additionalInput: '{}', ...more };
	return scene.image({ prompt: 'a lighthouse', options }, { name: 'Picture' });
};

needing('linksToFiles', 'Links to files').test(
	'the service fetches a file by the link that n8n has signed, and not after its time',
	async () => {
		const { service } = scene;
		const fromPicture = scene.media({
			resource: 'video',
			operation: 'generate',
			prompt: 'waves roll in',
			imageSource: 'binary',
			durationSeconds: 2,
			options: { sendFilesAs: 'link', timeout: TIMEOUT },
		});
		const run = await scene.start('Picture to video', picture(), fromPicture);
		const execution = succeeded(await run.end());
		const [made, video] = scene.tasks;
		const taskId = video?.taskId ?? '';
		const body = JSON.stringify(video?.record.input);
		expect(body).toContain('/rest/binary-data/signed?token=');
		expect(body.length).toBeLessThan(1000);

		// A task whose input has the address of the picture, and so what stands there.
		const copy = service.createTask('some/model', { urls: made?.record.resultUrls });
		const [original] = await service.fetchFiles(copy.taskId);
		const [fetched] = await service.fetchFiles(taskId);
		expect(fetched).toMatchObject({ status: 200, type: 'image/png' });
		expect(original?.body.length).toBeGreaterThan(1000);
		expect(fetched?.body.equals(original?.body ?? Buffer.alloc(0))).toBe(true);

		// Whoever has the link can open it, and nobody sees it in n8n.
		const [, token = ''] = /token=([\w.-]+)/.exec(fetched?.url ?? '') ?? [];
		expect(token).toMatch(/^eyJ/);
		const stored = JSON.stringify(await run.now());
		expect(stored).toContain('waves roll in');
		expect(stored).not.toContain(token.split('.').at(-1));
		expect(outputItems(execution, 'Media')[0]?.json).toMatchObject({
			state: 'SUCCESS',
			input: { image_url: expect.stringMatching(SHOWN_FILE) as string },
		});

		let late = fetched;
		await until('the link to end', 2 * TIMEOUT * 1000, async () => {
			[late] = await service.fetchFiles(taskId);
			return late?.status !== 200;
		});
		expect(late?.status).toBe(400);
	},
	400_000,
);

test('rows go on beside their results, with their files, also after a power cut while the run sleeps', async () => {
	scene.service.configure({ latencyMs: 20_000 });
	const rows = ['A', 'B'].map((title, row) => ({ row, title, state: 'to do', tags: [title] }));
	const run = await scene.start(
		'Rows',
		itemNodes('Rows', rows),
		picture({ includeInput: true, additionalInput: '{ "simulate": { "latencyMs": 100 } }' }),
		scene.image({
			prompt: '={{ $json.title }}',
			options: { includeInput: true, suspendAfter: 0, outputBinaryField: 'result' },
		}),
	);
	await run.suspended();
	await scene.stage.killAndRestart();
	const execution = succeeded(await run.end());
	const items = outputItems(execution, 'Media');
	const ordered = scene.taskIds.slice(2);
	expect(items).toMatchObject(
		rows.map(({ row, title, tags }) => ({
			json: { row, title, tags, state: 'SUCCESS', taskId: ordered[row] },
			binary: { data: { mimeType: 'image/png' } },
			pairedItem: { item: row },
		})),
	);
	expect(items.some(({ json }) => 'timedOut' in json || 'error' in json)).toBe(false);
	const files = outputItems(execution, 'Picture').map(({ binary }) => binary?.data?.id);
	expect(items.map(({ binary }) => binary?.data?.id)).toEqual(files);
}, 400_000);
