import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackUrl';
import { outputItems } from '../n8n/client';
import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import { Collector } from './collector';
import { deliver, inARow, itemsNode, manualTrigger, Stage } from './stage';

let stage: Stage;
let collector: Collector;
let workflowId: string;
let url: string;
let address: string;

beforeAll(async () => {
	stage = await Stage.open();
	collector = await Collector.open();
	const trigger = stage.mediaNode('mediaGenerationTrigger', 'Finished', {});
	const orders = itemsNode('Prompts', [{ prompt: 'one' }, { prompt: 'two' }]);
	const order = stage.mediaNode('mediaGeneration', 'Order', {
		resource: 'image',
		operation: 'generate',
		prompt: '={{ $json.prompt }}',
		completion: 'trigger',
	});
	const start = manualTrigger();
	const lanes = [inARow(start, orders, order), inARow(trigger, collector.node())];
	const workflow = await stage.client.createWorkflow({
		name: 'Two lanes',
		nodes: lanes.flatMap(({ nodes }) => nodes),
		connections: Object.assign({}, ...lanes.map(({ connections }) => connections)),
	});
	workflowId = workflow.id;
	const path = stage.client.webhookPath(trigger, 'callback');
	await stage.client.publish(workflow.id, [path]);
	url = stage.webhookUrl + path;
	address = callbackAddress(url, stage.service.apiKey);
}, 900_000);
afterAll(async () => {
	collector.close();
	await stage?.close();
});
beforeEach(() => {
	stage.reset();
	collector.reset();
});

const executionCount = async () => (await stage.client.listExecutions({ workflowId })).length;

/** How often each of some texts is there. */
const tally = (texts: string[]) =>
	[...new Set(texts)].map((text) => `${texts.filter((other) => other === text).length} × ${text}`);

const shuffled = <T>(list: T[]) =>
	list
		.map((value) => ({ value, at: Math.random() }))
		.sort((a, b) => a.at - b.at)
		.map(({ value }) => value);

describe('a callback that is not admitted starts nothing', () => {
	const reads = () => stage.service.requests.filter(({ host }) => host === 'api').length;

	async function expectRefused(status: number, to: string, body: unknown) {
		const executions = await executionCount();
		const response = await deliver(to, body);
		expect(response.status).toBe(status);
		expect(await executionCount()).toBe(executions);
		return response;
	}

	test.each([
		['no token', () => url],
		['a wrong token', () => `${url}?token=${'0'.repeat(64)}`],
		['two tokens', () => `${address}&token=${'0'.repeat(64)}`],
		['twice the right token', () => `${address}&${new URL(address).search.slice(1)}`],
	])('%s: 401, and the service is not asked', async (_, to) => {
		const [taskId] = stage.finishedTasks(1);
		await expectRefused(401, to(), { taskId });
		expect(reads()).toBe(0);
	});

	test('2 MiB of body: 413 with a token, 401 without, and the service is not asked', async () => {
		const [taskId] = stage.finishedTasks(1);
		const body = { taskId, padding: 'x'.repeat(2 * 1024 * 1024) };
		await expectRefused(413, address, body);
		await expectRefused(401, url, body);
		expect(reads()).toBe(0);
	});

	test.each([[{}], [{ taskId: '' }], [{ taskId: '..' }], [[1, 2]]])(
		'no task id in %j: 400',
		async (body) => {
			await expectRefused(400, address, body);
			expect(reads()).toBe(0);
		},
	);

	test('JSON of another content type names its task as well', async () => {
		const [taskId = ''] = stage.finishedTasks(1);
		const types = ['application/cloudevents+json; charset=utf-8', 'text/plain', ''];
		for (const type of types) {
			// Bytes have no type of their own.
			const body = new TextEncoder().encode(JSON.stringify({ data: { taskId } }));
			const headers: HeadersInit = type === '' ? {} : { 'content-type': type };
			expect((await fetch(address, { method: 'POST', headers, body })).status).toBe(200);
		}
		await collector.settle(1);
		expect(collector.seen).toEqual([taskId]);
	});

	test('what is not JSON is refused by n8n itself', async () => {
		await expectRefused(422, address, 'not json');
	});

	test('a task that the service does not know: 404', async () => {
		await expectRefused(404, address, { taskId: 'no-such-task' });
	});

	test('a task that is still pending, whatever the body claims: 503 with Retry-After', async () => {
		const { taskId } = stage.service.createTask(IMAGE_MODEL, {
			prompt: 'slow',
			simulate: { latencyMs: 60_000 },
		});
		const response = await expectRefused(503, address, {
			taskId,
			state: 'SUCCESS',
			resultUrls: ['http://x'],
		});
		expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
	});

	test('a service that is down: 503, and the task starts the workflow when it is up again', async () => {
		const [taskId] = stage.finishedTasks(1);
		stage.service.configure({ readStatus: 500 });
		await expectRefused(503, address, { taskId });
		stage.service.resetSettings();
		expect((await deliver(address, { taskId })).status).toBe(200);
		await collector.settle(1);
		expect(collector.seen).toEqual([taskId]);
	});

	test('a service that hangs is answered for within 10 s', async () => {
		const [taskId] = stage.finishedTasks(1);
		stage.service.configure({ readDelayMs: 30_000 });
		const start = Date.now();
		await expectRefused(503, address, { taskId });
		expect(Date.now() - start).toBeLessThan(10_000);
	});

	test('a GET is answered 404', async () => {
		expect((await fetch(address)).status).toBe(404);
	});
});

