import { type IDataObject, type INode } from 'n8n-workflow';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackToken';
import { hasEnded, until } from '../n8n/client';
import { SqliteDatabase } from './database';
import { bySenders, deliver, itemNodes, ONE_REQUEST, prompts } from './nodes';
import { atTheSameTime, errorOf, itemsOf, type Run, statesOf } from './run';
import { openScene, type Published } from './scene';

/** Callbacks, the triggers that they start, and what a trigger remembers of its tasks. */

const scene = openScene({ clears: false });

describe('a published trigger', () => {
	let lane: Published;

	beforeEach(() => scene.clear());

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

	test('30 tasks start the workflow 30 times, though each has five callbacks at once', async () => {
		const tasks = scene.stage.finishedTasks(30);
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
		const { client, collector } = scene;
		await collector.settle(tasks.length);
		// If n8n's database failed, the execution says so.
		const failed = await client.listExecutions({
			workflowId: lane.id,
			status: ['error', 'crashed'],
		});
		const executions = await Promise.all(
			failed.map(async ({ id }) => await client.getExecution(id)),
		);
		expect(executions.map(errorOf)).toEqual([]);
		await scene.expectArrived(tasks);
		// Said where n8n does not let each task have a row of its own, which several processes would need.
		expect(scene.log).not.toContain('finished tasks in one row');
	}, 300_000);
});

