import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { callbackToken } from '../../nodes/MediaGeneration/callback/callbackToken';
import { type Ran, retryExecution, startWorkflow, type TestNode } from './engine';
import { descriptionOf, field, IMAGE_MODEL, imageNode, prompts, stage } from './support';
import { passTime } from './time';

jest.setTimeout(60_000);

const on = stage();

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const PATH = '/webhook-waiting/1/callback';

const slow = (prompt: string, simulate: IDataObject = {}) => ({
	prompt,
	simulate: { latencyMs: 5 * MINUTE, ...simulate },
});
const done = (prompt: string, simulate: IDataObject = {}) => ({
	prompt,
	simulate: { latencyMs: 0, ...simulate },
});
const suspending = (options: IDataObject = {}, more: TestNode = {}) =>
	imageNode(options, { ...more, parameters: { completion: 'suspend', ...more.parameters } });

/** What n8n stores as the input of the waiting node: it is resumed with it, or lets it out when the time is up. */
function stored({ run }: Ran): INodeExecutionData[] {
	const [entry] = run.data.executionData?.nodeExecutionStack ?? [];
	return entry?.node.name === 'Media' ? (entry.data.main?.[0] ?? []) : [];
}
const webhookUrls = () => [...on.service.tasks.values()].map(({ webhookUrl }) => webhookUrl);
const isSuspended = ({ run }: Ran) => run.status === 'waiting' || run.waitTill instanceof Date;

// Nothing listens at the address of these executions.
beforeEach(() => on.service.configure({ callbackLost: true }));

describe('an execution with unfinished tasks', () => {
	it('stores what leaves the node when the time is up', async () => {
		const ran = await on.run(suspending(), prompts(slow('a'), done('b')));
		const [first, second] = on.taskIds;
		expect(stored(ran)).toMatchObject([
			{
				json: {
					taskId: first,
					state: 'PENDING',
					timedOut: true,
					resultUrls: [],
					creditsConsumed: null,
					model: IMAGE_MODEL,
					input: { prompt: 'a' },
					record: { taskId: first, state: 'PENDING' },
					estimatedCostUsd: 0.08,
				},
				pairedItem: { item: 0 },
			},
			{ json: { taskId: second, state: 'SUCCESS' }, pairedItem: { item: 1 } },
		]);
		expect(stored(ran)[1]?.json).not.toHaveProperty('timedOut');
	});

	it('is called back at its own address, with the path before the query and a token', async () => {
		await on.run(suspending(), prompts(slow('a'), slow('b')));
		for (const webhookUrl of webhookUrls()) {
			const url = new URL(webhookUrl ?? '');
			expect(url.origin + url.pathname).toBe(`https://n8n.test${PATH}`);
			expect(url.searchParams.get('token')).toBe(callbackToken(PATH, on.service.apiKey));
		}
		expect(webhookUrls()).toHaveLength(2);
	});

	it('stores neither key nor token', async () => {
		const ran = await on.run(suspending(), prompts(slow('a'), done('b')));
		const text = JSON.stringify(ran.run.data);
		expect(text).not.toContain(on.service.apiKey);
		expect(text).not.toContain(callbackToken(PATH, on.service.apiKey));
	});

	it('is suspended where a read does not work: the callback is still to come', async () => {
		const ran = await on.run(suspending(), prompts(done('a', { readStatus: 500 }), done('b')));
		expect(isSuspended(ran)).toBe(true);
		expect(field(stored(ran), 'state')).toEqual(['PENDING', 'SUCCESS']);
	});

	it('lets a task that has failed already out as an item with the reason', async () => {
		const ran = await on.run(
			suspending(),
			prompts(slow('a'), done('b', { outcome: 'FAILURE', failureMessage: 'no such colour' })),
		);
		expect(isSuspended(ran)).toBe(true);
		expect(stored(ran)[1]?.json).toMatchObject({
			state: 'FAILURE',
			error: expect.stringContaining('no such colour') as string,
		});
	});

	it('may have 500 of them, each created and read once', async () => {
		const items = prompts(...Array.from({ length: 500 }, (_, index) => slow(`Prompt ${index}`)));
		const ran = await on.run(suspending(), items);
		expect(field(stored(ran), 'taskId')).toEqual(on.taskIds);
		expect(on.creates).toHaveLength(500);
		expect(on.requests('GET')).toHaveLength(500);
	});
});

