import type { IDataObject, INode } from 'n8n-workflow';
import { setTimeout as sleep } from 'node:timers/promises';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackAddress';
import { settled } from '../../nodes/MediaGeneration/shared/promises';
import { type Execution, type ExecutionSummary, hasEnded, until } from '../n8n/client';
import { bySenders, deliver, itemNodes, ONE_REQUEST, prompts } from './nodes';
import { atTheSameTime, errorOf, itemsOf, Run, statesOf, succeeded } from './run';
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
			'a trigger that could not write its row, and whose On Error would let the callback out,',
			{ onError: 'continueRegularOutput' },
			async () => await scene.stage.database.refuse('no_rows', INSERT, '1 = 1', 'The disk is full'),
			async () => await scene.stage.database.forget('no_rows'),
		],
	];

	test.each(FAILURES)(
		'%s runs again when it is retried, and the callback starts nothing more',
		async (_, settings, fail, mend) => {
			const { client, collector } = scene;
			const target = await scene.publish(scene.trigger({}, settings));
			const [taskId = ''] = scene.stage.finishedTasks(1);
			await fail();
			await deliverAll(target, [taskId]);
			expect(collector.seen).toEqual([]);
			await mend();

			const [{ id = '' } = {}] = await executionsOf(target);
			const failed = await client.waitForExecution(id);
			expect(failed.status).toBe('error');
			const isRow = settings.onError !== undefined;
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

		test('Retry execution always starts, also when another execution has started the task; a callback starts nothing then', async () => {
			const { client, collector } = scene;
			await deliverAll(target, [taskId]);
			expect(collector.seen).toEqual([taskId]);
			for (let starts = 2; starts <= 3; starts++) {
				await client.waitForExecution(await client.retryExecution(failed));
				expect(collector.seen).toEqual(Array(starts).fill(taskId));
			}
			await deliverAll(target, [taskId]);
			expect(collector.seen).toHaveLength(3);
		});

		test('whatever was delivered before starts nothing', async () => {
			for (const each of [...delivered]) await deliverAll(each.target, [each.taskId]);
			expect(scene.collector.seen).toEqual([]);
		});
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

/** The execution that makes up for callbacks that do not come. */
describe('where callbacks do not come as they should', () => {
	/** Triggers of other workflows: as it should be, with another key, and not published. */
	let published: Published;
	let wrongKey: Published;
	let unpublished: Published;
	let otherCredential: { id: string; name: string };
	let badCredential: { id: string; name: string };
	const TYPE = 'mediaGenerationApi';
	const data = (apiKey = scene.service.apiKey) => ({ baseUrl: scene.service.url, apiKey });

	beforeAll(async () => {
		const { client } = scene;
		scene.clear();
		otherCredential = await client.createCredential('Second', TYPE, data());
		badCredential = await client.createCredential('Bad', TYPE, data('sk-live-wrong'));
		const withBad = scene.trigger({}, { credentials: { [TYPE]: badCredential } });
		published = await scene.publish();
		wrongKey = await scene.publish(withBad);
		unpublished = await scene.publish();
		await client.unpublish(unpublished.id);
	});

	const story = atTheSameTime(test, 500);

	const MINUTE = 60_000;

	interface Told {
		/** The trigger: by default that of another workflow. */
		callbackUrl?: string;
		/** *Timeout* of each task, seconds. */
		timeouts?: number[];
	}

	/** Nodes that create a task for each object of switches, one after the other. */
	function orders(name: string, switches: IDataObject[], told: Told = {}) {
		const { callbackUrl = published.url, timeouts = [] } = told;
		const fields = switches.map((_, index) => ({ timeout: timeouts[index] ?? 86_400 }));
		const options = { timeout: '={{ $json.timeout }}' };
		const order = scene.image({ completion: 'trigger', callbackUrl, options });
		return [prompts(name, switches, fields), order];
	}

	const lost = (count: number, more: IDataObject = {}): IDataObject[] =>
		Array<IDataObject>(count).fill({ callbackLost: true, latencyMs: 1_000, ...more });

	const start = async (name: string, switches: IDataObject[], told?: Told) =>
		await scene.start(name, ...orders(name, switches, told));

	/** Starts a run whose trigger is in the same workflow. */
	async function startBeside(name: string, switches: IDataObject[], trigger = scene.trigger()) {
		const more = { orders: orders(name, switches, { callbackUrl: '' }) };
		const lane = await scene.publish(trigger, more);
		const run = new Run(scene, await scene.client.run(lane.id), lane.id, name);
		return { run, lane, more };
	}

	const created = async (run: Run, count: number) =>
		await until(`${count} tasks`, MINUTE, () => run.tasks.length >= count);

	/** Behind a trigger: it has the files. */
	const fetching = () =>
		scene.media(
			{
				resource: 'task',
				operation: 'wait',
				taskId: '={{ $json.taskId }}',
				options: { suspendAfter: 0 },
			},
			{ name: 'Files' },
		);

	const refusedFor = (seconds: number) => ({
		createStatus: { status: 429, times: 1, retryAfter: seconds },
	});

	const CHECK = 'Makes up for lost callbacks';

	/** The executions that make up for the lost callbacks of a run, oldest first, as n8n has stored them. */
	async function checksOf(run: Run): Promise<Execution[]> {
		const others = await run.others();
		// n8n removes such an execution when it succeeds.
		const found = others.map(async ({ id }) => await settled(scene.client.getExecution(id)));
		const all = (await Promise.all(found)).flatMap((each) => ('value' in each ? each.value : []));
		const isCheck = ({ data: { resultData, executionData } }: Execution) =>
			CHECK in resultData.runData ||
			executionData?.nodeExecutionStack.some(({ node: { name } }) => name === CHECK);
		return all.filter(isCheck).reverse();
	}

	/** What the node in such an execution shows while it sleeps. */
	const hintOf = (check?: Execution) =>
		JSON.stringify(check?.data.resultData.runData[CHECK]?.at(-1)?.hints ?? []);

	/** Until all such executions of a run have succeeded, which n8n stores while they wait, and no longer. */
	async function expectGone(run: Run): Promise<void> {
		await until('the checks to end', 4 * MINUTE, async () => {
			const checks = await checksOf(run);
			for (const { status } of checks) expect(['running', 'waiting', 'success']).toContain(status);
			return checks.length === 0;
		});
	}

	/** The executions of a run that have failed, at the end of all of them. */
	async function failed(run: Run): Promise<Execution[]> {
		let checks: Execution[] = [];
		await until('the checks to fail', 4 * MINUTE, async () => {
			checks = await checksOf(run);
			return checks.length > 0 && checks.every(({ status }) => hasEnded(status));
		});
		return checks;
	}

	/** Each of the tasks has started the workflow of its trigger once. */
	async function expectOnce(run: Run): Promise<void> {
		const { taskIds } = run;
		for (const taskId of taskIds) await scene.arrived(taskId);
		const arrived = scene.collector.seen.filter((taskId) => taskIds.includes(taskId));
		expect(arrived.sort()).toEqual([...taskIds].sort());
	}

	const callbacksOf = ({ taskIds }: Run) =>
		scene.service.callbacks.filter(({ taskId }) => taskIds.includes(taskId));

	story('all of 20 are lost, and the trigger is in the same workflow', async () => {
		const { run } = await startBeside('Own', lost(20));
		expect(statesOf(succeeded(await run.end()))).toEqual(Array(20).fill('PENDING'));
		await expectOnce(run);
		await expectGone(run);
		// One for each task, and no execution of the trigger that has started nothing.
		expect(await run.others()).toHaveLength(20);
	});

	story('all of 20 are lost, and the trigger is in another workflow', async () => {
		const run = await start('Other', lost(20));
		await run.end();
		await expectOnce(run);
		await expectGone(run);
		expect(await run.others()).toEqual([]);
		// One read of the check, and one of the trigger.
		expect(run.reads).toBe(40);
	});

	story('they come twice, and later than the check has delivered', async () => {
		const late = { callbackDelayMs: 120_000, callbackCopies: 2, latencyMs: 500 };
		const run = await start('Late', Array<IDataObject>(3).fill(late));
		await run.end();
		for (const taskId of run.taskIds) await scene.arrived(taskId);
		await expectGone(run);
		expect(callbacksOf(run)).toEqual([]);
		await until('the late callbacks', 4 * MINUTE, () => callbacksOf(run).length >= 6);
		await expectOnce(run);
	});

	story('they come: the execution that waits for them reads and delivers nothing', async () => {
		const { run } = await startBeside('Came', Array<IDataObject>(5).fill({ latencyMs: 500 }));
		await created(run, 5);
		await expectOnce(run);
		await until('the check', MINUTE, async () => (await checksOf(run)).length > 0);
		await expectGone(run);
		// Those of the trigger.
		expect(run.reads).toBe(5);
	});

	story('the trigger gets another credential of the same account meanwhile', async () => {
		const trigger = scene.trigger();
		const { run, lane, more } = await startBeside(
			'Changed',
			lost(2, { latencyMs: 6_000 }),
			trigger,
		);
		await run.end();
		const changed = { ...trigger, credentials: { [TYPE]: otherCredential } };
		await scene.publish(changed, { ...more, id: lane.id });
		await expectOnce(run);
		await expectGone(run);
		// The executions of the trigger: none of them started nothing.
		expect(await run.others()).toHaveLength(2);
	});

	story('the trigger has another key, until the user mends that', async () => {
		const run = await start('Wrong key', lost(2), { callbackUrl: wrongKey.url });
		await run.end();
		await until('the refusal', 2 * MINUTE, async () => {
			const [check] = await checksOf(run);
			return hintOf(check).includes('HTTP 401');
		});
		const [waiting] = await checksOf(run);
		expect(waiting?.status).toBe('waiting');
		expect(hintOf(waiting)).toContain('0 of 2 results have reached the trigger');
		await scene.client.updateCredential({ ...badCredential, type: TYPE }, data());
		await expectOnce(run);
		await expectGone(run);
	});

	story('the workflow of the trigger is not published, until the user does it', async () => {
		const run = await start('Unpublished', lost(2), { callbackUrl: unpublished.url });
		await run.end();
		await until('the refusal', 2 * MINUTE, async () => {
			const [check] = await checksOf(run);
			return hintOf(check).includes('HTTP 404');
		});
		await scene.client.publish(unpublished.id, [unpublished.path]);
		await expectOnce(run);
		await expectGone(run);
	});

	story('what a run had created when it was stopped', async () => {
		const run = await start('Stopped', [...lost(1), refusedFor(600)]);
		await created(run, 1);
		await run.stop();
		await scene.arrived(run.taskIds[0]);
		expect(run.tasks).toHaveLength(1);
		expect((await run.now()).status).toBe('canceled');
	});

	story('the first tasks of a batch, while others are still to be created', async () => {
		const run = await start('Long', [...lost(1), { callbackLost: true, ...refusedFor(360) }]);
		await created(run, 1);
		await scene.arrived(run.taskIds[0]);
		expect(run.tasks).toHaveLength(1);
		await run.stop();
	});

	story(
		'a task that was given up while another one was waited for is named at the end',
		async () => {
			const switches = [...lost(1, { latencyMs: 3_000_000 }), ...lost(1, { latencyMs: 9_000 })];
			const run = await start('Given up', switches, { timeouts: [5, 600] });
			await created(run, 2);
			const [givenUp = '', late] = run.taskIds;
			await scene.arrived(late);
			const checks = await failed(run);
			expect(checks.map(({ status }) => status)).toEqual(['error']);
			expect(JSON.stringify(checks.map(errorOf))).toContain(givenUp);
			expect(itemsOf(await run.now())).toHaveLength(2);
		},
	);

	test('n8n is killed while a Task: Wait behind the trigger sleeps, and while an execution looks: each task starts once', async () => {
		const { client, service, stage } = scene;
		service.configure({ mediaStatus: 503 });
		const lane = await scene.publish(scene.trigger(), { before: [fetching()] });
		const fetched = await start('Fetch', lost(1), { callbackUrl: lane.url });
		const ofLane = async (...status: ExecutionSummary['status'][]) =>
			await client.listExecutions({ workflowId: lane.id, status });
		await until('the sleep', 4 * MINUTE, async () => (await ofLane('waiting')).length > 0);
		const looking = await start('Look', lost(1));
		service.configure({ mediaStatus: 503, readDelayMs: 20_000 });
		await until('the look', 2 * MINUTE, () => looking.reads > 0);
		await stage.killAndRestart();
		service.resetSettings();
		for (const { path } of [lane, published]) await client.waitForWebhook(path);
		// An execution that slept goes on by itself. An execution that was awake goes on when it is retried.
		let killed: Execution | undefined;
		await until('n8n to see what was killed', MINUTE, async () => {
			[killed] = (await checksOf(looking)).filter(({ status }) => status === 'crashed');
			return killed !== undefined;
		});
		const awake = await ofLane('crashed');
		for (const { id } of [...awake, ...(killed ? [killed] : [])]) await client.retryExecution(id);
		await expectOnce(fetched);
		await expectOnce(looking);
		expect(await ofLane('success')).toHaveLength(1);
	});
});