/** Also where a workflow is retried, changed, copied, switched off or deleted. */
describe("the trigger's memory", () => {
	beforeEach(() => {
		// The tasks stay: their callbacks come again at the end.
		scene.service.resetSettings();
		scene.collector.reset();
	});

	const delivered: Array<{ target: Published; taskId: string }> = [];

	/** Delivers the callback of each task, one after the other, and waits until n8n is through with them. */
	async function deliverAll(target: Published, tasks: string[]) {
		for (const taskId of tasks) {
			// As real senders do: while n8n takes a changed workflow into production it answers 404, or 500.
			await untilAnswer(200, target, taskId);
			delivered.push({ target, taskId });
		}
		for (const { id } of await executionsOf(target)) await scene.client.waitForExecution(id);
	}

	const untilAnswer = async (status: number, { address }: Published, taskId: string) =>
		await until(`the answer ${status}`, 30_000, async () => {
			if ((await scene.deliver(address, taskId)) === status) return true;
			await sleep(100);
			return false;
		});

	const executionsOf = async ({ id: workflowId }: Published) =>
		await scene.client.listExecutions({ workflowId });

	const rowsOf = async ({ id }: Published) =>
		await scene.stage.database.rows(
			`select context, value from processed_data where "workflowId" = '${id}'`,
		);

	const INSERT = 'before insert on processed_data';

	/** What fails in the first run of a task, the settings of the trigger, how it fails, and how that ends. */
	const FAILURES: Array<[string, Partial<INode>, () => unknown, () => unknown]> = [
		[
			'a workflow that failed behind the trigger',
			{},
			() => (scene.collector.failures = 1),
			() => {},
		],
		[
			'a trigger that could not download the results',
			{},
			() => scene.service.configure({ mediaStatus: 404 }),
			() => scene.service.resetSettings(),
		],
		[
			'a trigger that could not write its row, and whose On Error would let the callback out,',
			{ onError: 'continueRegularOutput' },
			async () => await scene.stage.database.refuse('no_rows', INSERT, '1 = 1', 'The disk is full'),
			async () => await scene.stage.database.forget('no_rows'),
		],
	];

	test.each(FAILURES)(
		'%s runs again when it is retried, and the callback starts nothing more',
		async (_, node, fail, mend) => {
			const { client, collector } = scene;
			const trigger = scene.trigger({ options: { downloadResults: true } }, node);
			const target = await scene.publish(trigger);
			const [taskId = ''] = scene.stage.finishedTasks(1);
			await fail();
			await deliverAll(target, [taskId]);
			expect(collector.seen).toEqual([]);
			await mend();

			const [{ id = '' } = {}] = await executionsOf(target);
			const failed = await client.waitForExecution(id);
			expect(failed.status).toBe('error');
			const isRow = node.onError !== undefined;
			expect(JSON.stringify(errorOf(failed)).includes('The disk is full')).toBe(isRow);
			const retried = await client.waitForExecution(await client.retryExecution(id));
			expect(retried.status).toBe('success');
			expect(collector.seen).toEqual([taskId]);
			await deliverAll(target, [taskId]);
			expect(collector.seen).toEqual([taskId]);
		},
	);

	test('a trigger that is renamed and moved on the canvas remembers its tasks', async () => {
		const target = await scene.publish();
		const [before = '', after = ''] = scene.stage.finishedTasks(2);
		await deliverAll(target, [before]);

		const moved: INode = { ...target.trigger, name: 'Task is done', position: [400, 200] };
		const { address } = await scene.publish(moved, { id: target.id });
		expect(address).toBe(target.address);
		await deliverAll(target, [before, after]);
		expect(scene.collector.seen).toEqual([before, after]);
	});

	test('a workflow that is switched off answers 404, and remembers its tasks when it is on again', async () => {
		const { client } = scene;
		const target = await scene.publish();
		const [before = '', meanwhile = ''] = scene.stage.finishedTasks(2);
		await deliverAll(target, [before]);

		await client.unpublish(target.id);
		// n8n takes it out of production some time after it has answered.
		await untilAnswer(404, target, before);
		// The sender of a callback that is answered so delivers it again.
		expect(await scene.deliver(target.address, meanwhile)).toBe(404);
		await client.publish(target.id, [target.path]);
		await deliverAll(target, [before, meanwhile]);
		expect(scene.collector.seen).toEqual([before, meanwhile]);
	});

	test('a copy of a workflow has an address and a memory of its own', async () => {
		const original = await scene.publish();
		// A workflow that is imported from a file keeps the ids of its nodes.
		const copy = await scene.publish({ ...original.trigger, webhookId: crypto.randomUUID() });
		const [taskId = ''] = scene.stage.finishedTasks(1);
		for (const target of [original, copy, original, copy]) await deliverAll(target, [taskId]);
		expect(scene.collector.seen).toEqual([taskId, taskId]);
	});

	describe('after a power cut', () => {
		let target: Published;
		let taskId: string;
		let failed: string;
		beforeAll(async () => {
			const { stage } = scene;
			target = await scene.publish();
			[taskId = ''] = stage.finishedTasks(1);
			await stage.database.refuse('no_rows', INSERT, '1 = 1', 'The disk is full');
			await deliverAll(target, [taskId]);
			await stage.database.forget('no_rows');
			[{ id: failed } = { id: '' }] = await executionsOf(target);
			// The process of before would answer that it has accepted these callbacks.
			await stage.killAndRestart();
			for (const { target: each } of delivered) await scene.client.waitForWebhook(each.path);
		});

		test('an execution that could not write its row starts nothing, however often it is retried, when another has started the task', async () => {
			const { client, collector } = scene;
			await deliverAll(target, [taskId]);
			expect(collector.seen).toEqual([taskId]);
			for (let retries = 0; retries < 3; retries++) {
				await client.waitForExecution(await client.retryExecution(failed));
			}
			expect(collector.seen).toEqual([taskId]);
		});

		test('whatever was delivered before starts nothing', async () => {
			for (const each of [...delivered]) await deliverAll(each.target, [each.taskId]);
			expect(scene.collector.seen).toEqual([]);
		});
	});

	test('the documented statement clears the rows of old tasks alone', async () => {
		const guide = readFileSync(join(__dirname, '../../docs/modes.md'), 'utf8');
		const [onPostgres = '', onSqlite = ''] =
			guide.match(/^DELETE FROM processed_data .*;$/gm) ?? [];
		const target = await scene.publish();
		await deliverAll(target, scene.stage.finishedTasks(3));
		const [old] = await rowsOf(target);
		const { database } = scene.stage;
		const longAgo = new Date(Date.now() - 31 * 24 * 3_600_000).toISOString();
		await database.execute(
			`update processed_data set "createdAt" = '${longAgo}' where context = '${old?.context}'`,
		);
		await database.execute(database instanceof SqliteDatabase ? onSqlite : onPostgres);
		const contexts = (await rowsOf(target)).map(({ context }) => context);
		expect(contexts).toHaveLength(2);
		expect(contexts).not.toContain(old?.context);
	});

	test('each task is one row, which goes when the workflow is deleted', async () => {
		const target = await scene.publish();
		const tasks = scene.stage.finishedTasks(3);
		await deliverAll(target, [...tasks, ...tasks]);
		const rows = await rowsOf(target);
		const ofTheTrigger = new RegExp(`^n:${target.trigger.id}:[0-9a-f]{32}$`);
		expect(rows.map(({ context }) => context)).toEqual(
			tasks.map(() => expect.stringMatching(ofTheTrigger)),
		);
		await scene.client.deleteWorkflow(target.id);
		expect(await rowsOf(target)).toEqual([]);
	});

	test('a reference comes from the row to the trigger, and an altered one is refused', async () => {
		const { client, service } = scene;
		service.configure({ latencyMs: 1000 });
		const target = await scene.publish();
		const rows = ['row 7', 'ü & "quoted"'];
		const order = scene.image({
			prompt: 'A lighthouse',
			completion: 'trigger',
			callbackUrl: target.url,
			options: { reference: '={{ $json.row }}' },
		});
		const items = rows.map((row) => ({ row }));
		const ordered = itemsOf(await scene.run('Order', itemNodes('Rows', items), order));
		expect(ordered.map(({ reference }) => reference)).toEqual(rows);
		const executions = await client.waitForExecutions(target.id, 2);
		const all = await Promise.all(executions.map(async ({ id }) => await client.getExecution(id)));
		const finished = all.flatMap((execution) => itemsOf(execution, 'Finished'));
		const byTask = new Map(finished.map(({ taskId, reference }) => [taskId, reference]));
		expect(ordered.map(({ taskId }) => byTask.get(taskId))).toEqual(rows);

		const { taskId = '', webhookUrl = '' } = service.tasks.get(String(ordered[0]?.taskId)) ?? {};
		const altered = webhookUrl.replace('row+7', 'row+8');
		expect(altered).not.toBe(webhookUrl);
		expect(await scene.deliver(altered, taskId)).toBe(401);
		expect(await scene.deliver(webhookUrl, taskId)).toBe(200);
	});
});

