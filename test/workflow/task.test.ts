import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { descriptionOf, field, IMAGE_MODEL, stage } from './support';

const on = stage();

const taskNode = (operation: string, parameters: IDataObject = {}) => ({
	parameters: { resource: 'task', operation, taskId: '={{ $json.taskId }}', ...parameters },
});

/** A task that was created earlier, by somebody else. */
const existing = (simulate: IDataObject = {}) =>
	on.service.createTask(IMAGE_MODEL, { prompt: 'A', simulate }).taskId;
const ids = (...taskIds: string[]) => taskIds.map((taskId) => ({ json: { taskId } }));

describe('Create', () => {
	it('sends model and input as they are', async () => {
		const { output } = await on.run(
			taskNode('create', { model: 'any/model', input: '{ "text": "x", "deep": { "n": [1] } }' }),
		);
		const input = { text: 'x', deep: { n: [1] } };
		expect(on.service.tasks.get(on.taskIds[0] ?? '')?.record).toMatchObject({
			model: 'any/model',
			input,
		});
		expect(output[0]?.json).toMatchObject({ state: 'SUCCESS', model: 'any/model', input });
	});
});

describe('Get', () => {
	it('has exactly the fields of the contract, without model and input', async () => {
		const taskId = existing();
		on.service.complete(taskId);
		const { output } = await on.run(taskNode('get'), ids(taskId));
		expect(output).toEqual([
			{
				json: {
					taskId,
					state: 'SUCCESS',
					resultUrls: [`${on.service.mediaUrl}/media/${taskId}/1.png`],
					creditsConsumed: 8,
					record: expect.objectContaining({ taskId }) as IDataObject,
				},
				pairedItem: { item: 0 },
			},
		]);
	});

	it('reports PENDING without waiting', async () => {
		const { output } = await on.run(taskNode('get'), ids(existing({ latencyMs: 60_000 })));
		expect(field(output, 'state')).toEqual(['PENDING']);
		expect(on.requests('GET')).toHaveLength(1);
	});

	it('reports FAILURE as an answer and not as an error', async () => {
		const taskId = existing();
		on.service.complete(taskId, 'FAILURE');
		const { output, error } = await on.run(taskNode('get'), ids(taskId));
		expect(error).toBeUndefined();
		expect(output[0]?.json).toMatchObject({ state: 'FAILURE', resultUrls: [], creditsConsumed: 0 });
	});

	it('of a task that does not exist is an error that names it', async () => {
		const { error } = await on.run(taskNode('get'), ids('task-unknown'));
		expect(error?.message).toContain('knows no task task-unknown for this account (HTTP 404)');
	});

	it('reads many tasks, and puts them out in input order', async () => {
		const taskIds = Array.from({ length: 25 }, () => existing({ latencyMs: 60_000 }));
		const { output } = await on.run(taskNode('get'), ids(...taskIds));
		expect(field(output, 'taskId')).toEqual(taskIds);
	});

	it('takes many ids from one item, in their order, each linked to it', async () => {
		const taskIds = Array.from({ length: 12 }, () => existing());
		const [last = ''] = taskIds.splice(11);
		const items = [{ json: { taskId: taskIds } }, ...ids(last)] as INodeExecutionData[];
		const { output } = await on.run(taskNode('get', { options: { maxInFlight: 3 } }), items);
		expect(field(output, 'taskId')).toEqual([...taskIds, last]);
		expect(output.map(({ pairedItem }) => pairedItem)).toEqual([
			...taskIds.map(() => ({ item: 0 })),
			{ item: 1 },
		]);
	});

	it('loses none of many ids where one is unknown and one cannot be meant', async () => {
		const [a, b] = [existing(), existing()];
		for (const onError of ['continueRegularOutput', 'continueErrorOutput'] as const) {
			const node = { ...taskNode('get', { taskId: `${a}\n..\ntask-unknown\n${b}` }), onError };
			const { output, errors } = await on.run(node, [{ json: {} }, { json: {} }]);
			const isSplit = onError === 'continueErrorOutput';
			expect(field(output, 'taskId').filter((id) => id === a || id === b)).toEqual([a, b, a, b]);
			const failed = isSplit ? errors : output.filter(({ json }) => json.error !== undefined);
			expect(field(failed, 'error')).toEqual([
				expect.stringContaining("'..'"),
				expect.stringContaining('task-unknown'),
				expect.stringContaining("'..'"),
				expect.stringContaining('task-unknown'),
			]);
			expect(failed.map(({ pairedItem }) => pairedItem)).toEqual(
				[0, 0, 1, 1].map((item) => ({ item })),
			);
		}
	});

	it('sends no id to another endpoint', async () => {
		const { error } = await on.run(taskNode('get'), ids('../credits'));
		expect(error?.message).toContain('knows no task ../credits');
		expect(on.requests('GET').map(({ path }) => path)).toEqual(['/api/generate/..%2Fcredits']);
	});
});

