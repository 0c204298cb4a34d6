import {
	type IDataObject,
	type INode,
	type IRunExecutionData,
	ManualExecutionCancelledError,
} from 'n8n-workflow';

import { useProcessedData } from './processedData';
import { field, imageNode, item, MINUTE, prompts, stage } from './support';
import type { TestWorkflow } from './engine';

/** *Task ID* is the number of an execution: the tasks that n8n has stored of it. */

useProcessedData();
const on = stage();

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
