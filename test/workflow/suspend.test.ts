import type {
	IDataObject,
	INodeExecutionData,
	IWorkflowExecuteAdditionalData,
	WorkflowExecuteMode,
} from 'n8n-workflow';

import { callbackToken } from '../../nodes/MediaGeneration/callback/callbackToken';
import { readCheck, type ResultsCheck } from '../../nodes/MediaGeneration/suspend/checkState';
import {
	type Ran,
	retryExecution,
	startWorkflow,
	type TestNode,
	type TestWorkflow,
} from './engine';
import {
	descriptionOf,
	field,
	hintsOf,
	IMAGE_MODEL,
	imageNode,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
	threeTries,
} from './support';
import { EPOCH } from '../virtualTime';
import { passTime, time } from './time';
import { nextCheck } from './subExecution';

const on = stage();

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
	imageNode({ suspendAfter: 0, ...options }, more);

const webhookUrls = () => [...on.service.tasks.values()].map(({ webhookUrl }) => webhookUrl);

describe('an execution with unfinished tasks', () => {
	it('stores what leaves the node when the time is up: what is not finished, results, and what has failed already', async () => {
		const failing = done('c', { outcome: 'FAILURE', failureMessage: 'no such colour' });
		const ran = await on.run(suspending(), prompts(slow('a'), done('b'), failing));
		const [first, second, third] = on.taskIds;
		const unfinished = {
			...{ taskId: first, state: 'PENDING', timedOut: true, resultUrls: [], creditsConsumed: null },
			...{ model: IMAGE_MODEL, input: { prompt: 'a' }, estimatedCostUsd: 0.08 },
			record: { taskId: first, state: 'PENDING' },
		};
		const error = expect.stringContaining('no such colour') as string;
		expect(ran.isSuspended).toBe(true);
		expect(ran.waiting).toMatchObject([
			{ json: unfinished, pairedItem: { item: 0 } },
			{ json: { taskId: second, state: 'SUCCESS' }, pairedItem: { item: 1 } },
			{ json: { taskId: third, state: 'FAILURE', error }, pairedItem: { item: 2 } },
		]);
		expect(ran.waiting[1]?.json).not.toHaveProperty('timedOut');
		// A callback of any other task is refused.
		const { contextData } = ran.run.data.executionData ?? {};
		expect(contextData?.['node:Media']?.check).toMatchObject({ taskIds: [first] });
	});

	it('stores neither key nor token', async () => {
		const ran = await on.run(suspending(), prompts(slow('a'), done('b')));
		const text = JSON.stringify(ran.run.data);
		expect(text).not.toContain(on.service.apiKey);
		expect(text).not.toContain(callbackToken(PATH, on.service.apiKey));
	});

	it('is suspended where a read does not work: the callback is still to come', async () => {
		const ran = await on.run(suspending(), prompts(done('a', { readStatus: 500 }), done('b')));
		expect(ran.isSuspended).toBe(true);
		expect(field(ran.waiting, 'state')).toEqual(['PENDING', 'SUCCESS']);
	});

	it('may have 500 of them, each created and read once, with the last create and not after its interval', async () => {
		const items = prompts(...Array.from({ length: 500 }, (_, index) => slow(`Prompt ${index}`)));
		const ran = await on.run(suspending({ maxInFlight: 500, pollInterval: 5 }), items);
		expect(field(ran.waiting, 'taskId')).toEqual(on.taskIds);
		expect(on.creates).toHaveLength(500);
		expect(on.requests('GET')).toHaveLength(500);
		const lastCreate = Math.max(...on.creates.map(({ at }) => at));
		expect(Date.now() - lastCreate).toBeLessThan(3 * SECOND);
	});

	it('says above its output what n8n waits for', async () => {
		expect(hintsOf(await on.run(suspending(), prompts(slow('a'), slow('b'))))).toEqual([
			'2 tasks created. Estimated price: 0.16 USD.',
			'n8n waits for the tasks. You do not need to enter anything. Meanwhile two more executions in the list check the tasks: do not stop them.',
		]);
	});
});

