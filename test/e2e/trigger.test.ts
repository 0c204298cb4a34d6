import { setTimeout as sleep } from 'node:timers/promises';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackToken';
import { until } from '../n8n/until';
import { bySenders } from './lane';
import { deliver, prompts } from './nodes';
import { errorOf, itemsOf, statesOf } from './run';
import { openScene, type Published } from './scene';

const scene = openScene();
let lane: Published;

beforeAll(async () => {
	const order = scene.image({ completion: 'trigger' }, { name: 'Order' });
	lane = await scene.publish(scene.trigger(), { orders: [prompts('Prompt', [{}, {}]), order] });
});

const executions = async () => await scene.client.listExecutions({ workflowId: lane.id });

/** What the path through n8n's server adds to `test/unit/callback`, which has all that the gate itself refuses. */
describe('a callback that is not admitted starts nothing', () => {
	const wrong = '0'.repeat(64);
	const large = { padding: 'x'.repeat(2 * 1024 * 1024) };
	const pending = { state: 'SUCCESS', resultUrls: ['http://x'] };

	test.each<[number, string, () => string, unknown]>([
		[401, 'no token', () => lane.url, {}],
		[401, 'a wrong token', () => `${lane.url}?token=${wrong}`, {}],
		[401, 'two tokens', () => `${lane.address}&token=${wrong}`, {}],
		[401, '2 MiB of body without a token', () => lane.url, large],
		[413, '2 MiB of body with a token', () => lane.address, large],
		[400, 'no task id', () => lane.address, [1, 2]],
		[422, 'no JSON, which n8n itself refuses', () => lane.address, 'not json'],
		[503, 'a task that is pending, whatever the body claims', () => lane.address, pending],
	])('%d: %s', async (status, _, to, more) => {
		const isTask = typeof more === 'object' && !Array.isArray(more);
		const [taskId] = status === 503 ? [scene.slowTask().taskId] : scene.stage.finishedTasks(1);
		const before = (await executions()).length;
		const response = await deliver(to(), isTask ? { taskId, ...more } : more);
		expect(response.status).toBe(status);
		expect(await executions()).toHaveLength(before);
		expect(scene.reads).toHaveLength(status === 503 ? 1 : 0);
		expect(response.headers.has('retry-after')).toBe(status === 503);
	});

	test('JSON of another content type names its task as well', async () => {
		const [taskId = ''] = scene.stage.finishedTasks(1);
		for (const type of ['application/cloudevents+json; charset=utf-8', 'text/plain', '']) {
			// Bytes have no type of their own.
			const body = new TextEncoder().encode(JSON.stringify({ data: { taskId } }));
			const headers: HeadersInit = type === '' ? {} : { 'content-type': type };
			const response = await fetch(lane.address, { method: 'POST', headers, body });
			expect(response.status).toBe(200);
		}
		await scene.expectArrived([taskId]);
	});

	test('a GET is answered 404', async () => {
		expect((await fetch(lane.address)).status).toBe(404);
	});
});

test('an action node of the same workflow finds the trigger, and each task starts the second lane', async () => {
	const ordered = await scene.client.waitForExecution(await scene.client.run(lane.id));
	expect(statesOf(ordered, 'Order')).toEqual(['PENDING', 'PENDING']);
	await scene.expectArrived(itemsOf(ordered, 'Order').map(({ taskId }) => String(taskId)));
	const addresses = scene.tasks.map(({ webhookUrl }) => webhookUrl);
	expect(addresses).toEqual([lane.address, lane.address]);
});