test('the record of the service is believed over the body of the callback', async () => {
	const { service } = stage;
	const { taskId } = service.createTask(IMAGE_MODEL, { prompt: 'lie' });
	service.complete(taskId, 'FAILURE');
	await deliver(address, {
		data: { task_id: taskId, state: 'SUCCESS', resultUrls: ['http://evil.example'] },
	});
	await collector.settle(1);
	const [latest] = await stage.client.listExecutions({ workflowId });
	const execution = await stage.client.getExecution(latest?.id ?? '');
	expect(outputItems(execution, 'Finished')).toEqual([
		expect.objectContaining({
			json: {
				taskId,
				state: 'FAILURE',
				resultUrls: [],
				creditsConsumed: 0,
				record: expect.objectContaining({ taskId, state: 'FAILURE' }),
			},
		}),
	]);
});

test('an action node of the same workflow finds the trigger, and each task starts the second lane', async () => {
	const ordered = await stage.client.waitForExecution(await stage.client.run(workflowId));
	const items = outputItems(ordered, 'Order');
	expect(items.map(({ json }) => json.state)).toEqual(['PENDING', 'PENDING']);
	await collector.settle(2);
	expect([...collector.seen].sort()).toEqual(items.map(({ json }) => json.taskId).sort());
	const authorised = [...stage.service.tasks.values()].map(({ webhookUrl }) => webhookUrl);
	expect(authorised).toEqual([address, address]);
});

test('"Listen for test event" shows the record, also of a task that was seen before', async () => {
	const { client } = stage;
	const [taskId = ''] = stage.finishedTasks(1);
	const testAddress = callbackAddress(
		// In queue mode, too, the main process is the one that listens.
		stage.n8n.url + new URL(url).pathname.replace('/webhook/', '/webhook-test/'),
		stage.service.apiKey,
	);
	for (let round = 0; round < 2; round++) {
		await client.listenForTestEvent(workflowId, 'Finished');
		expect((await deliver(testAddress, { taskId })).status).toBe(200);
		await collector.settle(round + 1);
	}
	expect(collector.seen).toEqual([taskId, taskId]);
	// The production trigger goes on, and knows nothing of the test.
	expect((await deliver(address, { taskId })).status).toBe(200);
	await collector.settle(3);
	expect(collector.seen).toHaveLength(3);
});

test('task: redeliver brings a lost callback to the trigger, and one that came starts nothing', async () => {
	const { client, service } = stage;
	const [lost = '', came = ''] = stage.finishedTasks(2);
	const { taskId: pending } = service.createTask(IMAGE_MODEL, {
		prompt: 'slow',
		simulate: { latencyMs: 60_000 },
	});
	await deliver(address, { taskId: came });
	await collector.settle(1);
	const ids = [lost, came, pending].map((taskId) => ({ taskId }));
	const workflow = await client.createWorkflow({
		name: 'Redeliver',
		...inARow(
			manualTrigger(),
			itemsNode('Tasks', ids),
			stage.mediaNode('mediaGeneration', 'Redeliver', {
				resource: 'task',
				operation: 'redeliver',
				taskId: '={{ $json.taskId }}',
				callbackUrl: url,
			}),
		),
	});
	const execution = await client.waitForExecution(await client.run(workflow.id));
	const items = outputItems(execution, 'Redeliver');
	expect(items.map(({ json }) => [json.taskId, json.state, json.delivered, json.delivery])).toEqual(
		[
			[lost, 'SUCCESS', true, 'accepted'],
			[came, 'SUCCESS', true, 'duplicate'],
			[pending, 'PENDING', false, undefined],
		],
	);
	await collector.settle(2);
	expect(collector.seen).toEqual([came, lost]);
});

test('60 tasks start the workflow 60 times: five callbacks each at once, a power cut, 40 of them again', async () => {
	const tasks = stage.finishedTasks(60);
	const deliveries = shuffled(tasks.flatMap((taskId) => Array<string>(5).fill(taskId)));
	const answers: string[] = [];
	/** As a sender does: where it is told to come again later, it does, for minutes. n8n's own 503 names no time. */
	async function send(taskId: string, tries = 20): Promise<number> {
		const response = await deliver(address, { taskId });
		const { status, headers } = response;
		answers.push(`${status} ${(await response.text()).replaceAll(taskId, '…')}`);
		if (status !== 503 || tries === 1) return status;
		await sleep(Number(headers.get('retry-after') ?? 5) * 1000);
		return await send(taskId, tries - 1);
	}
	const statuses = await Promise.all(deliveries.map((taskId) => send(taskId)));
	console.log(tally(answers));
	expect(new Set(statuses)).toEqual(new Set([200]));
	await collector.settle(60);
	expect([...collector.seen].sort()).toEqual([...tasks].sort());

	await stage.killAndRestart();
	await stage.client.waitForWebhook(new URL(url).pathname);
	const again = await Promise.all(shuffled(tasks.slice(0, 40)).map((taskId) => send(taskId)));
	expect(again).toEqual(Array(40).fill(200));
	await sleep(5000);
	expect([...collector.seen].sort()).toEqual([...tasks].sort());
	console.log(
		`${deliveries.length + again.length} callbacks, ${collector.seen.length} runs of the workflow`,
	);
	// Said where n8n does not let each task have a row of its own, which several processes would need.
	expect(readFileSync(stage.runner.logFile, 'utf8')).not.toContain('finished tasks in one row');
}, 300_000);
