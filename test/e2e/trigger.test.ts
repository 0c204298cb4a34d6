import { setTimeout as sleep } from 'node:timers/promises';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/estimateCost';
import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackToken';
import { deliver, prompts } from './nodes';
import { itemsOf, statesOf } from './run';
import { openScene, type Published } from './scene';

const scene = openScene();
let lane: Published;

beforeAll(async () => {
	const order = scene.image({ completion: 'trigger' }, { name: 'Order' });
	lane = await scene.publish(scene.trigger(), { orders: [prompts('Prompt', [{}, {}]), order] });
});

const executions = async () => await scene.client.listExecutions({ workflowId: lane.id });

const shuffled = <T>(list: T[]) =>
	list
		.map((value) => ({ value, at: Math.random() }))
		.sort((a, b) => a.at - b.at)
		.map(({ value }) => value);

describe('a callback that is not admitted starts nothing', () => {
	const reads = () => scene.service.requests.filter(({ host }) => host === 'api').length;
	const finishedTask = () => scene.stage.finishedTasks(1)[0] ?? '';

	async function expectRefused(status: number, to: string, body: unknown) {
		const before = (await executions()).length;
		const response = await deliver(to, body);
		expect(response.status).toBe(status);
		expect(await executions()).toHaveLength(before);
		return response;
	}

	test.each([
		['no token', () => lane.url],
		['a wrong token', () => `${lane.url}?token=${'0'.repeat(64)}`],
		['two tokens', () => `${lane.address}&token=${'0'.repeat(64)}`],
		['twice the right token', () => `${lane.address}&${new URL(lane.address).search.slice(1)}`],
	])('%s: 401, and the service is not asked', async (_, to) => {
		await expectRefused(401, to(), { taskId: finishedTask() });
		expect(reads()).toBe(0);
	});

	test('2 MiB of body: 413 with a token, 401 without, and the service is not asked', async () => {
		const body = { taskId: finishedTask(), padding: 'x'.repeat(2 * 1024 * 1024) };
		await expectRefused(413, lane.address, body);
		await expectRefused(401, lane.url, body);
		expect(reads()).toBe(0);
	});

	test.each([[{}], [{ taskId: '' }], [{ taskId: '..' }], [[1, 2]]])(
		'no task id in %j: 400',
		async (body) => {
			await expectRefused(400, lane.address, body);
			expect(reads()).toBe(0);
		},
	);

	test('JSON of another content type names its task as well', async () => {
		const taskId = finishedTask();
		for (const type of ['application/cloudevents+json; charset=utf-8', 'text/plain', '']) {
			// Bytes have no type of their own.
			const body = new TextEncoder().encode(JSON.stringify({ data: { taskId } }));
			const headers: HeadersInit = type === '' ? {} : { 'content-type': type };
			const response = await fetch(lane.address, { method: 'POST', headers, body });
			expect(response.status).toBe(200);
		}
		await scene.expectArrived([taskId]);
	});

	test('what is not JSON is refused by n8n itself', async () => {
		await expectRefused(422, lane.address, 'not json');
	});

	test('a task that the service does not know: 404', async () => {
		await expectRefused(404, lane.address, { taskId: 'no-such-task' });
	});

	test('a task that is still pending, whatever the body claims: 503 with Retry-After', async () => {
		const claim = { state: 'SUCCESS', resultUrls: ['http://x'] };
		const { taskId } = scene.slowTask();
		const response = await expectRefused(503, lane.address, { taskId, ...claim });
		expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
	});

	test('a service that is down: 503, and the task starts the workflow when it is up again', async () => {
		const taskId = finishedTask();
		scene.service.configure({ readStatus: 500 });
		await expectRefused(503, lane.address, { taskId });
		scene.service.resetSettings();
		expect(await scene.deliver(lane.address, taskId)).toBe(200);
		await scene.expectArrived([taskId]);
	});

	test('a callback is answered before a service that hangs answers', async () => {
		scene.service.configure({ readDelayMs: 90_000 });
		await expectRefused(503, lane.address, { taskId: finishedTask() });
		expect(scene.reads.map(({ status }) => status)).toEqual([undefined]);
	});

	test('a GET is answered 404', async () => {
		expect((await fetch(lane.address)).status).toBe(404);
	});
});

