import type { IDataObject } from 'n8n-workflow';

import { callbackToken } from '../../nodes/MediaGeneration/callback/callbackToken';
import { readCheck, type ResultsCheck } from '../../nodes/MediaGeneration/suspend/checkState';
import type { Settings } from '../service/settings';
import { EPOCH } from '../virtualTime';
import { type Ran, startWorkflow, type TestWorkflow } from './engine';
import { beginning, fromStored, toStored } from './stored';
import { nextCheck } from './subExecution';
import {
	fails,
	field,
	IMAGE_MODEL,
	imageNode,
	item,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
	text,
	threeTries,
} from './support';
import { passTime, time } from './time';

const on = stage();

const slow = (prompt: string, more: Settings = {}) =>
	item(prompt, { latencyMs: 5 * MINUTE, ...more });
const done = (prompt: string, more: Settings = {}) => item(prompt, { latencyMs: 0, ...more });
const refused = item('b', { createStatus: 400 });
/** One that fails before the run is suspended. */
const failing = () => fails('c', { latencyMs: 0 });

/** Runs an image for each prompt; the run is suspended at once where a task is unfinished. */
const atOnce = async (...[items, options, ...more]: Parameters<typeof on.images>) =>
	await on.images(items, { suspendAfter: 0, ...options }, ...more);

const webhookUrls = () => on.tasks.map(({ webhookUrl }) => webhookUrl);
const nameAll = (ran: Ran) => {
	for (const taskId of on.taskIds) expect(ran.description).toContain(taskId);
};

describe('an execution with unfinished tasks', () => {
	it('stores what leaves the node when the time is up (what is not finished, results, and what has failed already), and neither key nor token', async () => {
		const ran = await atOnce([slow('a'), done('b'), failing()]);
		const [first, second, third] = on.taskIds;
		const unfinished = {
			...{ taskId: first, state: 'PENDING', timedOut: true, resultUrls: [], creditsConsumed: null },
			...{ model: IMAGE_MODEL, input: { prompt: 'a' }, estimatedCostUsd: 0.08 },
			record: { input: { prompt: 'a' } },
		};
		expect(ran.isSuspended).toBe(true);
		expect(ran.waiting).toMatchObject([
			{ json: unfinished, pairedItem: { item: 0 } },
			{ json: { taskId: second, state: 'SUCCESS' }, pairedItem: { item: 1 } },
			{ json: { taskId: third, state: 'FAILURE', error: text('Unsafe') }, pairedItem: { item: 2 } },
		]);
		expect(ran.waiting[1]?.json).not.toHaveProperty('timedOut');
		// A callback of any other task is refused.
		const { contextData } = ran.run.data.executionData ?? {};
		expect(contextData?.['node:Media']?.check).toMatchObject({ taskIds: [first] });
		const stored = JSON.stringify(ran.run.data);
		expect(stored).not.toContain(on.service.apiKey);
		const token = callbackToken('/webhook-waiting/1/media-generation', on.service.apiKey);
		expect(webhookUrls()[0]).toContain(token);
		expect(stored).not.toContain(token);
	});

	it('may have 500 of them, each created and read once, with the last create and not after its interval', async () => {
		const items = Array.from({ length: 500 }, (_, index) => slow(`Prompt ${index}`));
		const ran = await atOnce(items, { maxInFlight: 500, pollInterval: 5 });
		expect(field(ran.waiting, 'taskId')).toEqual(on.taskIds);
		expect([on.creates.length, on.requests('GET').length]).toEqual([500, 500]);
		const lastCreate = Math.max(...on.creates.map(({ at }) => at));
		expect(Date.now() - lastCreate).toBeLessThan(3 * SECOND);
	});

	it('says above its output what n8n waits for', async () => {
		const { hints } = await atOnce([slow('a'), slow('b')]);
		expect(hints).toEqual([
			'2 tasks created. Estimated price: 0.16 USD.',
			'n8n waits for the tasks. You do not need to enter anything. Meanwhile two more executions in the list check the tasks: do not stop them.',
		]);
	});
});

