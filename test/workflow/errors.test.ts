import assert from 'node:assert';

import { DataDeduplicationService } from 'n8n-core';
import {
	createEmptyRunExecutionData,
	type ICredentialsHelper,
	type IDataObject,
	type INodeExecutionData,
} from 'n8n-workflow';
import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { HOUR } from '../durations';
import type { Settings } from '../service/settings';
import { caught, visibleText } from '../unit/support';
import { additionalData, executeContext } from './engine';
import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { store } from './processedData';
import { fromStored } from './stored';
import {
	fails,
	field,
	hasErrorOutput,
	imageNode,
	images,
	item,
	jsonOf,
	keepsGoing,
	many,
	MINUTE,
	prompts,
	SECOND,
	stage,
	text,
} from './support';
import { passTime, passUntil, settle, time } from './time';

/** How a run ends that does not succeed as a whole: by its items, by its account, by a stop. */

const on = stage();

const slow = (prompt: string) => item(prompt, { latencyMs: 20 * SECOND });
const never = (prompt: string) => item(prompt, { latencyMs: HOUR });

const stops = { ifSomeFail: 'stop' };
const reasonOf = (prompt: string) => `Unsafe prompt (task ${on.taskOf(prompt)})`;
const GET = 'Get Task fetches the results without paying again:';
const WAIT = 'Wait for Task fetches the results without paying again:';

describe('On Error: Stop Workflow, If Some Items Fail: Stop', () => {
	it('waits for all tasks, and stops with what failed, what to change, and what is paid for', async () => {
		const ran = await on.images([slow('a'), fails('b'), slow('c')], stops);
		expect(ran.run.status).toBe('error');
		expect(ran.error?.message).toBe(`${reasonOf('b')} (item 2)`);
		expect(on.tasks.map(({ record }) => record.state)).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS']);
		for (const told of [
			'The prompt of this item: “b”',
			'Change the prompt or the input of this item, then run the item again',
			"'Retry execution' in the list of executions orders only what failed: a full run would pay for the others twice.",
			`2 tasks succeeded and are paid for. ${GET} ${on.taskOf('a')}, ${on.taskOf('c')}.`,
			`1 task failed, which is usually free: ${on.taskOf('b')}.`,
		]) {
			expect(ran.description).toContain(told);
		}
	});

	it('names a task that timed out, which goes on at the service', async () => {
		const ran = await on.images([never('a'), 'b'], { ...stops, timeout: 30 });
		const [a, b] = on.taskIds;
		expect(ran.error?.message).toBe(
			`The task is not finished after 30 s; last state: PENDING (task ${a}) (item 1)`,
		);
		const description = ran.description;
		expect(description).toContain(`1 task succeeded and is paid for. ${GET} ${b}.`);
		const billed = '1 task is not finished, and is billed if it succeeds.';
		expect(description).toContain(`${billed} ${WAIT} ${a}.`);
	});
});

describe.each([
	['If Some Items Fail: Keep All Items', {}],
	['On Error: Continue', keepsGoing],
	['On Error: Continue, as older workflows have it', { continueOnFail: true }],
])('%s', (_setting, node) => {
	it('lets all out where some succeeded, the failed ones with their reason and all that is known of each', async () => {
		const items = [fails('a'), slow('b'), never('c'), item('d', { createStatus: 400 })];
		const { output, run } = await on.images(items, { timeout: 30 }, node);
		expect(run.status).toBe('success');
		// What did not fail may be billed.
		expect(field(output, 'estimatedCostUsd')).toEqual([undefined, 0.08, 0.08, undefined]);
		const advice = [
			'The task failed at the service, which is usually free',
			undefined,
			'The task goes on at the service',
			undefined,
		];
		for (const [index, begin] of advice.entries()) {
			if (begin !== undefined) expect(output[index]?.json.advice).toContain(begin);
		}
		const [a, b, c] = on.taskIds;
		const failed = { taskId: a, state: 'FAILURE', error: reasonOf('a'), input: { prompt: 'a' } };
		expect(output).toMatchObject(
			[
				{
					...failed,
					resultUrls: [],
					creditsConsumed: 0,
					record: { createdAt: '2026-01-01T00:00:00.000Z' },
				},
				{ taskId: b, state: 'SUCCESS' },
				{
					taskId: c,
					state: 'PENDING',
					timedOut: true,
					input: { prompt: 'c' },
					error: text('30 s'),
				},
				{ input: { prompt: 'd' }, error: text('(HTTP 400)') },
			].map((json, index) => ({ json, pairedItem: { item: index } })),
		);
		expect(output[1]?.json).not.toHaveProperty('error');
	});
});

