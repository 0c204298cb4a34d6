import {
	type ExecutionError,
	type IDataObject,
	type INodeExecutionData,
	UnexpectedError,
} from 'n8n-workflow';
import nock from '../nock';

import { WAIT_PARAMETERS } from '../../nodes/MediaGeneration/callback/delivery';
import { claimStart } from '../../nodes/MediaGeneration/callback/ledger';
import {
	callbackAddress,
	isRegistered,
	register,
	triggerOfThisWorkflow,
} from '../../nodes/MediaGeneration/callback/callbackAddress';
import { isTokenValid } from '../../nodes/MediaGeneration/shared/addresses';
import present from '../fixtures/state/present.json';
import {
	API_KEY,
	executeContext,
	hookContext,
	type Ran,
	SERVICE,
	startTrigger,
	startWorkflow,
	type TestNode,
	TRIGGER,
	TRIGGER_PATH,
} from './engine';
import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { N8N_URL as N8N } from './host';
import { store, useProcessedData } from './processedData';
import { keepsGoing, MINUTE } from './support';
import { passTime, time, virtualTime } from './time';
import { EPOCH as NOW } from '../virtualTime';

/**
 * Whatever outlives a process (docs/development.md): as the version stored it. The files in
 * test/fixtures/state are never changed once a version is released; a new format gets a new file.
 */

const PROMPTS = ['A lighthouse', 'A harbour'];
const ITEMS = PROMPTS.map((prompt) => ({ json: { prompt } }));

useProcessedData();
virtualTime();

const node = (parameters: IDataObject): TestNode => ({
	parameters: { prompt: '={{ $json.prompt }}', ...parameters },
});
const FAILING = node({ options: { timeout: 10 } });
const SLEEPING = node({ options: { suspendAfter: 0 } });
const CHECKING: TestNode = { parameters: WAIT_PARAMETERS };

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
const stored = () =>
	clone(present) as typeof present & {
		failedRun: Stored;
		sleepingRun: Stored;
		callbackCheck: Stored;
	};

/** Retries an execution, with the error that it ended in, or one that was killed, from the list of executions. */
async function retried(
	node: TestNode,
	{ context, input }: Stored,
	error?: ExecutionError,
): Promise<StoredRun> {
	const first = { node: { name: 'Media' } as never, data: { main: [input] }, source: null };
	const executionData = { contextData: { 'node:Media': context }, nodeExecutionStack: [first] };
	const task = { startTime: 0, executionTime: 0, executionIndex: 0, source: [], error };
	const resultData = error ? { error, lastNodeExecuted: 'Media', runData: { Media: [task] } } : {};
	const n8n = new WorkflowN8n({ node, items: ITEMS });
	return await n8n.crashed({ executionData, resultData }).retry('saved');
}

/** What became of each item. */
const endsOf = (items: INodeExecutionData[]) => items.map(({ json }) => [json.taskId, json.state]);

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

	// n8n wakes it a minute later.
	time.setWall(NOW - MINUTE);
	const before = await new WorkflowN8n({ node: SLEEPING, items: ITEMS }).start();
	const sleeping = (await before.wake()).ran;

	time.setWall(NOW);
	const options = { reference: 'row 7' };
	const parameters = { completion: 'trigger', callbackUrl: N8N + TRIGGER_PATH, options };
	const notifying = { node: node(parameters), items: ITEMS };
	const { handed } = await passTime(startWorkflow(notifying).result);
	time.setWall(NOW);
	const checking = { node: CHECKING, items: handed[0] };
	const check = await passTime(startWorkflow(checking).result);

	const staticData = {};
	register(hookContext({ node: { ...TRIGGER, id: 'trigger' }, staticData }).hook, true);
	await claimStart(executeContext({ node: TRIGGER }), 'task-1');
	return {
		failedRun: partOf(failed),
		sleepingRun: partOf(sleeping),
		callbackCheck: { ...partOf(check), input: clone(handed[0] ?? []) },
		staticData,
		ledger: Object.fromEntries(store.rows),
		callbackAddress: callbackAddress(N8N + TRIGGER_PATH, API_KEY, 'row 7'),
	};
}

/** Times to the second, one writer for all rows, and no signature of n8n, which is another one each time. */
const settled = <T>(value: T): T =>
	JSON.parse(
		JSON.stringify(value, (_, part: unknown) =>
			typeof part === 'number' && part > NOW / 2 ? part - (part % 1000) : part,
		)
			.replace(/\?signature=[0-9a-f]+/g, '')
			.replace(/written by [0-9a-f-]{36}/g, 'written by one process'),
	) as T;

it('is written today as its file says: where this fails, raise the version of what has changed', async () => {
	jest.spyOn(Math, 'random').mockReturnValue(0.5);
	expect(settled(await storedToday())).toEqual(present);
	jest.restoreAllMocks();
});

describe('of the present version', () => {
	const { failedRun, sleepingRun, callbackCheck } = stored();
	const { staticData, ledger, callbackAddress: address } = stored();

	it('a failed run is retried: its task is adopted, nothing is created, and the unanswered create is not sent again', async () => {
		states('SUCCESS');
		const late = new UnexpectedError('Late') as never;
		const { output } = (await retried({ ...FAILING, ...keepsGoing }, failedRun, late)).ran;
		expect(endsOf(output)).toEqual([
			['task-1', 'SUCCESS'],
			[undefined, undefined],
		]);
		expect(output[1]?.json.error).toContain('not known whether the task was created');
	});

	it('a run that was killed while it slept is retried: nothing is created', async () => {
		states('SUCCESS', 'SUCCESS');
		const { output } = await (await retried(SLEEPING, { ...sleepingRun, input: ITEMS })).end();
		expect(endsOf(output)).toEqual([
			['task-1', 'SUCCESS'],
			// It is not known whether the second item has a task.
			[undefined, undefined],
		]);
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
			startTrigger({ node: TRIGGER }, [{ json: { baseUrl: SERVICE, taskId: 'task-1', record } }]),
		);
		expect([output, run.status]).toEqual([[], 'success']);
	});

	it('a task whose callback is lost is redelivered with its reference', async () => {
		states('SUCCESS', 'PENDING');
		const trigger = nock(N8N)
			.post(TRIGGER_PATH, { taskId: 'task-1', state: 'SUCCESS' })
			.query(({ reference, token }) => isTokenValid(token, TRIGGER_PATH, API_KEY, reference))
			.reply(200, { accepted: true });
		const check = await retried(CHECKING, callbackCheck);
		expect(check.isAsleep).toBe(true);
		await check.wake();
		expect(trigger.isDone()).toBe(true);
	});
});
