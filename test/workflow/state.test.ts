import {
	type IDataObject,
	type INodeExecutionData,
	type IRun,
	createRunExecutionData,
	WAIT_FOR_SUB_EXECUTION,
} from 'n8n-workflow';
import nock from '../nock';

import { accountOf, TaskStart } from '../../nodes/MediaGeneration/callback/startOnce';
import { callbackAddress, isTokenValid } from '../../nodes/MediaGeneration/callback/callbackToken';
import {
	isRegistered,
	register,
	triggerOfThisWorkflow,
} from '../../nodes/MediaGeneration/callback/triggerCallbackUrl';
import { readDone } from '../../nodes/MediaGeneration/suspend/checkState';
import {
	CHECK,
	nodeName,
	REPORT,
	SUPERVISE,
} from '../../nodes/MediaGeneration/suspend/checkWorkflow';
import present from '../fixtures/state/present.json';
import {
	API_KEY,
	executeContext,
	hookContext,
	type Ran,
	retryExecution,
	SERVICE,
	startTrigger,
	startWorkflow,
	type TestNode,
	TRIGGER,
	TRIGGER_PATH,
} from './engine';
import { store, useProcessedData } from './processedData';
import { keepsGoing } from './support';
import { passTime, time, virtualTime } from './time';
import { callBack, turnOf } from './subExecution';
import { EPOCH as NOW } from '../virtualTime';

/**
 * Whatever outlives a process (docs/development.md): as the version stored it. The files in
 * test/fixtures/state are never changed once a version is released; a new format gets a new file.
 */

const N8N = 'https://n8n.test';
const START = { account: accountOf(SERVICE, 'credential'), taskId: 'task-1' };
const PROMPTS = ['A lighthouse', 'A harbour'];
const ITEMS = PROMPTS.map((prompt) => ({ json: { prompt } }));

useProcessedData();
virtualTime();

const node = (parameters: IDataObject): TestNode => ({
	parameters: { prompt: '={{ $json.prompt }}', ...parameters },
});
const FAILING = node({ options: { timeout: 10 } });
const SUSPENDING = node({ options: { suspendAfter: 0 } });

/** The tasks are in these states from now on; a create that is sent fails the test. */
function states(...each: string[]): void {
	nock.cleanAll();
	for (const [index, state] of each.entries()) {
		const taskId = `task-${index + 1}`;
		const path = `/api/generate/${taskId}`;
		nock(SERVICE).persist().get(path).reply(200, { taskId, state, resultUrls: [] });
	}
}

/** What n8n stores of a node's execution, as far as it is ours. */
interface Stored {
	context: IDataObject;
	input: INodeExecutionData[];
}

const clone = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** Each test has a copy of its own. */
const stored = () => clone(present) as typeof present & { failedRun: Stored; suspendedRun: Stored };

/** Retries an execution that ended in an error from the list of executions. */
async function retried(node: TestNode, { context, input }: Stored): Promise<Ran> {
	const first = { node: { name: 'Media' } as never, data: { main: [input] }, source: null };
	const executionData = { contextData: { 'node:Media': context }, nodeExecutionStack: [first] };
	const run = { data: createRunExecutionData({ executionData }) } as IRun;
	return await passTime(retryExecution({ node, items: ITEMS }, { run }));
}

/** Delivers the callback of a task to a suspended execution. */
async function resume({ context }: Stored, taskId: string) {
	const path = '/webhook-waiting/1/media-generation';
	const address = new URL(callbackAddress(N8N + path, API_KEY));
	const query = Object.fromEntries(address.searchParams);
	const { response, admit } = callBack(path, query, taskId, { kept: context });
	await admit();
	return { status: response.statusCode, body: response.body };
}

/** One turn of the node in a sub-execution, with what n8n has stored of it. */
async function turn(
	operation: string,
	input: INodeExecutionData[],
	{ context = {}, others = {} }: { context?: IDataObject; others?: Record<string, unknown> } = {},
) {
	const given = { kept: clone(context), stored: others };
	const { put, kept, ...ran } = await passTime(turnOf(operation, clone(input), given));
	return { ...ran, output: put, context: clone(kept) };
}

/** The first two turns of a sub-execution that checks: it notes its address, and goes to sleep. */
async function asleep(input: INodeExecutionData[]) {
	const begun = await turn(CHECK, input);
	const { context } = await turn(CHECK, begun.output ?? [], { context: begun.context });
	return { context, input: clone(input) };
}

/** The execution that waits for the supervisor; each has the id 1 here. */
const PARENT = {
	resultData: {},
	executionData: { nodeExecutionStack: [{ metadata: { waitingChildExecutionIds: ['1'] } }] },
};

/** An execution that the trigger has started, with what it has noted. */
function triggered(context: IDataObject) {
	const execution = executeContext({ node: TRIGGER });
	Object.assign(execution.getContext('node'), clone(context));
	return execution;
}

