import type { INode } from 'n8n-workflow';

import { outputItems } from '../n8n/client';
import { call, called, inARow, itemNodes, manualTrigger } from './nodes';
import { errorOf, itemsOf, promptOf, statesOf, succeeded } from './run';
import { openScene } from './scene';

/** A run of each kind, on each n8n that is supported; what else comes out is in `test/workflow`. */

const scene = openScene();

test('wait: the items carry every field of the contract, in input order', async () => {
	const switches = [{ latencyMs: 3000 }, { latencyMs: 0 }];
	const items = outputItems(succeeded(await scene.runImages(switches)), 'Media');
	expect(items.map(({ json }) => promptOf(json))).toEqual(['Prompt 0', 'Prompt 1']);
	for (const [index, { json, pairedItem }] of items.entries()) {
		expect(Object.keys(json).sort()).toEqual([
			'creditsConsumed',
			'estimatedCostUsd',
			'input',
			'model',
			'record',
			'resultUrls',
			'state',
			'taskId',
		]);
		expect(json).toMatchObject({ state: 'SUCCESS', creditsConsumed: 8, estimatedCostUsd: 0.08 });
		expect(pairedItem).toEqual({ item: index });
	}
});

test('with On Error: Continue (using error output) a failed item leaves by the second output', async () => {
	const failing = { outcome: 'FAILURE', failureMessage: 'no such colour' };
	const node = { onError: 'continueErrorOutput' as const };
	const execution = await scene.runImages([{}, failing, {}], { node });
	expect(statesOf(execution)).toEqual(['SUCCESS', 'SUCCESS']);
	const error = expect.stringContaining('no such colour') as string;
	const details = expect.objectContaining({ taskId: scene.taskIds[1], state: 'FAILURE' });
	expect(outputItems(execution, 'Media', 1).map(({ json }) => json)).toEqual([
		expect.objectContaining({ prompt: 'Prompt 1', error, details }),
	]);
});

test('return: the item leaves at once, and task: get and task: wait fetch it later', async () => {
	const order = scene.image({ prompt: 'later', completion: 'return' });
	const [created] = itemsOf(await scene.run('Order', itemNodes('Item', [{}]), order));
	expect(created).toMatchObject({ state: 'PENDING', resultUrls: [], creditsConsumed: null });
	expect(scene.reads).toEqual([]);
	const taskIds = [scene.slowTask().taskId, String(created?.taskId)];
	expect((await scene.onTasks('get', taskIds))[0]?.state).toBe('PENDING');
	scene.service.complete(taskIds[0] ?? '');
	const finished = await scene.onTasks('wait', taskIds);
	expect(finished).toMatchObject(taskIds.map((taskId) => ({ taskId, state: 'SUCCESS' })));
	expect(finished[0]).not.toHaveProperty('model');
});

test('trigger: where none is published it is not found by a run, its retry, or a sub-workflow that a run by hand calls', async () => {
	const order = () => scene.image({ prompt: 'x', completion: 'trigger' });
	const withTrigger = (name: string, start: INode) => {
		const wired = inARow(start, order());
		return { name, ...wired, nodes: [...wired.nodes, scene.trigger()] };
	};
	const alone = await scene.startWorkflow(withTrigger('Not published', manualTrigger()));
	const failed = await alone.end();
	const child = withTrigger('Called, and not published', called());
	const { id } = await scene.client.createWorkflow(child);
	const [without, calling] = [
		await scene.run('Without', order()),
		await scene.run('Calls', call(id)),
	];
	for (const execution of [without, failed, await alone.retry(), calling]) {
		expect(execution.status).toBe('error');
		// n8n 2.0 runs no sub-workflow that is not published.
		const isRefused = execution === calling ? '|Workflow is not active' : '';
		expect(errorOf(execution)?.message).toMatch(RegExp(`Media Generation Trigger${isRefused}`));
	}
	expect(scene.tasks).toEqual([]);
});