it.each(['get', 'wait'])(
	'what succeeded is kept of tasks that were created before, too (%s)',
	async (operation) => {
		const taskId = on.finishedTask();
		const parameters = { resource: 'task', operation, taskId: '={{ $json.taskId }}' };
		const items = [{ json: { taskId: 'unknown' } }, { json: { taskId } }];
		expect((await (await on.start({ parameters }, items)).end()).output).toMatchObject([
			{ json: { taskId: 'unknown', error: text('unknown') } },
			{ json: { taskId, state: 'SUCCESS' } },
		]);
	},
);

describe('On Error: Continue (using error output)', () => {
	it('lets the failed item out on the second output, with its task', async () => {
		const { output, errors } = await on.images(['a', fails('b'), 'c'], {}, hasErrorOutput);
		expect(field(output, 'taskId')).toEqual([on.taskOf('a'), on.taskOf('c')]);
		const details = { taskId: on.taskOf('b'), state: 'FAILURE' };
		expect(errors).toMatchObject([
			{ json: { prompt: 'b', error: reasonOf('b'), details }, pairedItem: { item: 1 } },
		]);
	});
});

describe('bad input in one of five items', () => {
	const items = ['a', 'b', '', 'd', 'e'];

	it('creates nothing where the node stops', async () => {
		const { error } = await on.images(items);
		expect(error?.message).toBe("The parameter 'Prompt' is empty (item 3)");
		expect(on.creates).toEqual([]);
	});

	it('creates the other four where it goes on', async () => {
		const { output } = await on.images(items, {}, keepsGoing);
		expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS', undefined, 'SUCCESS', 'SUCCESS']);
		expect(on.creates).toHaveLength(4);
	});
});

it('a wrong key is refused once, no other item is sent, and the key stands nowhere in what the run leaves behind', async () => {
	on.service.configure({ createStatus: { status: 401, body: 'No such key: sk-live-wrong' } });
	const credential = { ...on.credential, apiKey: 'sk-live-wrong' };
	const ran = await on.images([...'abcde'], {}, {}, { credential });
	expect(on.requests('POST').map(({ status }) => status)).toEqual([401]);
	expect(ran.error?.message).toContain('The service refused the API key (HTTP 401)');
	expect(ran.description).toContain('paste the API key of your account again');
	expect(visibleText(ran.run.data.resultData)).not.toContain('sk-live-wrong');
});

describe('a stop of the execution', () => {
	/** Runs the node, and stops it after ten seconds. */
	async function stopped(items: INodeExecutionData[], options: IDataObject = {}) {
		const stop = new AbortController();
		const context = executeContext(on.workflow(imageNode(options), items), stop.signal);
		// n8n has stored the beginning of the execution.
		context.getExecutionDataById = async () => await Promise.resolve(createEmptyRunExecutionData());
		const ended = caught(async () => await new MediaGeneration().execute.call(context));
		for (let second = 0; second < 10; second++) {
			await settle();
			await time.pass(SECOND);
		}
		const stoppedAt = Date.now();
		stop.abort();
		return { error: await passTime(ended), tookMs: Date.now() - stoppedAt };
	}

	it('names the tasks, which go on at the service', async () => {
		const { error } = await stopped(prompts(never('a'), 'b', never('c')));
		const billed = '2 tasks are not finished, and are billed if they succeed.';
		const description = text(`${billed} ${WAIT} ${on.taskOf('a')}, ${on.taskOf('c')}.`);
		expect(error).toMatchObject({ message: 'The execution was stopped', description });
	});

	it.each<[string, Settings, IDataObject]>([
		['a task is waited for', { latencyMs: HOUR }, {}],
		['the account lets nobody in', { concurrencyLimit: 0 }, {}],
		['a failed task is to be created anew', { outcome: 'FAILURE' }, { retryFailed: 5 }],
	])('while %s ends the run within a second, and no request leaves after it', async (...given) => {
		const [, settings, options] = given;
		on.service.configure(settings);
		const { tookMs } = await stopped(prompts('a'), options);
		expect(tookMs).toBeLessThanOrEqual(SECOND);
		const sent = on.service.requests.length;
		expect(sent).toBeGreaterThan(0);
		await time.pass(5 * MINUTE);
		await settle();
		expect(on.service.requests).toHaveLength(sent);
	});
});

it('orders that are too large concern their items alone, from the first one on', async () => {
	const large = (prompt: string) => item(prompt, { createStatus: 413 });
	const items = ['a', 'b', 'c', 'd', 'e', 'f'].map(large);
	const { output } = await on.images([...items, 'g', 'h'], {}, keepsGoing);
	expect(field(output, 'state').slice(6)).toEqual(['SUCCESS', 'SUCCESS']);
	expect(field(output, 'error').slice(0, 6)).toEqual(
		Array(6).fill(text('The request is too large for the service (HTTP 413)')),
	);
});

