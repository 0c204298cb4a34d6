import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import type { Settings } from '../service/settings';
import { caught, visibleText } from '../unit/support';
import { executeContext } from './engine';
import {
	descriptionOf,
	field,
	hasErrorOutput,
	imageNode,
	keepsGoing,
	prompts,
	stage,
} from './support';
import { passTime, settle, time } from './time';

const on = stage();

const fails = (prompt: string, latencyMs = 0) => ({
	prompt,
	simulate: { outcome: 'FAILURE', failureMessage: 'Unsafe prompt.', latencyMs },
});
const slow = (prompt: string) => ({ prompt, simulate: { latencyMs: 20_000 } });
const never = (prompt: string) => ({ prompt, simulate: { latencyMs: 3_600_000 } });
const refused = (prompt: string, createStatus: number | IDataObject = 400) => ({
	prompt,
	simulate: { createStatus },
});

const stops = { ifSomeFail: 'stop' };
const reasonOf = (prompt: string) =>
	`Task ${on.taskOf(prompt)} failed at the service: Unsafe prompt.`;

/** What became of each item: its state, its reason, and the item that it belongs to. */
const ends = (items: INodeExecutionData[]) =>
	items.map(({ json, pairedItem }) => [json.state, json.error, pairedItem]);

describe('On Error: Stop Workflow, If Some Items Fail: Stop', () => {
	it('waits for all tasks, and stops with what failed, what to change, and what is paid for', async () => {
		const ran = await on.images([slow('a'), fails('b'), slow('c')], stops);
		expect(ran.run.status).toBe('error');
		expect(ran.error).toMatchObject({ message: reasonOf('b'), context: { itemIndex: 1 } });
		expect(on.tasks.map(({ record }) => record.state)).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS']);
		const description = descriptionOf(ran);
		const places = [
			'The prompt of this item: “b”',
			'Change the prompt or the input of this item, then run this item alone',
			`2 tasks succeeded and are paid for. Task → Get fetches the results without paying again: ${on.taskOf('a')}, ${on.taskOf('c')}.`,
			`1 task failed, which is usually free: ${on.taskOf('b')}.`,
		].map((text) => description.indexOf(text));
		expect(places).toEqual([0, ...places.slice(1).sort((one, other) => one - other)]);
		expect(places).not.toContain(-1);
	});

	it('reports the first failed item in input order, whichever failed first', async () => {
		const { error } = await on.images([fails('late', 30_000), fails('early')]);
		expect(error?.message).toContain(on.taskOf('late'));
	});

	it('names a task that timed out, which goes on at the service', async () => {
		const ran = await on.images([never('a'), 'b'], { ...stops, timeout: 30 });
		const [a, b] = on.taskIds;
		expect(ran.error?.message).toBe(`Task ${a} is not finished after 30 s (last state: PENDING)`);
		const free = 'fetches the results without paying again:';
		for (const told of [
			`1 task succeeded and is paid for. Task → Get ${free} ${b}.`,
			`1 task is not finished, and is billed if it succeeds. Task → Wait ${free} ${a}.`,
		]) {
			expect(descriptionOf(ran)).toContain(told);
		}
	});
});

describe.each([
	['If Some Items Fail: Keep What Succeeded', {}],
	['On Error: Continue', keepsGoing],
	['On Error: Continue, as older workflows have it', { continueOnFail: true }],
])('%s', (_setting, node) => {
	it('lets all out where some succeeded, the failed ones with their reason and state', async () => {
		const { output, run } = await on.images([fails('a'), slow('b'), fails('c')], {}, node);
		expect(run.status).toBe('success');
		expect(ends(output)).toEqual([
			['FAILURE', reasonOf('a'), { item: 0 }],
			['SUCCESS', undefined, { item: 1 }],
			['FAILURE', reasonOf('c'), { item: 2 }],
		]);
	});

	it('lets out what is known of each: the price of a task, what was to be sent, the task of a late item', async () => {
		const items = ['a', fails('b'), never('c'), refused('d')];
		const { output } = await on.images(items, { timeout: 30 }, node);
		expect(field(output, 'estimatedCostUsd')).toEqual([0.08, 0.08, 0.08, undefined]);
		const failed = { taskId: on.taskOf('b'), state: 'FAILURE', input: { prompt: 'b' } };
		const record = { taskId: on.taskOf('b') };
		expect(output.map(({ json }) => json)).toMatchObject([
			{ state: 'SUCCESS' },
			{ ...failed, resultUrls: [], creditsConsumed: 0, record },
			{ taskId: on.taskOf('c'), state: 'PENDING', timedOut: true, input: { prompt: 'c' } },
			{ input: { prompt: 'd' }, error: expect.stringContaining('(HTTP 400)') as string },
		]);
	});

	it('creates all that come after a failure', async () => {
		const items = [fails('a'), fails('b'), 'c', 'd'];
		const { output } = await on.images(items, { maxInFlight: 1 }, node);
		expect(field(output, 'state')).toEqual(['FAILURE', 'FAILURE', 'SUCCESS', 'SUCCESS']);
	});
});