test('the record of the service is believed over the body of the callback', async () => {
	const { client, collector, service } = scene;
	const { taskId } = service.createTask(IMAGE_MODEL, { prompt: 'lie' });
	service.complete(taskId, 'FAILURE');
	const lie = { task_id: taskId, state: 'SUCCESS', resultUrls: ['http://evil.example'] };
	await deliver(lane.address, { data: lie });
	await collector.settle(1);
	const [latest] = await executions();
	expect(itemsOf(await client.getExecution(latest?.id ?? ''), 'Finished')).toEqual([
		{
			taskId,
			state: 'FAILURE',
			resultUrls: [],
			creditsConsumed: 0,
			record: expect.objectContaining({ taskId, state: 'FAILURE' }),
		},
	]);
});

test('an action node of the same workflow finds the trigger, and each task starts the second lane', async () => {
	const ordered = await scene.client.waitForExecution(await scene.client.run(lane.id));
	expect(statesOf(ordered, 'Order')).toEqual(['PENDING', 'PENDING']);
	await scene.expectArrived(itemsOf(ordered, 'Order').map(({ taskId }) => String(taskId)));
	const authorised = scene.tasks.map(({ webhookUrl }) => webhookUrl);
	expect(authorised).toEqual([lane.address, lane.address]);
});

test('"Listen for test event" shows the record, also of a task that was seen before', async () => {
	const { client, collector, service, stage } = scene;
	const [taskId = ''] = stage.finishedTasks(1);
	// In queue mode, too, the main process is the one that listens.
	const testUrl = stage.n8n.url + lane.path.replace('/webhook/', '/webhook-test/');
	const testAddress = callbackAddress(testUrl, service.apiKey);
	for (let round = 0; round < 2; round++) {
		await client.listenForTestEvent(lane.id, 'Finished');
		expect(await scene.deliver(testAddress, taskId)).toBe(200);
		await collector.settle(round + 1);
	}
	expect(collector.seen).toEqual([taskId, taskId]);
	// The production trigger goes on, and knows nothing of the test.
	expect(await scene.deliver(lane.address, taskId)).toBe(200);
	await scene.expectArrived([taskId, taskId, taskId]);
});

test('task: redeliver brings a lost callback to the trigger, and one that came starts nothing', async () => {
	const { collector } = scene;
	const [lost = '', came = ''] = scene.stage.finishedTasks(2);
	const { taskId: pending } = scene.slowTask();
	await scene.deliver(lane.address, came);
	await collector.settle(1);
	const more = { callbackUrl: lane.url };
	const items = await scene.onTasks('redeliver', [lost, came, pending], more);
	expect(items.map((item) => [item.taskId, item.state, item.delivered, item.delivery])).toEqual([
		[lost, 'SUCCESS', true, 'accepted'],
		[came, 'SUCCESS', true, 'duplicate'],
		[pending, 'PENDING', false, undefined],
	]);
	await collector.settle(2);
	expect(collector.seen).toEqual([came, lost]);
});

test('60 tasks start the workflow 60 times: five callbacks each at once, a power cut, 40 of them again', async () => {
	const { collector, stage } = scene;
	const tasks = stage.finishedTasks(60);
	const deliveries = shuffled(tasks.flatMap((taskId) => Array<string>(5).fill(taskId)));
	/**
	 * As a sender does: what n8n cannot take now is sent again for minutes. n8n's own 503 names no time, and it answers 500
	 * where its database is too busy to be asked.
	 */
	async function send(taskId: string, tries = 20): Promise<string> {
		const response = await deliver(lane.address, { taskId });
		const text = await response.text();
		const { status, headers } = response;
		if (status === 200) return 'taken';
		if (status < 500 || tries === 1) return `${status} ${text}`;
		await sleep(Number(headers.get('retry-after') ?? 5) * 1000);
		return await send(taskId, tries - 1);
	}
	const answers = await Promise.all(deliveries.map((taskId) => send(taskId)));
	expect(new Set(answers)).toEqual(new Set(['taken']));
	await scene.expectArrived(tasks);

	await scene.powerCut(lane);
	const again = await Promise.all(shuffled(tasks.slice(0, 40)).map((taskId) => send(taskId)));
	expect(again).toEqual(Array(40).fill('taken'));
	await sleep(5000);
	await scene.expectArrived(tasks);
	console.log(
		`${deliveries.length + again.length} callbacks, ${collector.seen.length} runs of the workflow`,
	);
	// Said where n8n does not let each task have a row of its own, which several processes would need.
	expect(scene.log).not.toContain('finished tasks in one row');
}, 300_000);