test('"Listen for test event" shows the record, also of a task that was seen before', async () => {
	const { client, collector, service, stage } = scene;
	const [taskId = ''] = stage.finishedTasks(1);
	// In queue mode, too, the main process is the one that listens.
	const testUrl = stage.n8n.url + lane.path.replace('/webhook/', '/webhook-test/');
	const testAddress = callbackAddress(testUrl, service.apiKey);
	await client.listenForTestEvent(lane.id, 'Finished');
	expect(await scene.deliver(testAddress, taskId)).toBe(200);
	await collector.settle(1);
	// As the trigger's panel advises.
	await client.listenForTestEvent(lane.id, 'Finished');
	const [sent] = await scene.onTasks('redeliver', [taskId], { callbackUrl: testUrl });
	expect(sent).toMatchObject({ delivered: true });
	await collector.settle(2);
	expect(collector.seen).toEqual([taskId, taskId]);
	// The production trigger goes on, and knows nothing of the test.
	expect(await scene.deliver(lane.address, taskId)).toBe(200);
	await scene.expectArrived([taskId, taskId, taskId]);
});

test('60 tasks start the workflow 60 times, though each has five callbacks at once', async () => {
	const tasks = scene.stage.finishedTasks(60);
	const answers = new Set<string>();
	// As a sender does: what n8n cannot take now is sent again for minutes. n8n's own 503 names no time, and it answers 500
	// where its database is too busy to be asked.
	async function send(taskId: string, tries = 20): Promise<unknown> {
		const response = await deliver(lane.address, { taskId });
		const text = await response.text();
		const { status, headers } = response;
		if (status < 500 || tries === 1) return answers.add(status === 200 ? 'taken' : text);
		await sleep(Number(headers.get('retry-after') ?? 5) * 1000);
		return await send(taskId, tries - 1);
	}
	await bySenders(tasks, async (taskId) => {
		await Promise.all(Array.from({ length: 5 }, async () => await send(taskId)));
	});
	expect(answers).toEqual(new Set(['taken']));
	const { client, collector } = scene;
	await collector.settle(tasks.length);
	// If n8n's database failed, the execution says so.
	const failed = await client.listExecutions({ workflowId: lane.id, status: ['error', 'crashed'] });
	const executions = await Promise.all(failed.map(async ({ id }) => await client.getExecution(id)));
	expect(executions.map(errorOf)).toEqual([]);
	await scene.expectArrived(tasks);
	// Said where n8n does not let each task have a row of its own, which several processes would need.
	expect(scene.log).not.toContain('finished tasks in one row');
}, 300_000);

describe('n8n is killed while the trigger downloads the results of three tasks: none is lost', () => {
	const downloading = () => scene.trigger({ options: { downloadResults: true } });

	/** Has the media host keep the trigger waiting, cuts the power then, and mends the host meanwhile. */
	async function cutDuringDownloads(target: Published): Promise<void> {
		const begun = () => scene.requests('media', 'GET').length;
		await until('three downloads', 120_000, () => begun() >= 3);
		expect(scene.collector.seen).toEqual([]);
		scene.service.resetSettings();
		await scene.powerCut(target);
	}

	test('the next callback of each task starts it', async () => {
		const target = await scene.publish(downloading());
		const tasks = scene.stage.finishedTasks(3);
		scene.service.configure({ mediaDelayMs: 600_000 });
		for (const taskId of tasks) expect(await scene.deliver(target.address, taskId)).toBe(200);
		await cutDuringDownloads(target);
		for (const taskId of tasks) {
			await until('the callback to be taken', 60_000, async () => {
				return (await scene.deliver(target.address, taskId)) === 200;
			});
		}
		await scene.expectArrived(tasks);
	});

	test('without another callback the checks start them', async () => {
		const order = scene.image({ completion: 'trigger' }, { name: 'Order' });
		const orders = [prompts('Prompt', [{}, {}, {}]), order];
		const target = await scene.publish(downloading(), { orders });
		scene.service.configure({ latencyMs: 500, mediaDelayMs: 600_000 });
		await scene.client.waitForExecution(await scene.client.run(target.id));
		await cutDuringDownloads(target);
		await scene.expectArrived(scene.taskIds, 240_000);
		expect(scene.taskIds).toHaveLength(3);
	});
});