/** What became of each item. */
const endsOf = (items: INodeExecutionData[]) => items.map(({ json }) => [json.taskId, json.state]);

/** What an execution reads of the sub-execution that it has started. */
const keeping = (operation: string, kept: IDataObject) =>
	createRunExecutionData({
		executionData: { contextData: { [`node:${nodeName(operation)}`]: kept } },
	});
const WITH_RESUME_URL = { resumeUrl: `${N8N}/webhook-waiting/3/media-generation` };

const partOf = ({ run }: Ran): Stored => {
	const { contextData, nodeExecutionStack } = run.data.executionData ?? {};
	return clone({
		context: contextData?.['node:Media'] ?? {},
		input: nodeExecutionStack?.[0]?.data.main?.[0] ?? [],
	});
};

/** All that the present version stores, made by its own code. */
async function storedToday() {
	nock(SERVICE)
		.persist()
		.post('/api/generate')
		.reply(200, (_, body) => {
			const { input, webhook_url: url } = body as { input: IDataObject; webhook_url?: string };
			if (input.prompt === PROMPTS[0]) return { taskId: 'task-1' };
			// Nobody knows whether this one is a task.
			return url === undefined ? {} : { taskId: 'task-2' };
		});
	for (const taskId of ['task-1', 'task-2']) {
		nock(SERVICE).persist().get(`/api/generate/${taskId}`).reply(200, { taskId, state: 'PENDING' });
	}
	const failed = await passTime(startWorkflow({ node: FAILING, items: ITEMS }).result);

	time.setWall(NOW);
	const run = async (parameters: IDataObject) => {
		const host = { getRunExecutionData: async () => keeping(SUPERVISE, WITH_RESUME_URL) };
		const test = { node: node(parameters), items: ITEMS, host };
		const ran = await passTime(startWorkflow(test).result);
		return { ...ran, given: ran.handed[0] ?? [] };
	};
	const suspended = await run({ options: { suspendAfter: 0 } });
	const others = { 3: keeping(CHECK, WITH_RESUME_URL) };
	const supervisor = await turn(SUPERVISE, suspended.given, { others });
	const checker = await asleep(clone(supervisor.handed[0] ?? []));
	time.setWall(NOW);
	const notified = await run({
		completion: 'trigger',
		callbackUrl: N8N + TRIGGER_PATH,
		options: { reference: 'row 7' },
	});
	const delivery = await asleep(notified.given);
	states('SUCCESS', 'SUCCESS');
	const done = await turn(CHECK, checker.input, { ...clone(checker), others: { 1: PARENT } });

	const staticData = {};
	register(hookContext({ node: { ...TRIGGER, id: 'trigger' }, staticData }).hook, true);
	const started = executeContext({ node: TRIGGER });
	await new TaskStart(started, START, 'callback').claim();
	return {
		failedRun: partOf(failed),
		suspendedRun: partOf(suspended),
		supervisor: { context: supervisor.context, input: suspended.given },
		checker,
		delivery,
		done: clone(done.output ?? []),
		triggeredRun: { context: clone(started.getContext('node')) },
		staticData,
		ledger: Object.fromEntries(store.rows),
		callbackAddress: callbackAddress(N8N + TRIGGER_PATH, API_KEY, 'row 7'),
	};
}

/** Times to the second, and no signature of n8n, which is another one each time. */
const settled = <T>(value: T): T =>
	JSON.parse(
		JSON.stringify(value, (_name, part: unknown) =>
			typeof part === 'number' && part > NOW / 2 ? part - (part % 1000) : part,
		).replace(/\?signature=[0-9a-f]+/g, ''),
	) as T;

it('is written today as its file says: where this fails, raise the version of what has changed', async () => {
	expect(settled(await storedToday())).toEqual(present);
});

