import {
	createEmptyRunExecutionData,
	type IDataObject,
	type INodeExecutionData,
} from 'n8n-workflow';

import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { HOUR } from '../durations';
import type { Settings } from '../service/settings';
import { caught, visibleText } from '../unit/support';
import { executeContext } from './engine';
import {
	fails,
	field,
	hasErrorOutput,
	imageNode,
	item,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
	text,
} from './support';
import { passTime, settle, time } from './time';

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