describe('where all tasks are finished at once', () => {
	it('nothing is suspended', async () => {
		const ran = await on.run(suspending(), prompts(done('a'), done('b')));
		expect(isSuspended(ran)).toBe(false);
		expect(field(ran.output, 'taskId')).toEqual(on.taskIds);
		expect(field(ran.output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
		expect(field(ran.output, 'timedOut')).toEqual([undefined, undefined]);
	});

	it('a failed task is an error of its item', async () => {
		const items = prompts(done('a'), done('b', { outcome: 'FAILURE' }));
		const ran = await on.run(suspending({ ifSomeFail: 'stop' }), items);
		expect(ran.error?.message).toContain('failed at the service');
		for (const taskId of on.taskIds) expect(descriptionOf(ran)).toContain(taskId);
	});
});

describe('a create that fails', () => {
	const refused = { prompt: 'b', simulate: { createStatus: 400 } };
	const items = () => prompts(slow('a', { latencyMs: 20 * SECOND }), refused);

	it('stops the node, when the tasks that were created are finished, and names them', async () => {
		const startedAt = Date.now();
		const ran = await on.run(suspending({ maxInFlight: 1, ifSomeFail: 'stop' }), items());
		expect(isSuspended(ran)).toBe(false);
		expect(ran.run.status).toBe('error');
		expect(ran.error?.message).toContain('HTTP 400');
		expect(Date.now() - startedAt).toBeGreaterThanOrEqual(20 * SECOND);
		expect(on.taskIds).toHaveLength(1);
		for (const taskId of on.taskIds) expect(descriptionOf(ran)).toContain(taskId);
	});

	it('has nobody wait longer than the timeout, however many tasks there are', async () => {
		const startedAt = Date.now();
		const many = Array.from({ length: 60 }, (_, index) => slow(`Prompt ${index}`));
		const ran = await on.run(
			suspending({ maxInFlight: 1, timeout: 30, ifSomeFail: 'stop' }),
			prompts(...many, refused),
		);
		expect(ran.run.status).toBe('error');
		expect(Date.now() - startedAt).toBeLessThan(45 * SECOND);
		for (const taskId of on.taskIds) expect(descriptionOf(ran)).toContain(taskId);
	});

	it.each(['continueRegularOutput', 'continueErrorOutput'] as const)(
		'is an item of its own where the node goes on (%s)',
		async (onError) => {
			const ran = await on.run(suspending({}, { onError }), items());
			expect(isSuspended(ran)).toBe(true);
			expect(stored(ran)).toMatchObject([
				{ json: { taskId: on.taskIds[0], state: 'PENDING', timedOut: true } },
				{ json: { error: expect.stringContaining('HTTP 400') as string } },
			]);
		},
	);

	it('in the first item makes Retry On Fail neither lose the input nor pay again', async () => {
		const ran = await on.run(
			suspending({}, { onError: 'continueRegularOutput', retryOnFail: true, maxTries: 3 }),
			prompts(refused, slow('a')),
		);
		expect(isSuspended(ran)).toBe(true);
		expect(on.taskIds).toHaveLength(1);
		expect(field(stored(ran), 'taskId')).toEqual([undefined, on.taskIds[0]]);
	});
});

describe('Retry of a stored execution', () => {
	it('takes up the tasks of the first, which call the first back, and waits for them', async () => {
		// The service refuses one create, and not that of the first item.
		on.service.configure({ createStatus: { status: 400, times: 1 } });
		const accepted = { latencyMs: 30 * SECOND, createStatus: { status: 400, times: 0 } };
		const workflow = on.workflow(
			suspending({ maxInFlight: 1, timeout: 10, ifSomeFail: 'stop' }),
			prompts(slow('a', accepted), slow('b')),
		);
		const first = await passTime(startWorkflow(workflow).result);
		expect(first.run.status).toBe('error');
		const retried = await passTime(
			retryExecution({ ...workflow, node: suspending({ maxInFlight: 1, timeout: 60 }) }, first),
		);
		expect(retried.error).toBeUndefined();
		expect(isSuspended(retried)).toBe(true);
		expect(stored(retried)).toMatchObject([
			{ json: { taskId: on.taskIds[0], state: 'PENDING', timedOut: true } },
			{ json: { taskId: on.taskIds[1], state: 'PENDING', timedOut: true } },
		]);
		expect(on.taskIds).toHaveLength(2);
		expect(webhookUrls()[1]).toContain('/webhook-waiting/2/callback');
	});
});

describe('results', () => {
	it('are downloaded where that is wanted', async () => {
		const { output } = await on.run(
			suspending({ downloadResults: true }),
			prompts(done('a'), done('b')),
		);
		expect(output[0]?.binary?.data?.mimeType).toBe('image/png');
	});
});
