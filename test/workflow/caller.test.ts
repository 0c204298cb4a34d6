import type { IDataObject } from 'n8n-workflow';

import { useProcessedData } from './processedData';
import { field, imageNode, item, MINUTE, prompts, SECOND, stage } from './support';
import { pass, passUntil } from './time';
import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';

/** Workflows that call ours, as the model of n8n has them. */

useProcessedData();
const on = stage();

const slow = (minutes: number) => prompts(item('a', { latencyMs: minutes * MINUTE }), 'b');

const inN8n = (options: IDataObject, isQueueMode = false) =>
	new WorkflowN8n(on.workflow(imageNode(options), slow(10)), isQueueMode);

const itemsOf = ({ data }: StoredRun) => data.resultData.runData.Call?.[0]?.data?.main?.[0] ?? [];

it('waits for a sub-workflow that is held, and goes on with its items', async () => {
	const { caller, child } = await inN8n({}).beginCalled();
	await child.rests();
	expect(child.row.sleeps).toBe(0);
	await passUntil(() => caller.row.status === 'success');
	expect(field(itemsOf(caller), 'state')).toEqual(['SUCCESS', 'SUCCESS']);
});

it('sleeps while the sub-workflow sleeps, and goes on with its items', async () => {
	const { caller } = await inN8n({ suspendAfter: 1 }).beginCalled();
	await passUntil(() => caller.isAsleep);
	await passUntil(() => caller.row.status === 'success');
	expect(field(itemsOf(caller), 'state')).toEqual(['SUCCESS', 'SUCCESS']);
});

it('is stored with an error that names it, where it is stopped in one process', async () => {
	const { caller, child } = await inN8n({ suspendAfter: 1 }).beginCalled();
	await child.rests();
	await caller.stop();
	expect(caller.data.resultData.error).toMatchObject({ extra: { executionId: caller.row.id } });
});

it('is stored without an error and without a stack, where it is stopped on a worker', async () => {
	const n8n = inN8n({}, true);
	const { caller } = await n8n.beginCalled();
	await pass(5 * SECOND);
	await caller.stop();
	await pass(5 * SECOND);
	const { resultData, executionData } = caller.data;
	expect(caller.row.status).toBe('canceled');
	expect(resultData.error).toBeUndefined();
	expect(resultData.runData.Call).toBeUndefined();
	expect(executionData?.nodeExecutionStack).toEqual([]);
});
