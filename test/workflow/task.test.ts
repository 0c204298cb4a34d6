import {
	type IDataObject,
	type INode,
	type INodeExecutionData,
	type IRunExecutionData,
	ManualExecutionCancelledError,
} from 'n8n-workflow';
import type { Settings } from '../service/settings';
import { EPOCH, tick } from '../virtualTime';
import { startWorkflow, type TestNode, type TestWorkflow } from './engine';
import { field, IMAGE_MODEL, imageNode, item, MINUTE, prompts, SECOND, stage } from './support';
import { passTime, settle, time } from './time';

/** Get and Wait, of tasks that exist. */

const on = stage();

/** Runs an operation on tasks, by default on one of each item. */
const taskRun = async (
	operation: string,
	items: Array<string | string[]> = [],
	parameters: IDataObject = {},
	more: TestNode = {},
) =>
	await on.run(
		{
			...more,
			parameters: { resource: 'task', operation, taskId: '={{ $json.taskId }}', ...parameters },
		},
		items.length === 0 ? undefined : items.map((taskId) => ({ json: { taskId } })),
	);

/** A task that was created earlier, by somebody else. */
const existing = (simulate: Settings = {}) =>
	on.service.createTask(IMAGE_MODEL, { prompt: 'A', simulate }).taskId;
const several = (length: number, latencyMs: number) =>
	Array.from({ length }, () => existing({ latencyMs }));
const unfinished = () => existing({ latencyMs: 3600 * SECOND });

const paired = (items: INodeExecutionData[]) => items.map(({ pairedItem }) => pairedItem);

describe('Get', () => {
	it('has exactly the fields of the contract, without model and input', async () => {
		const taskId = on.finishedTask();
		const { output } = await taskRun('get', [taskId]);
		const resultUrls = [`${on.service.mediaUrl}/media/${taskId}/1.png`];
		const record = expect.objectContaining({ input: { prompt: 'A' } }) as IDataObject;
		const json = { taskId, state: 'SUCCESS', resultUrls, creditsConsumed: 8, record };
		expect(output).toEqual([{ json, pairedItem: { item: 0 } }]);
	});

	it('reports FAILURE as an answer and not as an error, and PENDING without waiting', async () => {
		const { output, error } = await taskRun('get', [on.finishedTask('FAILURE'), unfinished()]);
		expect(error).toBeUndefined();
		expect(output[0]?.json).toMatchObject({ state: 'FAILURE', resultUrls: [], creditsConsumed: 0 });
		expect(field(output, 'state')).toEqual(['FAILURE', 'PENDING']);
		expect(on.requests('GET')).toHaveLength(2);
	});

	it.each(['continueRegularOutput', 'continueErrorOutput'] as const)(
		'loses none of many ids where one is unknown and one cannot be meant (%s)',
		async (onError) => {
			const [a, b] = [existing(), existing()];
			const taskId = `${a}\n..\ntask-unknown\n${b}`;
			const { output, errors } = await taskRun('get', ['', ''], { taskId }, { onError });
			expect(field(output, 'taskId').filter((id) => id === a || id === b)).toEqual([a, b, a, b]);
			const failed = [...errors, ...output].filter(({ json }) => json.error !== undefined);
			const told = ["'..'", 'task-unknown', "'..'", 'task-unknown'];
			expect(field(failed, 'error')).toEqual(told.map((part) => expect.stringContaining(part)));
			expect(paired(failed)).toEqual([0, 0, 1, 1].map((item) => ({ item })));
		},
	);
});

it('reads none of the tasks that wait for their turn where the execution is stopped', async () => {
	on.service.configure({ readDelayMs: 5 * SECOND });
	const taskId = several(15, 0);
	const node = { parameters: { resource: 'task', operation: 'get', taskId } };
	const { execution, result } = startWorkflow(on.workflow(node));
	while (on.requests('GET').length < 10) {
		await time.pass(1);
		await tick();
	}
	execution.cancel();
	await time.pass(5 * SECOND);
	await passTime(result);
	await time.pass(60 * SECOND);
	await settle();
	expect(on.requests('GET')).toHaveLength(10);
});