/** What is made up for where callbacks are lost and the run that notifies a trigger does not simply end. */
describe('where callbacks are lost, and the run does not simply end', () => {
	let callbackUrl: string;
	beforeAll(async () => {
		({ url: callbackUrl } = await scene.publish());
	});

	const story = atTheSameTime(test, 500);

	const MINUTE = 60_000;

	/** Starts a run that creates a task for each object of switches, one after the other. */
	async function start(name: string, switches: IDataObject[], timeouts: number[] = []) {
		const fields = switches.map((_, index) => ({ timeout: timeouts[index] ?? 86_400 }));
		const lost = switches.map((each) => ({ callbackLost: true, ...each }));
		const options = { timeout: '={{ $json.timeout }}', maxInFlight: 1 };
		const order = scene.image({ completion: 'trigger', callbackUrl, options });
		return await scene.start(name, prompts(name, lost, fields), order);
	}

	const created = async (run: Run, count: number) =>
		await until(`${count} tasks`, MINUTE, () => run.tasks.length >= count);

	const refusedFor = (seconds: number) => ({
		createStatus: { status: 429, times: 1, retryAfter: seconds },
	});

	story('what a run had created when it was stopped', async () => {
		const run = await start('Stopped', [{ latencyMs: 5_000 }, refusedFor(600)]);
		await created(run, 1);
		await run.stop();
		await scene.arrived(run.taskIds[0]);
		expect(run.tasks).toHaveLength(1);
		expect((await run.now()).status).toBe('canceled');
	});

	story('the first tasks of a batch, while others are still to be created', async () => {
		const later = { latencyMs: 5_000, ...refusedFor(360) };
		const run = await start('Long', [{ latencyMs: 5_000 }, later]);
		await created(run, 1);
		await scene.arrived(run.taskIds[0]);
		expect(run.tasks).toHaveLength(1);
		await run.stop();
	});

	story(
		'a task that was given up while another one was waited for is named at the end',
		async () => {
			const switches = [{ latencyMs: 3_000_000 }, { latencyMs: 9_000 }];
			const run = await start('Given up', switches, [5, 600]);
			await created(run, 2);
			const [givenUp, late] = run.taskIds;
			await scene.arrived(late);
			await until('the looks to end', 2 * MINUTE, async () =>
				(await run.others()).every(({ status }) => hasEnded(status)),
			);
			const errors = (await run.others()).filter(({ status }) => status === 'error');
			expect(errors).toHaveLength(1);
			const look = await scene.client.getExecution(errors[0]?.id ?? '');
			expect(JSON.stringify(errorOf(look))).toContain(givenUp);
			expect(itemsOf(await run.now())).toHaveLength(2);
		},
	);
});
