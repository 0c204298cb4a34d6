import { setTimeout as sleep } from 'node:timers/promises';
import type { INode } from 'n8n-workflow';

import { callbackAddress } from '../../../nodes/MediaGeneration/callback/callbackAddress';
import { until } from '../../n8n/client';
import {
	bySenders,
	call,
	called,
	deliver,
	inARow,
	manualTrigger,
	ONE_REQUEST,
	prompts,
} from '../nodes';
import { errorOf, itemsOf, statesOf, succeeded } from '../run';
import type { Published, Scene } from '../scene';

/** Callbacks that n8n's server takes, the trigger that they start, and what n8n's store remembers of their tasks. */
export function testCallbacks(scene: Scene): void {
	let lane: Published;
	beforeAll(async () => {
		const order = scene.image({ completion: 'trigger' }, { name: 'Order' });
		lane = await scene.publish(scene.trigger(), { orders: [prompts('Prompt', [{}, {}]), order] });
	});

	const executionsOf = async ({ id: workflowId }: Published) =>
		await scene.client.listExecutions({ workflowId });

	/** What the path through n8n's server adds to the gate, whose own refusals are tested on n8n's engine. */
	const wrong = '0'.repeat(64);
	const large = { padding: 'x'.repeat(2 * 1024 * 1024) };
	const pending = { state: 'SUCCESS', resultUrls: ['http://x'] };
	test.each<[number, string, () => string, unknown]>([
		[401, 'two tokens', () => `${lane.address}&token=${wrong}`, {}],
		[401, '2 MiB of body without a token', () => lane.url, large],
		[413, '2 MiB of body with a token', () => lane.address, large],
		[400, 'no task id', () => lane.address, [1, 2]],
		[422, 'no JSON, which n8n itself refuses', () => lane.address, 'not json'],
		[503, 'a task that is pending, whatever the body claims', () => lane.address, pending],
	])('%d: %s', async (status, _, to, more) => {
		const isTask = typeof more === 'object' && !Array.isArray(more);
		const [taskId] = status === 503 ? [scene.slowTask().taskId] : scene.stage.finishedTasks(1);
		const before = (await executionsOf(lane)).length;
		const response = await deliver(to(), isTask ? { taskId, ...more } : more);
		expect(response.status).toBe(status);
		expect(await executionsOf(lane)).toHaveLength(before);
		expect(scene.reads).toHaveLength(status === 503 ? 1 : 0);
		expect(response.headers.has('retry-after')).toBe(status === 503);
	});

	test('a GET is answered 404; JSON of another content type names its task as well', async () => {
		expect((await fetch(lane.address)).status).toBe(404);
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

	test('an action node of the same workflow finds the trigger, and each task starts the second lane', async () => {
		const ordered = await scene.client.waitForExecution(await scene.client.run(lane.id));
		expect(statesOf(ordered, 'Order')).toEqual(['PENDING', 'PENDING']);
		await scene.expectArrived(itemsOf(ordered, 'Order').map(({ taskId }) => String(taskId)));
		const addresses = scene.tasks.map(({ webhookUrl }) => webhookUrl);
		expect(addresses).toEqual([lane.address, lane.address]);
	});

	test('a trigger that is not published is not found by a run, its retry, or a sub-workflow that a run by hand calls', async () => {
		const order = () => scene.image({ prompt: 'x', completion: 'trigger' });
		const withTrigger = (name: string, start: INode) => {
			const wired = inARow(start, order());
			return { name, ...wired, nodes: [...wired.nodes, scene.trigger()] };
		};
		const alone = await scene.startWorkflow(withTrigger('Not published', manualTrigger()));
		const failed = await alone.end();
		const child = withTrigger('Called, and not published', called());
		const { id } = await scene.client.createWorkflow(child);
		const calling = await scene.run('Calls', call(id));
		for (const execution of [failed, await alone.retry(), calling]) {
			expect(execution.status).toBe('error');
			// n8n 2.0 runs no sub-workflow that is not published.
			const isRefused = execution === calling ? '|Workflow is not active' : '';
			expect(errorOf(execution)?.message).toMatch(RegExp(`Media Generation Trigger${isRefused}`));
		}
		expect(scene.tasks).toEqual([]);
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

	test('ten tasks start the workflow ten times, though each has five callbacks at once', async () => {
		const tasks = scene.stage.finishedTasks(10);
		const answers = new Set<string>();
		// As a sender does: what n8n cannot take now is sent again for minutes. n8n's own 503 names no time, and it answers 500
		// where its database is too busy to be asked.
		async function send(taskId: string, tries = 20): Promise<unknown> {
			const response = await deliver(lane.address, { taskId }, ONE_REQUEST).catch(() => undefined);
			const { status = 500, headers } = response ?? {};
			const text = await response?.text();
			if (status < 500 || tries === 1) return answers.add(status === 200 ? 'taken' : String(text));
			await sleep(Number(headers?.get('retry-after') ?? 5) * 1000);
			return await send(taskId, tries - 1);
		}
		await bySenders(tasks, async (taskId) => {
			await Promise.all(Array.from({ length: 5 }, async () => await send(taskId)));
		});
		expect(answers).toEqual(new Set(['taken']));
		await scene.collector.settle(tasks.length);
		// If n8n's database failed, the execution says so.
		const failed = await scene.client.listExecutions({
			workflowId: lane.id,
			status: ['error', 'crashed'],
		});
		expect(failed).toEqual([]);
		await scene.expectArrived(tasks);
		// Said where n8n does not let each task have a row of its own, which several processes would need.
		expect(scene.log).not.toContain('finished tasks in one row');
	}, 300_000);

	/** Delivers the callback of each task, one after the other, and waits until n8n is through with them. */
	async function deliverAll(target: Published, tasks: string[]) {
		// As real senders do: while n8n takes a changed workflow into production it answers 404, or 500.
		for (const taskId of tasks) await untilAnswer(200, target, taskId);
		for (const { id } of await executionsOf(target)) await scene.client.waitForExecution(id);
	}

	const untilAnswer = async (status: number, { address }: Published, taskId: string) =>
		await until(`the answer ${status}`, 30_000, async () => {
			if ((await scene.deliver(address, taskId)) === status) return true;
			await sleep(100);
			return false;
		});

	test("a trigger that could not write its row fails, whatever its On Error says; its retry starts the workflow, and the callback nothing more: each task is one row of n8n's store, which goes with the workflow", async () => {
		const { client, collector, stage } = scene;
		const { database } = stage;
		const rowsOf = async ({ id }: Published) =>
			await database.rows(`select context, value from processed_data where "workflowId" = '${id}'`);
		const target = await scene.publish(scene.trigger({}, { onError: 'continueRegularOutput' }));
		const [taskId = '', other = ''] = stage.finishedTasks(2);
		const when = `new."workflowId" = '${target.id}'`;
		await database.refuse('no_rows', 'before insert on processed_data', when, 'The disk is full');
		await deliverAll(target, [taskId]);
		await database.forget('no_rows');
		expect(collector.seen).toEqual([]);
		const [{ id = '' } = {}] = await executionsOf(target);
		expect(JSON.stringify(errorOf(await client.waitForExecution(id)))).toContain('disk is full');
		succeeded(await client.waitForExecution(await client.retryExecution(id)));
		expect(collector.seen).toEqual([taskId]);
		await deliverAll(target, [taskId, other, other]);
		expect(collector.seen).toEqual([taskId, other]);

		const ofTheTrigger = new RegExp(`^n:${target.trigger.id}:[0-9a-f]{32}$`);
		const contexts = (await rowsOf(target)).map(({ context }) => context);
		expect(contexts).toEqual(Array(2).fill(expect.stringMatching(ofTheTrigger)));
		await client.deleteWorkflow(target.id);
		expect(await rowsOf(target)).toEqual([]);
	});

	test('a trigger that is renamed, and one whose workflow is switched off, remember their tasks; a copy has a memory of its own', async () => {
		const { client, collector } = scene;
		const target = await scene.publish();
		const [before = '', meanwhile = ''] = scene.stage.finishedTasks(2);
		await deliverAll(target, [before]);
		const moved: INode = { ...target.trigger, name: 'Task is done', position: [400, 200] };
		expect((await scene.publish(moved, { id: target.id })).address).toBe(target.address);
		await deliverAll(target, [before]);

		await client.unpublish(target.id);
		// n8n takes it out of production some time after it has answered.
		await untilAnswer(404, target, before);
		// The sender of a callback that is answered so delivers it again.
		expect(await scene.deliver(target.address, meanwhile)).toBe(404);
		await client.publish(target.id, [target.path]);
		await deliverAll(target, [before, meanwhile]);
		expect(collector.seen).toEqual([before, meanwhile]);

		// A workflow that is imported from a file keeps the ids of its nodes.
		const copy = await scene.publish({ ...target.trigger, webhookId: crypto.randomUUID() });
		for (const each of [copy, target, copy]) await deliverAll(each, [before]);
		expect(collector.seen).toEqual([before, meanwhile, before]);
	});
}