describe('Wait', () => {
	it('reads at once, and then until the task is finished, once in an interval for all items that name it', async () => {
		const taskId = existing({ latencyMs: 5 * SECOND });
		const { output } = await taskRun('wait', [taskId, taskId, taskId]);
		expect(output[0]?.json).not.toHaveProperty('model');
		expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS']);
		expect(on.requests('GET').map(({ at }) => at - EPOCH)).toEqual([0, 2000, 4000, 6000]);
	});

	it('for a failed task is an error with its id and the reason', async () => {
		const failing = { latencyMs: 3000, outcome: 'FAILURE' as const, failureMessage: 'Unsafe.' };
		const taskId = existing(failing);
		const ran = await taskRun('wait', [taskId]);
		expect(ran.error?.message).toBe(`Unsafe (task ${taskId})`);
		// This node has no prompt to change, and pays for nothing.
		expect(ran.description).toContain('Create another task with another prompt or input');
		expect(ran.description).not.toContain('pay');
	});

	it('that times out is an error with the id and the last state', async () => {
		const taskId = unfinished();
		const ran = await taskRun('wait', [taskId], { options: { timeout: 60 } });
		expect(ran.error?.message).toBe(
			`The task is not finished after 60 s; last state: PENDING (task ${taskId})`,
		);
		expect(ran.description).toContain('Wait for Task');
		expect(on.elapsed).toBe(60 * SECOND);
	});

	it('says why it stops, and not of the tasks before that they took too long', async () => {
		const options = { ifSomeFail: 'stop', suspendAfter: 30 };
		const { error } = await taskRun('wait', [unfinished(), 'unknown'], { options });
		expect(error?.message).toContain('knows no such task for this account');
	});
});

/** *Task ID* is the number of an execution: the tasks that n8n has stored of it. */

/** Runs an operation on what n8n has stored under the number 123. */
async function fetch(
	stored: IRunExecutionData | 'away' | undefined,
	taskId: unknown = 'execution 123',
	{ operation = 'wait', ...more }: Partial<TestWorkflow> & { operation?: string } = {},
) {
	const asked: string[] = [];
	const getRunExecutionData = async (id: string) => {
		asked.push(id);
		if (stored === 'away') throw new Error('database');
		return await Promise.resolve(stored);
	};
	const parameters = { resource: 'task', operation, taskId, options: {} } as IDataObject;
	const ran = await on.run({ parameters, name: 'Fetch' }, undefined, {
		...more,
		host: { getRunExecutionData },
	});
	return { ...ran, asked };
}

/** A run that sleeps, as n8n has stored it. */
async function asleep(options: IDataObject = {}) {
	const slow = (prompt: string) => item(prompt, { latencyMs: 3 * MINUTE });
	const other = { name: 'taskId', type: 'string', value: 'of the input' };
	const more = { additionalFields: { assignments: [other] }, suspendAfter: 0.1, ...options };
	const run = await on.start(imageNode(more, { name: 'Before' }), prompts(slow('a'), slow('b')));
	expect(run.isAsleep).toBe(true);
	return run.data;
}

it.each([' Execution #123 ', ['execution 123']])(
	'%j: Wait brings the results of a run that was stopped asleep, in order, whatever its node was called',
	async (taskId) => {
		const stored = await asleep();
		const ordered = on.taskIds;
		const { output, asked } = await fetch(stored, taskId);
		expect(field(output, 'taskId')).toEqual(ordered);
		expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
		expect(on.taskIds).toEqual(ordered);
		expect(asked).toEqual(['123']);
	},
);

it('Get takes it as well, beside ids, and asks n8n once, however many items name it', async () => {
	const stored = await asleep();
	const other = on.finishedTask();
	const rows = [{ json: {} }, { json: {} }];
	const { output, asked } = await fetch(stored, `execution 123, ${other}`, {
		operation: 'get',
		items: rows,
	});
	expect(field(output, 'taskId')).toEqual([...on.taskIds, ...on.taskIds]);
	expect(asked).toEqual(['123']);
});