describe('of the present version', () => {
	const { failedRun, suspendedRun, supervisor, checker, delivery, done, triggeredRun } = stored();
	const { staticData, ledger, callbackAddress: address } = stored();

	it('a failed run is retried: its task is adopted, nothing is created, and the unanswered create is not sent again', async () => {
		states('SUCCESS');
		const { output } = await retried({ ...FAILING, ...keepsGoing }, failedRun);
		expect(endsOf(output)).toEqual([
			['task-1', 'SUCCESS'],
			[undefined, undefined],
		]);
		expect(output[1]?.json.error).toContain('not known whether the task was created');
	});

	it('a suspended run that was cancelled is retried: nothing is created', async () => {
		states('SUCCESS', 'SUCCESS');
		const { output } = await retried(SUSPENDING, { ...suspendedRun, input: ITEMS });
		expect(endsOf(output)).toEqual([
			['task-1', 'SUCCESS'],
			['task-2', 'SUCCESS'],
		]);
	});

	it('a suspended run takes its callbacks', async () => {
		states('SUCCESS', 'SUCCESS');
		const told = nock(N8N)
			.post('/webhook-waiting/3/media-generation')
			.query(true)
			.reply(200, { accepted: true });
		const own = nock('http://127.0.0.1:5678');
		own.post('/webhook-waiting/3/media-generation').query(true).reply(404, {});
		const { status, body } = await passTime(resume(suspendedRun, 'task-1'));
		expect([status, body]).toEqual([200, { accepted: true, resumed: true }]);
		expect(told.isDone()).toBe(true);
	});

	it('a trigger is found by the action node of its workflow', async () => {
		const trigger = { ...TRIGGER, id: 'trigger' };
		const context = executeContext({ staticData: clone(staticData), triggers: [trigger] });
		context.getMode = () => 'manual';
		expect(await triggerOfThisWorkflow(context)).toBe(N8N + TRIGGER_PATH);
		expect(isRegistered(hookContext({ node: trigger, staticData: clone(staticData) }).hook)).toBe(
			true,
		);
	});

	it('a trigger takes a callback at the address that the service has', () => {
		const { pathname, searchParams } = new URL(address);
		const reference = searchParams.get('reference') ?? undefined;
		expect(isTokenValid(searchParams.get('token'), pathname, API_KEY, reference)).toBe(true);
	});

	it('a ledger lets no task start the workflow again', async () => {
		for (const [row, entries] of Object.entries(ledger)) store.rows.set(row, [...entries]);
		const record = { taskId: 'task-1', state: 'SUCCESS' };
		const { output, run } = await passTime(
			startTrigger({ node: TRIGGER }, [{ json: { ...START, record, callbackId: 'x' } }]),
		);
		expect([output, run.status]).toEqual([[], 'success']);
	});

	it('a check goes on and finds the results', async () => {
		states('SUCCESS', 'FAILURE');
		const { output } = await turn(CHECK, checker.input, { ...checker, others: { 1: PARENT } });
		expect(endsOf(readDone(output ?? [])?.results ?? [])).toEqual([
			['task-1', 'SUCCESS'],
			['task-2', 'FAILURE'],
		]);
	});

	it('a supervisor whose checker has died starts another with what that one knew', async () => {
		const others = { 3: keeping(CHECK, checker.context) };
		const { begun } = await turn(SUPERVISE, supervisor.input, { ...supervisor, others });
		const items = [{ json: { taskId: 'task-1' } }, {}];
		expect(begun).toMatchObject([{ purpose: 'results', items }]);
	});

	it('a supervisor hands on the results', async () => {
		const { output } = await turn(REPORT, done as INodeExecutionData[]);
		expect(output?.map(({ json }) => json)).toEqual(done.slice(1).map(({ json }) => json));
	});

	it('a task whose callback is lost is redelivered with its reference', async () => {
		states('SUCCESS', 'PENDING');
		const trigger = nock(N8N)
			.post(TRIGGER_PATH, { taskId: 'task-1', state: 'SUCCESS' })
			.query(({ reference, token }) => isTokenValid(token, TRIGGER_PATH, API_KEY, reference))
			.reply(200, { accepted: true });
		const { context } = await turn(CHECK, delivery.input, delivery);
		expect(trigger.isDone()).toBe(true);
		expect(context).toMatchObject({ state: { deliveries: [{ taskId: 'task-2' }] } });
	});

	it('an execution goes on with the task that it has started with', async () => {
		const context = triggered(triggeredRun.context);
		const start = new TaskStart(context, START, 'callback');
		expect([await start.isTaken(), await start.claim()]).toEqual([false, true]);
	});
});

/** Checks and supervisors: checkLoop.test.ts. The journal of the creates: createJournal.test.ts. */
describe('of a newer version is refused', () => {
	const OTHER = /another version of (this package|n8n-nodes-media-generation)/;
	const { triggeredRun } = raised(stored());

	it('what an execution of the trigger has noted', async () => {
		const context = triggered(triggeredRun.context);
		await expect(new TaskStart(context, START, 'callback').claim()).rejects.toThrow(OTHER);
	});
});

it('a check that dies of what a newer version has stored is followed by one that begins anew', async () => {
	const { supervisor, checker } = stored();
	const others = { 3: keeping(CHECK, raised(checker.context)) };
	const { begun, until } = await turn(SUPERVISE, supervisor.input as [], {
		...supervisor,
		others,
	});
	expect(begun).toMatchObject([{ version: 1 }]);
	expect(until).toEqual(WAIT_FOR_SUB_EXECUTION);
});

/** The same as a newer version would store it. */
function raised<T>(stored: T): T {
	return JSON.parse(
		JSON.stringify(stored, (name, value: unknown) =>
			name === 'version' && typeof value === 'number' ? value + 1 : value,
		),
	) as T;
}