/** A credential whose key is the expression {{ $json.key }}. */
function byRow(): { host: { credentialsHelper: ICredentialsHelper }; lookUps: () => number } {
	let lookUps = 0;
	const getDecrypted: ICredentialsHelper['getDecrypted'] = async (...given) => {
		lookUps++;
		const [, , , , , raw, values] = given;
		const row: IDataObject = values?.connectionInputData[values.itemIndex]?.json ?? {};
		return { ...on.credential, apiKey: raw === true ? '={{ $json.key }}' : String(row.key) };
	};
	const { credentialsHelper } = additionalData(on.credential);
	const host = { credentialsHelper: Object.assign(credentialsHelper, { getDecrypted }) };
	return { host, lookUps: () => lookUps };
}

const rows = (...keys: string[]) =>
	keys.map((key, index) => ({ json: { prompt: `Prompt ${index}`, key, taskId: `task-${index}` } }));

const reads = (operation: string) => ({
	parameters: { resource: 'task', operation, taskId: '={{ $json.taskId }}' },
});

it.each([
	['held', imageNode({}, keepsGoing)],
	['that is stored first', imageNode({ suspendAfter: 0 }, keepsGoing)],
	['of Get', { ...keepsGoing, ...reads('get') }],
	['of Wait', { ...keepsGoing, ...reads('wait') }],
])('a run %s whose credential gives its items several keys asks nothing', async (_what, node) => {
	const { host } = byRow();
	const key = on.service.apiKey;
	const { output } = await on.run(node, rows(key, key, 'sk-live-carl'), { host });
	const error = text('The credential gives item 3 another account than item 1');
	expect(field(output, 'error')).toEqual(Array(3).fill(error));
	expect(on.service.requests).toEqual([]);
});

it('the error says what to do', async () => {
	const { host } = byRow();
	const { error, description } = await on.run(imageNode(), rows('sk-live-a', 'sk-live-b'), {
		host,
	});
	expect(error?.message).toContain('a run has one account');
	expect(description).toContain('Loop Over Items with a Batch Size of 1');
});

it('a run whose items have one key by an expression orders with it', async () => {
	const { host } = byRow();
	const { apiKey } = on.service;
	const { output } = await on.run(imageNode(), rows(apiKey, apiKey), { host });
	expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
});

it('a credential without an expression is not looked up for each item', async () => {
	const getDecrypted = jest.fn(async () => ({ ...on.credential }));
	const { credentialsHelper } = additionalData(on.credential);
	Object.assign(credentialsHelper, { getDecrypted });
	const { apiKey } = on.service;
	await on.run(imageNode(), rows(apiKey, apiKey, apiKey), { host: { credentialsHelper } });
	expect(getDecrypted.mock.calls.length).toBeLessThanOrEqual(2);
});

describe('an account that runs dry, or whose key is refused,', () => {
	const NINE = Array.from({ length: 9 }, (_, index) => `Prompt ${index}`);
	const out = { status: 402, after: 1 };
	const revoked = { status: 401, after: 1 };

	it.each([
		['credits, If Some Items Fail: Keep All Items', out, {}],
		['credits, asleep', out, { suspendAfter: 0 }],
		['the key', revoked, {}],
	])(
		'ends the run as an error, and the retry orders exactly the rest (%s)',
		async (_what, createStatus, options) => {
			on.service.configure({ createStatus });
			const run = await on.start(imageNode({ ...options, maxInFlight: 1 }), prompts(...NINE));
			await run.end();
			expect(run.row.status).toBe('error');
			expect(run.ran.description).toContain("'Retry execution' in the list of executions");
			expect(run.ran.description).toContain(on.taskIds[0]);
			expect(on.created).toBe(1);
			on.service.resetSettings();
			const retry = await run.retry();
			await retry.end();
			expect(retry.row.status).toBe('success');
			expect(on.inputs.map(({ prompt }) => prompt)).toEqual(NINE);
			expect(field(retry.ran.output, 'taskId')).toEqual(on.taskIds);
		},
	);

	it('lets all items out where On Error says so', async () => {
		on.service.configure({ createStatus: out });
		const { output } = await on.images(NINE, { maxInFlight: 1 }, keepsGoing);
		expect(field(output, 'state')).toEqual(['SUCCESS', ...Array<undefined>(8).fill(undefined)]);
	});
});

/** What a stop of an awake run leaves: a short execution of the workflow, with an item for each task. */

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

it('where n8n-core was given no store of processed data, the node orders all the same', async () => {
	const getInstance = jest
		.spyOn(DataDeduplicationService, 'getInstance')
		.mockImplementation(() => assert.fail('There is no store'));
	const { error, output } = await on.run(imageNode(), images(2, 10));
	getInstance.mockRestore();
	expect(error).toBeUndefined();
	expect(output).toHaveLength(2);
	expect(on.created).toBe(2);
});