it.each([
	['at once', 0, 0],
	['within the time for which the run is held', 1, 0.9 * MINUTE],
])('nothing is suspended where all tasks are finished %s', async (_when, suspendAfter, ms) => {
	const items = prompts(done('a', { latencyMs: ms }), done('b'));
	const ran = await on.run(suspending({ suspendAfter }), items);
	expect(ran.isSuspended).toBe(false);
	expect(field(ran.output, 'taskId')).toEqual(on.taskIds);
	expect(field(ran.output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
	expect(field(ran.output, 'timedOut')).toEqual([undefined, undefined]);
});

describe('a create that fails', () => {
	const refused = { prompt: 'b', simulate: { createStatus: 400 } };
	const items = () => prompts(slow('a', { latencyMs: 20 * SECOND }), refused);

	it('stops the node, when the tasks that were created are finished, and names them', async () => {
		const ran = await on.run(suspending({ maxInFlight: 1, ifSomeFail: 'stop' }), items());
		expect(ran.isSuspended).toBe(false);
		expect(ran.run.status).toBe('error');
		expect(ran.error?.message).toContain('HTTP 400');
		expect(on.elapsed).toBeGreaterThanOrEqual(20 * SECOND);
		expect(on.taskIds).toHaveLength(1);
		for (const taskId of on.taskIds) expect(descriptionOf(ran)).toContain(taskId);
	});

	it('has nobody wait longer than the timeout, however many tasks there are', async () => {
		const many = Array.from({ length: 60 }, (_, index) => slow(`Prompt ${index}`));
		const node = suspending({ maxInFlight: 1, timeout: 30, ifSomeFail: 'stop' });
		const ran = await on.run(node, prompts(...many, refused));
		expect(ran.run.status).toBe('error');
		expect(on.elapsed).toBeLessThan(45 * SECOND);
		for (const taskId of on.taskIds) expect(descriptionOf(ran)).toContain(taskId);
	});

	it.each(['continueRegularOutput', 'continueErrorOutput'] as const)(
		'is an item of its own where the node goes on (%s)',
		async (onError) => {
			const ran = await on.run(suspending({}, { onError }), items());
			expect(ran.isSuspended).toBe(true);
			expect(ran.waiting).toMatchObject([
				{ json: { taskId: on.taskIds[0], state: 'PENDING', timedOut: true } },
				{ json: { error: expect.stringContaining('HTTP 400') as string } },
			]);
		},
	);

	it('in the first item makes Retry On Fail neither lose the input nor pay again', async () => {
		const node = suspending({}, { ...threeTries, ...keepsGoing });
		const ran = await on.run(node, prompts(refused, slow('a')));
		expect(ran.isSuspended).toBe(true);
		expect(on.taskIds).toHaveLength(1);
		expect(field(ran.waiting, 'taskId')).toEqual([undefined, on.taskIds[0]]);
	});
});

describe('Retry of a stored execution', () => {
	it('takes up the tasks of the first, which call the first back, and waits for them', async () => {
		const workflow = on.workflow(
			suspending({ maxInFlight: 1, timeout: 10, ifSomeFail: 'stop' }),
			prompts(slow('a', { latencyMs: 30 * SECOND }), slow('b')),
		);
		const first = await passTime(startWorkflow(workflow).result);
		expect(first.run.status).toBe('error');
		const again = { ...workflow, node: suspending({ timeout: 60 }) };
		const retried = await passTime(retryExecution(again, first));
		expect(retried.error).toBeUndefined();
		expect(retried.isSuspended).toBe(true);
		expect(retried.waiting).toMatchObject(
			on.taskIds.map((taskId) => ({ json: { taskId, state: 'PENDING', timedOut: true } })),
		);
		expect(on.taskIds).toHaveLength(2);
		expect(webhookUrls()[0]).toContain('/webhook-waiting/1/callback');
		expect(webhookUrls()[1]).toContain('/webhook-waiting/2/callback');
	});
});

type Host = Partial<IWorkflowExecuteAdditionalData>;

/** What each item of a run has that its sub-execution was handed. */
const checkedIn = ({ handed }: Ran) => (readCheck(handed[0] ?? []) as ResultsCheck).items;

const MINUTES = (count: number) => ({ latencyMs: count * MINUTE });

describe('a run that is held for a while', () => {
	const held = (options: IDataObject = {}, more: TestNode = {}) =>
		imageNode({ suspendAfter: 1, ...options }, more);

	it('is suspended with what has ended by then: results, files and errors', async () => {
		const failing = done('c', { outcome: 'FAILURE', failureMessage: 'no such colour' });
		const items = prompts(done('a'), slow('b'), failing);
		const startedAt = Date.now();
		const ran = await on.run(held({ downloadResults: true }), items);
		expect(ran.isSuspended).toBe(true);
		expect(on.elapsed).toBeGreaterThanOrEqual(MINUTE);
		expect(on.elapsed).toBeLessThan(MINUTE + 5 * SECOND);
		const [first, second, third] = on.taskIds;
		const data = expect.stringMatching(/^iVBOR/) as string;
		const message = expect.stringContaining('no such colour') as string;
		const files = { data: { mimeType: 'image/png', data } };
		expect(ran.handed).toHaveLength(1);
		expect(checkedIn(ran)).toMatchObject([
			{ item: 0, json: { taskId: first, state: 'SUCCESS' }, binary: files },
			{ item: 1, json: { taskId: second }, waits: {} },
			{ item: 2, json: { taskId: third }, failure: { message } },
		]);
		const [one, two, three] = checkedIn(ran);
		expect([one?.waits, three?.waits]).toEqual([undefined, undefined]);
		// A day from its creation, and not from now.
		expect(two?.waits?.until).toBeLessThan(startedAt + 24 * 60 * MINUTE + 5 * SECOND);
	});

	it('is suspended by then also where the service has asked for a longer pause, which the checks keep to', async () => {
		const pause = { readStatus: { status: 503, retryAfter: 3600 } };
		const ran = await on.run(held(), prompts(slow('a', pause), slow('b')));
		expect(ran.isSuspended).toBe(true);
		expect(on.elapsed).toBeLessThan(MINUTE + 35 * SECOND);
		expect(checkedIn(ran).map(({ json }) => json.taskId)).toEqual(on.taskIds);
		const { notBefore = 0 } = readCheck(ran.handed[0] ?? []) ?? {};
		expect(notBefore - Date.now()).toBeGreaterThan(55 * MINUTE);
	});

	/** What its items come to when all tasks are finished. */
	async function checked(ran: Ran) {
		await time.pass(5 * MINUTE);
		return await passTime(nextCheck(ran.handed[0] ?? [], on.credential));
	}

	it('puts out each result as its item says, however long its task took', async () => {
		const downloadResults = '={{ $json.prompt !== "b" }}';
		const outputBinaryField = '={{ "of_" + $json.prompt }}';
		const node = held({ downloadResults, outputBinaryField });
		const ran = await on.run(node, prompts(slow('a'), slow('b'), slow('c')));
		const { output = [] } = await checked(ran);
		expect(output.map(({ binary = {} }) => Object.keys(binary))).toEqual([['of_a'], [], ['of_c']]);
	});

	it.each([{ continueOnFail: true }, keepsGoing])(
		'lets its failed items out as the node says (%j)',
		async (more) => {
			const ran = await on.run(held({}, more), prompts(slow('a', { outcome: 'FAILURE' })));
			const { output = [], failure } = await checked(ran);
			expect([failure, field(output, 'state')]).toEqual([undefined, ['FAILURE']]);
		},
	);

	it('asks for no callbacks: they would come to an execution that is awake', async () => {
		await on.run(held(), prompts(slow('a'), slow('b')));
		expect(webhookUrls()).toEqual([undefined, undefined]);
	});

	it('is held while a task may be created anew, and for its while after that', async () => {
		const fails = slow('a', { ...MINUTES(3), outcome: 'FAILURE' });
		const ran = await on.run(held({ retryFailed: 1 }), prompts(fails));
		expect(ran.isSuspended).toBe(true);
		expect(on.elapsed).toBeGreaterThanOrEqual(4 * MINUTE);
		const [failed, taskId] = on.taskIds;
		expect(checkedIn(ran)).toMatchObject([{ json: { taskId, failedTaskIds: [failed] } }]);
	});

	it('is held while a task is still to be created', async () => {
		const items = prompts(slow('a', MINUTES(3)), slow('b', MINUTES(3)));
		const ran = await on.run(held({ maxInFlight: 1 }), items);
		expect(ran.isSuspended).toBe(true);
		expect(on.elapsed).toBeGreaterThanOrEqual(4 * MINUTE);
		expect(field(ran.waiting, 'state')).toEqual(['SUCCESS', 'PENDING']);
	});

	const run = async (node: TestNode, items: INodeExecutionData[], host: Host) =>
		await passTime(startWorkflow(on.workflow(node, items), 'trigger', host).result);
	const refuse: Host = { executeWorkflow: async () => await Promise.reject(new Error('No')) };

	it.each<[string, Host]>([
		['refuses', refuse],
		[
			'does not',
			{ executeWorkflow: async () => await Promise.resolve({ executionId: '2', data: [null] }) },
		],
	])('goes on where n8n %s to suspend it, and its items come out', async (_what, host) => {
		const items = prompts(slow('a'), done('b'), slow('c', { outcome: 'FAILURE' }));
		const ran = await run(held({ downloadResults: true }), items, host);
		const { output } = ran;
		expect([ran.handed.length, ran.isSuspended, ran.run.status]).toEqual([1, false, 'success']);
		expect(field(output, 'taskId')).toEqual(on.taskIds);
		expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS', 'FAILURE']);
		expect(output.map(({ pairedItem }) => pairedItem)).toEqual([0, 1, 2].map((item) => ({ item })));
		const files = output.map(({ binary }) => Object.keys(binary ?? {}));
		expect(files).toEqual([['data'], ['data'], []]);
	});

	it('gives its tasks up at their time where n8n does not suspend it', async () => {
		const node = held({ timeout: 120 }, keepsGoing);
		const { output } = await run(node, prompts(slow('a')), refuse);
		const error = expect.stringContaining('120 s') as string;
		expect(output).toMatchObject([{ json: { taskId: on.taskIds[0], timedOut: true, error } }]);
	});

	it('reads no more tasks at once than it may where n8n does not suspend it', async () => {
		on.service.configure({ latencyMs: MINUTE });
		const ids = ['a', 'b', 'c', 'd', 'e', 'f'].map(
			(prompt) => on.service.createTask(IMAGE_MODEL, { prompt }).taskId,
		);
		const options = { suspendAfter: 0, maxInFlight: 2 };
		const parameters = { resource: 'task', operation: 'wait', taskId: '={{ $json.id }}', options };
		const items = ids.map((id) => ({ json: { id } }));
		const { output } = await run({ parameters }, items, refuse);
		expect(field(output, 'taskId')).toEqual(ids);
		expect(field(output, 'state')).toEqual(ids.map(() => 'SUCCESS'));
		const later = on.requests('GET').filter(({ at }) => at - EPOCH < 30 * SECOND);
		const [, ...again] = new Set(later.slice(ids.length).map(({ path }) => path));
		expect(again).toHaveLength(1);
	});

	it('is not suspended while n8n tries it again: the next try takes up its tasks', async () => {
		on.service.configure({ createStatus: { status: 400, times: 1 } });
		const accepted = { createStatus: { status: 400, times: 0 } };
		const node = held({}, { retryOnFail: true, maxTries: 2, waitBetweenTries: 0 });
		const ran = await on.run(node, prompts(slow('a', accepted), slow('b')));
		expect([ran.isSuspended, ran.handed.length, on.taskIds.length]).toEqual([true, 1, 2]);
		expect(checkedIn(ran).map(({ json }) => json.taskId)).toEqual(on.taskIds);
	});

	it('is stopped like any other, and names its tasks in the log', async () => {
		const workflow = on.workflow(held(), prompts(slow('a')));
		const { run, handed } = await on.stopWhen(() => on.elapsed >= 30 * SECOND, workflow);
		expect([run.status, handed]).toEqual(['canceled', []]);
	});

	it('of Task → Wait is suspended like one that creates', async () => {
		await on.run(imageNode({}, { parameters: { completion: 'return' } }), prompts(slow('a')));
		const options = { suspendAfter: 1 };
		const parameters = { resource: 'task', operation: 'wait', taskId: '={{ $json.id }}', options };
		const ran = await on.run({ parameters }, [{ json: { id: on.taskIds[0] } }]);
		expect(ran.isSuspended).toBe(true);
		expect(checkedIn(ran)).toMatchObject([{ json: { taskId: on.taskIds[0] }, waits: {} }]);
		// What was not created here was not sent here.
		expect(checkedIn(ran)[0]?.json).not.toHaveProperty('model');
	});
});

describe('a run that cannot be suspended is held to its end', () => {
	const node = (options: IDataObject = {}) => imageNode({ suspendAfter: 1, ...options });
	const items = () => prompts(slow('a'), slow('b'));

	it.each<[string, IDataObject, Partial<TestWorkflow>, WorkflowExecuteMode, number]>([
		['in a sub-workflow', {}, {}, 'integrated', 2],
		[
			'where the Webhook before it answers with the last node',
			{},
			{ source: { responseMode: 'lastNode' } },
			'webhook',
			2,
		],
		['with several items for a result', { splitResults: true }, {}, 'trigger', 4],
	])('%s', async (_what, options, more, mode, count) => {
		on.service.configure({ resultCount: 2 });
		const workflow = { ...on.workflow(node(options), items()), ...more };
		const { run, output, handed } = await passTime(startWorkflow(workflow, mode).result);
		expect(run.status).toBe('success');
		expect(field(output, 'state')).toEqual(Array(count).fill('SUCCESS'));
		expect(handed).toEqual([]);
	});

	it('by ten minutes, where nothing else is said', async () => {
		const ran = await on.run(node({ splitResults: true }), prompts(slow('a', MINUTES(60))));
		expect(ran.error?.message).toContain('is not finished after 600 s');
		expect(on.elapsed).toBeLessThan(11 * MINUTE);
	});

	it('and says so where it was to be suspended at once', async () => {
		const ran = await on.run(node({ suspendAfter: 0, splitResults: true }), items());
		expect(ran.run.status).toBe('success');
		expect(hintsOf(ran)).toContainEqual(
			expect.stringMatching(/is not suspended, although 'Suspend After' is 0: n8n would link/),
		);
	});
});