describe('items of which some fail', () => {
	it('leaves it to On Error where none succeeded', async () => {
		const stopped = await on.images([fails('a'), fails('b')]);
		expect(stopped.error?.message).toContain(on.taskOf('a'));
		expect(descriptionOf(stopped)).toContain('2 tasks failed, which is usually free');
		const { output } = await on.images([fails('a'), fails('b')], {}, keepsGoing);
		expect(field(output, 'state')).toEqual(['FAILURE', 'FAILURE']);
	});

	it.each(['get', 'wait'])(
		'holds for tasks that were created before, too (%s)',
		async (operation) => {
			const taskId = on.finishedTask();
			const parameters = { resource: 'task', operation, taskId: '={{ $json.taskId }}' };
			const items = [{ json: { taskId: 'unknown' } }, { json: { taskId } }];
			const { output } = await on.run({ parameters }, items);
			expect(output.map(({ json }) => json)).toMatchObject([
				{ taskId: 'unknown', error: expect.stringContaining('unknown') as string },
				{ taskId, state: 'SUCCESS' },
			]);
		},
	);
});

describe('On Error: Continue (using error output)', () => {
	it('lets the failed item out on the second output, with its task', async () => {
		const { output, errors } = await on.images(['a', fails('b'), 'c'], {}, hasErrorOutput);
		expect(field(output, 'taskId')).toEqual([on.taskOf('a'), on.taskOf('c')]);
		const details = { taskId: on.taskOf('b'), state: 'FAILURE' };
		expect(errors).toMatchObject([
			{ json: { prompt: 'b', error: reasonOf('b'), details }, pairedItem: { item: 1 } },
		]);
	});

	it('has only those items there, also one that reached no service', async () => {
		const all = await on.images(['a', 'b'], {}, hasErrorOutput);
		expect([all.output.length, all.errors.length]).toEqual([2, 0]);
		const { output, errors } = await on.images(['a', '', 'c'], {}, hasErrorOutput);
		expect(output).toHaveLength(2);
		expect(errors).toMatchObject([{ json: { error: "The parameter 'Prompt' is empty" } }]);
	});
});

describe('bad input in one of five items', () => {
	const items = ['a', 'b', '', 'd', 'e'];

	it('creates nothing where the node stops', async () => {
		const { error } = await on.images(items);
		expect(error).toMatchObject({
			message: "The parameter 'Prompt' is empty",
			context: { itemIndex: 2 },
		});
		expect(on.creates).toEqual([]);
	});

	it('creates the other four where it goes on', async () => {
		const { output } = await on.images(items, {}, keepsGoing);
		expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS', undefined, 'SUCCESS', 'SUCCESS']);
		expect(on.creates).toHaveLength(4);
	});
});

describe('a wrong key', () => {
	const wrong = () => ({ credential: { ...on.credential, apiKey: 'sk-live-wrong' } });

	it('is refused once, and no other item is sent', async () => {
		const ran = await on.images([...'abcde'], {}, {}, wrong());
		expect(on.requests('POST').map(({ status }) => status)).toEqual([401]);
		expect(ran.error?.message).toContain('The service refused the API key (HTTP 401)');
		expect(descriptionOf(ran)).toContain('paste the API key of your account again');
	});

	it('stands nowhere in what the run leaves behind', async () => {
		on.service.configure({ createStatus: { status: 401, body: 'No such key: sk-live-wrong' } });
		const { run } = await on.images(['a'], {}, {}, wrong());
		expect(visibleText(run.data.resultData)).not.toContain('sk-live-wrong');
	});
});

describe('a create that is refused', () => {
	it.each([400, 402, 422])('with HTTP %d is an error of its item alone', async (status) => {
		const items = ['a', refused('b', { status, body: { error: 'No' } }), 'c'];
		const { output } = await on.images(items, {}, keepsGoing);
		expect(field(output, 'state')).toEqual(['SUCCESS', undefined, 'SUCCESS']);
		expect(String(output[1]?.json.error)).toMatch(new RegExp(`\\(HTTP ${status}\\): No$`));
	});
});

describe('a stop of the execution', () => {
	/** Runs the node, and stops it after ten seconds. */
	async function stopped(items: INodeExecutionData[], options: IDataObject = {}) {
		const stop = new AbortController();
		const context = executeContext(on.workflow(imageNode(options), items), stop.signal);
		const ended = caught(async () => await new MediaGeneration().execute.call(context));
		for (let second = 0; second < 10; second++) {
			await settle();
			await time.pass(1000);
		}
		const stoppedAt = Date.now();
		stop.abort();
		const error = await passTime(ended);
		return { error, tookMs: Date.now() - stoppedAt };
	}

	it('names the tasks, which go on at the service', async () => {
		const { error } = await stopped(prompts(never('a'), 'b', never('c')));
		expect(error).toMatchObject({
			message: 'The execution was stopped',
			description: expect.stringContaining(
				`2 tasks are not finished, and are billed if they succeed. Task → Wait fetches the results without paying again: ${on.taskOf('a')}, ${on.taskOf('c')}.`,
			) as string,
		});
	});

	it.each<[string, Settings, IDataObject]>([
		['a task is waited for', { latencyMs: 3_600_000 }, {}],
		['the account lets nobody in', { concurrencyLimit: 0 }, {}],
		['a failed task is to be created anew', { outcome: 'FAILURE' }, { retryFailed: 5 }],
	])('while %s ends the run within a second, and no request leaves after it', async (...given) => {
		const [, settings, options] = given;
		on.service.configure(settings);
		const { tookMs } = await stopped(prompts('a'), options);
		expect(tookMs).toBeLessThanOrEqual(1000);
		const sent = on.service.requests.length;
		expect(sent).toBeGreaterThan(0);
		await time.pass(300_000);
		await settle();
		expect(on.service.requests).toHaveLength(sent);
	});
});