/** What n8n keeps of a run that was killed, where it keeps outputs and no contexts. */
function killed(stored: IRunExecutionData, nodeId: string, name: string): IRunExecutionData {
	const { executionData, resultData } = stored;
	const [taskId] = on.taskIds;
	const output = { main: [[{ json: { taskId } }]] };
	const run = { startTime: 0, executionTime: 0, executionIndex: 0, source: [], data: output };
	const node = { id: nodeId } as INode;
	return {
		...stored,
		resultData: { ...resultData, runData: { [name]: [run] } },
		executionData: {
			...executionData!,
			contextData: {},
			nodeExecutionStack: [{ node, data: {}, source: null }],
		},
	};
}

it('the tasks that came out of an execution that was killed are found in its outputs', async () => {
	const stored = killed(await asleep(), 'node-under-test', 'Fetch');
	const { output } = await fetch(stored);
	expect(field(output, 'taskId')).toEqual(on.taskIds.slice(0, 1));
});

it.each<[string, (stored: IRunExecutionData) => Parameters<typeof fetch>[0], RegExp]>([
	['n8n has no data', () => undefined, /^n8n has no data of execution 123/],
	['n8n cannot read it', () => 'away', /^n8n has no data of execution 123/],
	[
		'it is of another workflow',
		(stored) => {
			const { contextData } = stored.executionData!;
			Object.assign(contextData['node:Before']!, { workflowId: 'another' });
			return stored;
		},
		/^Execution 123 is an execution of another workflow/,
	],
	[
		'it is of another workflow, of which only outputs are left',
		(stored) => killed(stored, 'a node of another workflow', 'Fetch'),
		/^Execution 123 is an execution of another workflow/,
	],
	[
		'nothing was stored of its tasks',
		(stored) => killed(stored, 'node-under-test', 'Another node'),
		/^n8n has stored no task of execution 123/,
	],
])('an execution is refused before anything is sent if %s', async (_what, change, message) => {
	const stored = change(await asleep());
	const before = on.service.requests.length;
	const { error, description } = await fetch(stored);
	expect(error?.message).toMatch(message);
	expect(description).toBeTruthy();
	expect(on.service.requests).toHaveLength(before);
});

it.each(['={{ [$json.id] }}', '=execution {{ 123 }}'])(
	'an execution is refused at once, if an expression gives it (%s): who counts reads nothing of others',
	async (taskId) => {
		const items = [{ json: { id: 'execution 123' } }];
		const stored = await asleep();
		const before = on.service.requests.length;
		const { error, description, asked } = await fetch(stored, taskId, { operation: 'get', items });
		expect(error?.message).toContain("'execution 123', which must be fixed text");
		expect(description).toContain("Switch 'Task ID' to 'Fixed', and enter: execution 123");
		expect(asked).toEqual([]);
		expect(on.service.requests).toHaveLength(before);
	},
);

it('an execution is taken also from a field in expression mode without braces, and its items say which item they were', async () => {
	const stored = await asleep();
	const { output } = await fetch(stored, '=execution 123', { operation: 'get' });
	expect(field(output, 'taskId')).toEqual(on.taskIds);
	expect(field(output, 'item')).toEqual([1, 2]);
});

it('Get sums up above its output how far a run is that sleeps, what it costs and when it looks again, and a run that was stopped', async () => {
	const stored = await asleep({ maxInFlight: 1 });
	const { hints } = await fetch(stored, 'execution 123', { operation: 'get' });
	expect(hints.join()).toMatch(
		/Execution 123: 1 task, 0 finished, 0 failed, 1 open, 1 not ordered yet, about 0\.08 USD\. The run sleeps, and looks again (in about a minute|at \d\d:\d\d)/,
	);
	stored.resultData.error = new ManualExecutionCancelledError('123');
	const stopped = await fetch(stored, 'execution 123', { operation: 'get' });
	expect(stopped.hints.join()).toContain('Execution 123: 1 task, 0 finished');
	expect(stopped.hints.join()).not.toContain('sleeps');
});
