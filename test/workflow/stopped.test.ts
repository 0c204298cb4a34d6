import type { INodeExecutionData } from 'n8n-workflow';

import { WorkflowN8n, type StoredRun } from './n8n/workflowN8n';
import { executeContext } from './engine';
import { store } from './processedData';
import { fromStored } from './stored';
import { imageNode, item, jsonOf, many, MINUTE, prompts, SECOND, stage } from './support';
import { passUntil } from './time';

/** What a stop of an awake run leaves: a short execution of the workflow, with an item for each task. */

const on = stage();

/** The short executions of an n8n, and their items. */
const leftIn = (n8n: WorkflowN8n) =>
	n8n.rows
		.filter(({ caller }) => caller !== undefined)
		.map(({ status, data, definition }) => {
			const { runData } = fromStored(data).resultData;
			const items = Object.values(runData).flatMap(([run]) => run?.data?.main?.[0] ?? []);
			return { status, nodes: definition?.nodes.length, tasks: jsonOf(items) };
		});

async function stopped(items: INodeExecutionData[], isReady: (run: StoredRun) => boolean) {
	// Each n8n has a database of its own.
	store.reset();
	const run = new WorkflowN8n(on.workflow(imageNode(), items)).begin();
	await passUntil(() => isReady(run));
	await run.stop();
	return run.n8n;
}

it('a stop of an awake run leaves item number, id and state of each task, and of an order without an answer, and Get reads it by its number', async () => {
	const logged = jest.spyOn(executeContext().logger, 'info');
	const items = prompts('a', ...many(2, 60 * MINUTE), item('lost', { createStatus: 504 }));
	const n8n = await stopped(items, () => on.elapsed > 20 * SECOND);
	await passUntil(() => leftIn(n8n).length > 0);
	await passUntil(() => leftIn(n8n).every(({ status }) => status === 'success'));
	const [first, second, third] = on.taskIds;
	// A kill leaves nothing else: each task is named the moment that its id is known.
	const lines = logged.mock.calls.map(([line]) => line);
	expect(lines).toContainEqual(
		expect.stringMatching(new RegExp(`created task ${first} \\(execution .*, item 1\\)`)),
	);
	logged.mockRestore();
	const left = n8n.rows.find(({ caller }) => caller !== undefined);
	const getRunExecutionData = async () => await Promise.resolve(fromStored(left!.data));
	const parameters = { resource: 'task', operation: 'get', taskId: 'execution 2', options: {} };
	const { output } = await on.run({ parameters }, undefined, { host: { getRunExecutionData } });
	expect(jsonOf(output).map(({ taskId, item }) => [item, taskId])).toEqual([
		[1, first],
		[2, second],
		[3, third],
	]);
	expect(leftIn(n8n)).toEqual([
		{
			status: 'success',
			// Nothing runs in it but its start.
			nodes: 2,
			tasks: [
				{ item: 1, taskId: first, state: 'SUCCESS' },
				{ item: 2, taskId: second, state: 'PENDING' },
				{ item: 3, taskId: third, state: 'PENDING' },
				{ item: 4, taskId: null, state: 'NOT KNOWN' },
			],
		},
	]);
});

it('a stop of a run that sleeps, or that has ordered nothing, leaves no execution', async () => {
	const asleep = await stopped(prompts(...many(1, 60 * MINUTE)), ({ isAsleep }) => isAsleep);
	on.service.configure({ concurrencyLimit: 0 });
	const waiting = await stopped(prompts('b'), () => on.creates.length > 1);
	await passUntil(() => on.elapsed > 20 * MINUTE);
	expect([asleep, waiting].flatMap(leftIn)).toEqual([]);
});