it('nothing is suspended where all tasks are finished at once', async () => {
	const ran = await atOnce([done('a'), done('b')]);
	expect(ran.isSuspended).toBe(false);
	expect(field(ran.output, 'taskId')).toEqual(on.taskIds);
	expect(field(ran.output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
	expect(field(ran.output, 'timedOut')).toStrictEqual([undefined, undefined]);
});

describe('a create that fails', () => {
	const items = [slow('a', { latencyMs: 20 * SECOND }), refused];

	it('stops the node, when the tasks that were created are finished, and names them', async () => {
		const ran = await atOnce(items, { maxInFlight: 1, ifSomeFail: 'stop' });
		expect([ran.isSuspended, ran.run.status]).toEqual([false, 'error']);
		expect(ran.error?.message).toContain('HTTP 400');
		expect(on.elapsed).toBeGreaterThanOrEqual(20 * SECOND);
		expect(on.taskIds).toHaveLength(1);
		nameAll(ran);
	});

	it('has nobody wait longer than the timeout, however many tasks there are', async () => {
		const many = Array.from({ length: 60 }, (_, index) => slow(`Prompt ${index}`));
		const options = { maxInFlight: 1, timeout: 30, ifSomeFail: 'stop' };
		const ran = await atOnce([...many, refused], options);
		expect(ran.run.status).toBe('error');
		expect(on.elapsed).toBeLessThan(45 * SECOND);
		nameAll(ran);
	});

	it.each(['continueRegularOutput', 'continueErrorOutput'] as const)(
		'is an item of its own where the node goes on (%s)',
		async (onError) => {
			const ran = await atOnce(items, {}, { onError });
			expect(ran.isSuspended).toBe(true);
			expect(ran.waiting).toMatchObject([
				{ json: { taskId: on.taskIds[0], state: 'PENDING', timedOut: true } },
				{ json: { error: text('HTTP 400') } },
			]);
		},
	);

	it('in the first item makes Retry On Fail neither lose the input nor pay again', async () => {
		const ran = await atOnce([refused, slow('a')], {}, { ...threeTries, ...keepsGoing });
		expect([ran.isSuspended, on.taskIds.length]).toEqual([true, 1]);
		expect(field(ran.waiting, 'taskId')).toStrictEqual([undefined, on.taskIds[0]]);
	});
});

it('a retry of a stored execution takes up the tasks of the first, which call the first back, and waits for them', async () => {
	const options = { maxInFlight: 1, timeout: 10, ifSomeFail: 'stop' };
	const items = [slow('a', { latencyMs: 30 * SECOND }), slow('b')];
	const first = await atOnce(items, options);
	expect(first.run.status).toBe('error');
	const node = imageNode({ suspendAfter: 0, timeout: 60 });
	const retried = await on.retry(on.workflow(node, prompts(...items)), first);
	expect(retried.error).toBeUndefined();
	expect(retried.isSuspended).toBe(true);
	expect(retried.waiting).toMatchObject(
		on.taskIds.map((taskId) => ({ json: { taskId, state: 'PENDING', timedOut: true } })),
	);
	expect(webhookUrls()).toEqual(
		[1, 2].map((id) => text(`/webhook-waiting/${id}/media-generation`)),
	);
});

it('a node to which two branches lead works for the second one, after it was suspended for the first', async () => {
	const test = on.workflow(imageNode({ suspendAfter: 0 }));
	const both = startWorkflow(test, (node) => {
		const [first, second] = ['a', 'b'].map((prompt) => ({
			...{ node, source: null },
			data: { main: [prompts(slow(prompt))] },
		}));
		const data = beginning(first!);
		data.executionData?.nodeExecutionStack.push(second!);
		return data;
	});
	const stored = toStored((await passTime(both.result)).run.data);
	await passTime(startWorkflow(test, () => fromStored(stored)).result);
	expect(on.tasks.map(({ record }) => record.input.prompt)).toEqual(['a', 'b']);
});

/** What each item of a run has that its sub-execution was handed. */
const checkedIn = ({ handed }: Ran) => (readCheck(handed[0] ?? []) as ResultsCheck).items;

describe('a run that is held for a while', () => {
	const held = async (...[items, options, ...more]: Parameters<typeof on.images>) =>
		await on.images(items, { suspendAfter: 1, ...options }, ...more);

	it('is suspended with what has ended by then: results, files and errors, and asks for no callbacks, which would come to an execution that is awake', async () => {
		const ran = await held([done('a'), slow('b'), failing()], { downloadResults: true });
		expect(ran.isSuspended).toBe(true);
		expect(webhookUrls()).toStrictEqual([undefined, undefined, undefined]);
		expect(on.elapsed).toBeGreaterThanOrEqual(MINUTE);
		expect(on.elapsed).toBeLessThan(MINUTE + 5 * SECOND);
		const [first, second, third] = on.taskIds;
		const data = expect.stringMatching(/^iVBOR/) as string;
		const files = { data: { mimeType: 'image/png', data } };
		expect(ran.handed).toHaveLength(1);
		expect(checkedIn(ran)).toMatchObject([
			{ item: 0, json: { taskId: first, state: 'SUCCESS' }, binary: files },
			{ item: 1, json: { taskId: second }, waits: {} },
			{ item: 2, json: { taskId: third }, failure: { message: text('Unsafe prompt.') } },
		]);
		const [one, two, three] = checkedIn(ran);
		expect([one?.waits, three?.waits]).toStrictEqual([undefined, undefined]);
		// A day from its creation, and not from now.
		expect(two?.waits?.until).toBeLessThan(EPOCH + 24 * 60 * MINUTE + 5 * SECOND);
	});

	it('is suspended by then also where the service has asked for a longer pause, which the checks keep to', async () => {
		const pause = { readStatus: { status: 503, retryAfter: 3600 } };
		const ran = await held([slow('a', pause), slow('b')]);
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
		const options = { downloadResults, outputBinaryField };
		const { output = [] } = await checked(await held([slow('a'), slow('b'), slow('c')], options));
		expect(output.map(({ binary = {} }) => Object.keys(binary))).toEqual([['of_a'], [], ['of_c']]);
	});

	it.each([{ continueOnFail: true }, keepsGoing])(
		'lets its failed items out as the node says (%j)',
		async (more) => {
			const ran = await held([slow('a', { outcome: 'FAILURE' })], {}, more);
			const { output = [], failure } = await checked(ran);
			expect([failure, field(output, 'state')]).toStrictEqual([undefined, ['FAILURE']]);
		},
	);

	it('is held while a task may be created anew, and for its while after that', async () => {
		const ran = await held([fails('a', { latencyMs: 3 * MINUTE })], { retryFailed: 1 });
		expect(ran.isSuspended).toBe(true);
		expect(on.elapsed).toBeGreaterThanOrEqual(4 * MINUTE);
		const [failed, taskId] = on.taskIds;
		expect(checkedIn(ran)).toMatchObject([{ json: { taskId, failedTaskIds: [failed] } }]);
	});

	const refuses = { executeWorkflow: async () => await Promise.reject(new Error('No')) };
	const doesNot = {
		executeWorkflow: async () => await Promise.resolve({ executionId: '2', data: [null] }),
	};

	it.each<[string, TestWorkflow['host']]>([
		['refuses', refuses],
		['does not', doesNot],
	])('goes on where n8n %s to suspend it, and its items come out', async (_what, host) => {
		const items = [slow('a'), done('b'), slow('c', { outcome: 'FAILURE' })];
		const ran = await held(items, { downloadResults: true }, {}, { host });
		const { output } = ran;
		expect([ran.handed.length, ran.isSuspended, ran.run.status]).toEqual([1, false, 'success']);
		expect(field(output, 'taskId')).toEqual(on.taskIds);
		expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS', 'FAILURE']);
		expect(output.map(({ pairedItem }) => pairedItem)).toEqual([0, 1, 2].map((item) => ({ item })));
		const files = output.map(({ binary }) => Object.keys(binary ?? {}));
		expect(files).toEqual([['data'], ['data'], []]);
	});

	it('gives its tasks up at their time where n8n does not suspend it', async () => {
		const { output } = await held([slow('a')], { timeout: 120 }, keepsGoing, { host: refuses });
		const json = { taskId: on.taskIds[0], timedOut: true, error: text('120 s') };
		expect(output).toMatchObject([{ json }]);
	});

	const waits = async (ids: string[], options: IDataObject, more: Partial<TestWorkflow> = {}) => {
		const parameters = { resource: 'task', operation: 'wait', taskId: '={{ $json.id }}', options };
		return await on.run(
			{ parameters },
			ids.map((id) => ({ json: { id } })),
			more,
		);
	};
	const created = (prompt: string) =>
		on.service.createTask(IMAGE_MODEL, { prompt, simulate: { latencyMs: 5 * MINUTE } }).taskId;

	it('reads no more tasks at once than it may where n8n does not suspend it', async () => {
		const ids = [...'abcdef'].map(created);
		const { output } = await waits(ids, { suspendAfter: 0, maxInFlight: 2 }, { host: refuses });
		expect(field(output, 'taskId')).toEqual(ids);
		expect(field(output, 'state')).toEqual(ids.map(() => 'SUCCESS'));
		const later = on.requests('GET').filter(({ at }) => at - EPOCH < 30 * SECOND);
		const [, ...again] = new Set(later.slice(ids.length).map(({ path }) => path));
		expect(again).toHaveLength(1);
	});

	it('is not suspended while n8n tries it again: the next try takes up its tasks', async () => {
		on.service.configure({ createStatus: { status: 400, times: 1 } });
		const accepted = { createStatus: { status: 400, times: 0 } };
		const ran = await held([slow('a', accepted), slow('b')], {}, threeTries);
		expect([ran.isSuspended, ran.handed.length, on.taskIds.length]).toEqual([true, 1, 2]);
		expect(checkedIn(ran).map(({ json }) => json.taskId)).toEqual(on.taskIds);
	});

	it('of Task → Wait is suspended like one that creates', async () => {
		const ran = await waits([created('a')], { suspendAfter: 1 });
		expect(ran.isSuspended).toBe(true);
		expect(checkedIn(ran)).toMatchObject([{ json: { taskId: on.taskIds[0] }, waits: {} }]);
		// What was not created here was not sent here.
		expect(checkedIn(ran)[0]?.json).not.toHaveProperty('model');
	});
});

describe('a run that cannot be suspended is held to its end', () => {
	const items = [slow('a'), slow('b')];
	const source = { responseMode: 'lastNode' };

	it.each<[string, IDataObject, Partial<TestWorkflow>, number]>([
		['in a sub-workflow', {}, { mode: 'integrated' }, 2],
		['where the Webhook before it answers with the last node', {}, { source, mode: 'webhook' }, 2],
		['with several items for a result', { splitResults: true }, {}, 4],
	])('%s', async (_what, options, more, count) => {
		on.service.configure({ resultCount: 2 });
		const { run, output, handed } = await atOnce(items, { suspendAfter: 1, ...options }, {}, more);
		expect(run.status).toBe('success');
		expect(field(output, 'state')).toEqual(Array(count).fill('SUCCESS'));
		expect(handed).toEqual([]);
	});

	it('and says so where it was to be suspended at once', async () => {
		const ran = await atOnce(items, { splitResults: true });
		expect(ran.run.status).toBe('success');
		expect(ran.hints).toContainEqual(
			expect.stringMatching(
				/is not suspended, although 'Survive Restarts After' is 0: n8n would link/,
			),
		);
	});
});
