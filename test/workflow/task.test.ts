import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import type { Settings } from '../service/settings';
import { startWorkflow, type TestNode } from './engine';
import { field, IMAGE_MODEL, SECOND, stage } from './support';
import { passTime, settle, time } from './time';
import { EPOCH, tick } from '../virtualTime';

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