describe('Wait', () => {
	it('reads at once, and then until the task is finished', async () => {
		const taskId = existing({ latencyMs: 5000 });
		const startedAt = Date.now();
		const { output } = await on.run(taskNode('wait'), ids(taskId));
		expect(output[0]?.json).toMatchObject({ taskId, state: 'SUCCESS' });
		expect(output[0]?.json).not.toHaveProperty('model');
		expect(on.requests('GET').map(({ at }) => at - startedAt)).toEqual([0, 2000, 4000, 6000]);
	});

	it('for a failed task is an error with its id and the reason', async () => {
		const taskId = existing({ latencyMs: 3000, outcome: 'FAILURE', failureMessage: 'Unsafe.' });
		const { error } = await on.run(taskNode('wait'), ids(taskId));
		expect(error?.message).toBe(`Task ${taskId} failed at the service: Unsafe.`);
	});

	it('that times out is an error with the id and the last state', async () => {
		const taskId = existing({ latencyMs: 3_600_000 });
		const startedAt = Date.now();
		const ran = await on.run(taskNode('wait', { options: { timeout: 60 } }), ids(taskId));
		expect(ran.error?.message).toBe(
			`Task ${taskId} is not finished after 60 s (last state: PENDING)`,
		);
		expect(descriptionOf(ran)).toContain('Task → Wait');
		expect(Date.now() - startedAt).toBe(60_000);
	});

	it('says why it stops, and not of the tasks before that they took too long', async () => {
		const unfinished = existing({ latencyMs: 3_600_000 });
		const ran = await on.run(
			taskNode('wait', { options: { ifSomeFail: 'stop' } }),
			ids(unfinished, 'unknown'),
		);
		expect(ran.error?.message).toContain('knows no task unknown for this account');
	});

	it('lets a timed-out item out with what is known, where the node continues', async () => {
		const taskId = existing({ latencyMs: 3_600_000 });
		const { output } = await on.run(
			{ ...taskNode('wait', { options: { timeout: 60 } }), onError: 'continueRegularOutput' },
			ids(taskId),
		);
		expect(output[0]?.json).toMatchObject({
			taskId,
			state: 'PENDING',
			timedOut: true,
			record: { taskId, state: 'PENDING' },
			error: expect.stringContaining(taskId) as string,
		});
	});

	it('waits for many ids of one item at once', async () => {
		const taskIds = Array.from({ length: 10 }, () => existing({ latencyMs: 9000 }));
		const startedAt = Date.now();
		const { output } = await on.run(taskNode('wait', { taskId: taskIds.join(', ') }));
		expect(field(output, 'taskId')).toEqual(taskIds);
		expect(field(output, 'state')).toEqual(Array(10).fill('SUCCESS'));
		expect(Date.now() - startedAt).toBeLessThan(12_000);
	});

	it('waits for many tasks at once', async () => {
		const taskIds = Array.from({ length: 10 }, () => existing({ latencyMs: 9000 }));
		const startedAt = Date.now();
		const { output } = await on.run(taskNode('wait'), ids(...taskIds));
		expect(field(output, 'state')).toEqual(Array(10).fill('SUCCESS'));
		expect(Date.now() - startedAt).toBeLessThan(12_000);
	});

	it('outlasts an hour of trouble', async () => {
		const taskId = existing();
		on.service.complete(taskId);
		on.service.configure({ readStatus: { status: 502, times: 120 } });
		const { output } = await on.run(
			taskNode('wait', { options: { timeout: 7200, suspendAfter: 120 } }),
			ids(taskId),
		);
		expect(field(output, 'state')).toEqual(['SUCCESS']);
	});

	it('ends at the third record without a state', async () => {
		const taskId = existing();
		on.service.configure({ extraFields: { state: '' } });
		const { error } = await on.run(taskNode('wait'), ids(taskId));
		expect(error?.message).toBe(`The record of task ${taskId} has no state`);
		expect(on.requests('GET')).toHaveLength(3);
	});
});
