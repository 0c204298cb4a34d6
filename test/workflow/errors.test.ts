import type { INodeExecutionData } from 'n8n-workflow';

import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { caught, visibleText } from '../unit/support';
import { executeContext, startWorkflow } from './engine';
import { descriptionOf, field, imageNode, prompts, stage } from './support';
import { passTime, settle } from './time';

const on = stage();

const fails = (prompt: string, latencyMs = 0) => ({
	prompt,
	simulate: { outcome: 'FAILURE', failureMessage: 'Unsafe prompt.', latencyMs },
});
const slow = (prompt: string) => ({ prompt, simulate: { latencyMs: 20_000 } });

/** The task of each prompt that reached the service. */
const taskOf = (prompt: string) => {
	const found = [...on.service.tasks.values()].find(({ record }) => record.input.prompt === prompt);
	return found?.taskId ?? '';
};

const stops = { ifSomeFail: 'stop' };
const keepsGoing = { onError: 'continueRegularOutput' as const };
const hasErrorOutput = { onError: 'continueErrorOutput' as const };

describe('On Error: Stop Workflow, If Some Items Fail: Stop', () => {
	const batch = () => prompts(slow('a'), fails('b'), slow('c'));

	it('stops with the failed task, its reason and its item', async () => {
		const { error, run } = await on.run(imageNode(stops), batch());
		expect(run.status).toBe('error');
		expect(error).toMatchObject({
			message: `Task ${taskOf('b')} failed at the service: Unsafe prompt.`,
			context: { itemIndex: 1 },
		});
	});

	it('names every task that was created, by its state', async () => {
		const ran = await on.run(imageNode(stops), batch());
		expect(descriptionOf(ran)).toContain(
			`2 tasks succeeded and are paid for: ${taskOf('a')}, ${taskOf('c')}. Get the results without paying again: operation Task → Get`,
		);
	});

	it('says first which prompt failed, then what to change, then what is paid for', async () => {
		const description = descriptionOf(await on.run(imageNode(stops), batch()));
		const places = [
			'The prompt of this item: “b”',
			'Change the prompt or the input of this item, then run this item alone',
			'2 tasks succeeded and are paid for',
			`1 task failed, which is usually free: ${taskOf('b')}.`,
		].map((text) => description.indexOf(text));
		expect(places).toEqual([0, ...places.slice(1).sort((one, other) => one - other)]);
		expect(places).not.toContain(-1);
	});

	it('waits for the tasks that were created before', async () => {
		await on.run(imageNode(stops), batch());
		expect([...on.service.tasks.values()].map(({ record }) => record.state)).toEqual([
			'SUCCESS',
			'FAILURE',
			'SUCCESS',
		]);
	});

	it('creates nothing more after the failure', async () => {
		const { error } = await on.run(
			imageNode({ ...stops, maxInFlight: 2 }),
			prompts(slow('a'), fails('b'), 'c', 'd', 'e'),
		);
		expect(error?.message).toContain(taskOf('b'));
		expect(on.creates).toHaveLength(2);
	});

	it('reports the first failed item in input order, whichever failed first', async () => {
		const { error } = await on.run(imageNode(), prompts(fails('late', 30_000), fails('early')));
		expect(error?.message).toContain(taskOf('late'));
	});

	it('names a task that timed out, which goes on at the service', async () => {
		const never = { prompt: 'a', simulate: { latencyMs: 3_600_000 } };
		const ran = await on.run(imageNode({ ...stops, timeout: 30 }), prompts(never, 'b'));
		expect(ran.error?.message).toBe(
			`Task ${taskOf('a')} is not finished after 30 s (last state: PENDING)`,
		);
		expect(descriptionOf(ran)).toContain(`1 task succeeded and is paid for: ${taskOf('b')}.`);
		expect(descriptionOf(ran)).toContain(
			`1 task is not finished, and is billed if it succeeds: ${taskOf('a')}. Fetch`,
		);
	});
});

describe('If Some Items Fail: Keep What Succeeded', () => {
	it('lets all out where some succeeded, the failed ones with their reason and state', async () => {
		const { output, run } = await on.run(imageNode(), prompts(fails('a'), slow('b'), fails('c')));
		expect(run.status).toBe('success');
		expect(output.map(({ json, pairedItem }) => [json.state, json.error, pairedItem])).toEqual([
			['FAILURE', `Task ${taskOf('a')} failed at the service: Unsafe prompt.`, { item: 0 }],
			['SUCCESS', undefined, { item: 1 }],
			['FAILURE', `Task ${taskOf('c')} failed at the service: Unsafe prompt.`, { item: 2 }],
		]);
	});

	it('says of each task what it was to cost, also of one that failed or is late', async () => {
		const late = { prompt: 'c', simulate: { latencyMs: 3_600_000 } };
		const items = prompts('a', fails('b'), late, { prompt: 'd', simulate: { createStatus: 400 } });
		const { output } = await on.run(imageNode({ timeout: 30 }), items);
		expect(field(output, 'estimatedCostUsd')).toEqual([0.08, 0.08, 0.08, undefined]);
	});

	it('has the reason near the front, and the record last', async () => {
		const { output } = await on.run(imageNode(), prompts('a', fails('b')));
		expect(output.map(({ json }) => Object.keys(json).slice(0, 3))).toEqual([
			['taskId', 'state', 'resultUrls'],
			['taskId', 'state', 'error'],
		]);
		expect(output.map(({ json }) => Object.keys(json).at(-1))).toEqual(['record', 'record']);
	});

	it('creates all that come after a failure', async () => {
		const items = prompts(fails('a'), fails('b'), 'c', 'd');
		const { output } = await on.run(imageNode({ maxInFlight: 1 }), items);
		expect(field(output, 'state')).toEqual(['FAILURE', 'FAILURE', 'SUCCESS', 'SUCCESS']);
	});

	it('lets out a refused item with what was to be sent, and a late one with its task', async () => {
		const refused = { prompt: 'a', simulate: { createStatus: 400 } };
		const late = { prompt: 'c', simulate: { latencyMs: 3_600_000 } };
		const { output } = await on.run(imageNode({ timeout: 30 }), prompts(refused, 'b', late));
		expect(output.map(({ json }) => json)).toMatchObject([
			{ input: { prompt: 'a' }, error: expect.stringContaining('(HTTP 400)') as string },
			{ state: 'SUCCESS' },
			{ taskId: taskOf('c'), state: 'PENDING', timedOut: true, input: { prompt: 'c' } },
		]);
	});

	it('leaves it to On Error where none succeeded', async () => {
		const stopped = await on.run(imageNode(), prompts(fails('a'), fails('b')));
		expect(stopped.error?.message).toContain(taskOf('a'));
		expect(descriptionOf(stopped)).toContain('2 tasks failed, which is usually free');
		const { output } = await on.run(imageNode({}, keepsGoing), prompts(fails('a'), fails('b')));
		expect(field(output, 'state')).toEqual(['FAILURE', 'FAILURE']);
	});

	it('sends failed items to the error output, where there is one', async () => {
		const node = imageNode({ ifSomeFail: 'keep' }, hasErrorOutput);
		const { output, errors } = await on.run(node, prompts('a', fails('b')));
		expect([field(output, 'taskId'), errors.length]).toEqual([[taskOf('a')], 1]);
	});

	it('creates nothing where a parameter of one item cannot be meant', async () => {
		const { error } = await on.run(imageNode(), prompts('a', '', 'c'));
		expect(error?.message).toBe("The parameter 'Prompt' is empty");
		expect(on.creates).toEqual([]);
	});

	it.each(['get', 'wait'])(
		'holds for tasks that were created before, too (%s)',
		async (operation) => {
			const { taskId } = on.service.createTask('a/b', { prompt: 'A' });
			on.service.complete(taskId);
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

describe('On Error: Continue', () => {
	it('lets the failed item out in its place, with what is known of its task', async () => {
		const { output, run } = await on.run(
			imageNode({}, keepsGoing),
			prompts(slow('a'), fails('b'), 'c'),
		);
		expect(run.status).toBe('success');
		expect(output.map(({ json, pairedItem }) => [json.state, json.error, pairedItem])).toEqual([
			['SUCCESS', undefined, { item: 0 }],
			['FAILURE', `Task ${taskOf('b')} failed at the service: Unsafe prompt.`, { item: 1 }],
			['SUCCESS', undefined, { item: 2 }],
		]);
		expect(output[1]?.json).toMatchObject({
			taskId: taskOf('b'),
			resultUrls: [],
			creditsConsumed: 0,
			input: { prompt: 'b' },
			record: { taskId: taskOf('b') },
		});
	});

	it('creates all that come after the failure', async () => {
		await on.run(
			imageNode({ maxInFlight: 1 }, keepsGoing),
			prompts(fails('a'), fails('b'), 'c', 'd'),
		);
		expect(on.creates).toHaveLength(4);
	});

	it('is the same for a workflow that was saved with the older setting', async () => {
		const { output } = await on.run(
			imageNode({}, { continueOnFail: true }),
			prompts(fails('a'), 'b'),
		);
		expect(field(output, 'state')).toEqual(['FAILURE', 'SUCCESS']);
	});
});

describe('On Error: Continue (using error output)', () => {
	it('lets the failed item out on the second output, with its task', async () => {
		const { output, errors } = await on.run(
			imageNode({}, hasErrorOutput),
			prompts('a', fails('b'), 'c'),
		);
		expect(field(output, 'taskId')).toEqual([taskOf('a'), taskOf('c')]);
		expect(errors).toMatchObject([
			{
				json: {
					prompt: 'b',
					error: `Task ${taskOf('b')} failed at the service: Unsafe prompt.`,
					details: { taskId: taskOf('b'), state: 'FAILURE' },
				},
				pairedItem: { item: 1 },
			},
		]);
	});

	it('has only those items on the second output', async () => {
		const { output, errors } = await on.run(imageNode({}, hasErrorOutput), prompts('a', 'b'));
		expect([output.length, errors.length]).toEqual([2, 0]);
	});

	it('has an item there that reached no service', async () => {
		const { output, errors } = await on.run(imageNode({}, hasErrorOutput), prompts('a', '', 'c'));
		expect(output).toHaveLength(2);
		expect(errors).toMatchObject([{ json: { error: "The parameter 'Prompt' is empty" } }]);
	});
});

describe('bad input in one of five items', () => {
	const items = prompts('a', 'b', '', 'd', 'e');

	it('creates nothing where the node stops', async () => {
		const { error } = await on.run(imageNode(), items);
		expect(error).toMatchObject({
			message: "The parameter 'Prompt' is empty",
			context: { itemIndex: 2 },
		});
		expect(on.creates).toEqual([]);
	});

	it('creates the other four where it goes on', async () => {
		const { output } = await on.run(imageNode({}, keepsGoing), items);
		expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS', undefined, 'SUCCESS', 'SUCCESS']);
		expect(on.creates).toHaveLength(4);
	});

	it.each([
		{ pollInterval: 1 },
		{ pollInterval: 6 },
		{ timeout: -1 },
		{ suspendAfter: -1 },
		{ suspendAfter: 'soon' },
		{ checkInterval: 0.5 },
		{ maxInFlight: 0 },
		{ additionalInput: 'x' },
		{ maxCostUsd: 0.01 },
	])('or in the options (%j) creates nothing', async (options) => {
		const { error } = await on.run(imageNode(options), prompts('a', 'b'));
		expect(error?.message).toBeDefined();
		expect(on.creates).toEqual([]);
	});
});

describe('a wrong key', () => {
	const wrong = () => ({ credential: { ...on.credential, apiKey: 'sk-live-wrong' } });

	it('is refused once, and no other item is sent', async () => {
		const ran = await on.run(imageNode(), prompts(...'abcde'), wrong());
		expect(on.requests('POST').map(({ status }) => status)).toEqual([401]);
		expect(ran.error?.message).toContain('The service refused the API key (HTTP 401)');
		expect(descriptionOf(ran)).toContain('paste the API key of your account again');
	});

	it('is said of each item where the node goes on, and not sent for each', async () => {
		const { output } = await on.run(
			imageNode({ maxInFlight: 1 }, keepsGoing),
			prompts(...'abcde'),
			wrong(),
		);
		expect(field(output, 'error')).toEqual(
			Array(5).fill(expect.stringContaining('refused the API key')),
		);
		expect(on.requests('POST')).toHaveLength(1);
	});

	it('stands nowhere in what the run leaves behind', async () => {
		on.service.configure({ createStatus: { status: 401, body: 'No such key: sk-live-wrong' } });
		const { run } = await on.run(imageNode(), prompts('a'), wrong());
		expect(visibleText(run.data.resultData)).not.toContain('sk-live-wrong');
	});

	it('that is empty is told before any request', async () => {
		const { error } = await on.run(imageNode(), prompts('a'), {
			credential: { ...on.credential, apiKey: '' },
		});
		expect(error?.message).toContain("The 'API Key'");
		expect(on.service.requests).toEqual([]);
	});
});

describe('a create that is refused', () => {
	it.each([400, 402, 422])('with HTTP %d is an error of its item alone', async (status) => {
		const refused = { prompt: 'b', simulate: { createStatus: { status, body: { error: 'No' } } } };
		const { output } = await on.run(imageNode({}, keepsGoing), prompts('a', refused, 'c'));
		expect(field(output, 'state')).toEqual(['SUCCESS', undefined, 'SUCCESS']);
		expect(String(output[1]?.json.error)).toMatch(new RegExp(`\\(HTTP ${status}\\): No$`));
	});

	it('stops the items that wait for their turn, where the node stops', async () => {
		const refused = { prompt: 'a', simulate: { createStatus: 400 } };
		const { error } = await on.run(imageNode(stops), prompts(refused, 'b', 'c'));
		expect(error?.message).toContain('(HTTP 400)');
		expect(on.creates).toHaveLength(1);
	});

	it.each([
		['lost on the way', { createLost: true }],
		['HTTP 500', { createStatus: 500 }],
		['HTTP 502', { createStatus: 502 }],
		['a web page', { createShape: 'html' }],
		['an answer without an id', { createShape: 'missing' }],
	])('by %s is never sent twice, and said to be in doubt', async (_what, simulate) => {
		const ran = await on.run(imageNode(), prompts({ prompt: 'a', simulate }));
		expect(ran.error?.message).toContain('It is not known whether the task was created');
		expect(descriptionOf(ran)).toContain('was not sent again');
		expect(on.creates).toHaveLength(1);
	});
});

describe('a stop of the execution', () => {
	const never = (prompt: string) => ({ prompt, simulate: { latencyMs: 3_600_000 } });

	/** The node in the middle of its wait, as n8n runs it, and the stop button. */
	const waitingNode = async (items: INodeExecutionData[]) => {
		const stop = new AbortController();
		const context = executeContext(on.workflow(imageNode(), items), stop.signal);
		const ended = caught(async () => await new MediaGeneration().execute.call(context));
		for (let second = 0; second < 10; second++) {
			await settle();
			await jest.advanceTimersByTimeAsync(1000);
		}
		return { stop, ended };
	};

	it('ends the wait within a second, and names the tasks', async () => {
		const { stop, ended } = await waitingNode(prompts(never('a'), 'b', never('c')));
		const stoppedAt = Date.now();
		stop.abort();
		const error = await passTime(ended);
		expect(Date.now() - stoppedAt).toBeLessThanOrEqual(1000);
		expect(error).toMatchObject({
			message: 'The execution was stopped',
			description: expect.stringContaining(
				`2 tasks are not finished, and are billed if they succeed: ${taskOf('a')}, ${taskOf('c')}.`,
			) as string,
		});
	});

	it('lets no request leave after it', async () => {
		const { execution, result } = startWorkflow(on.workflow(imageNode(), prompts(never('a'))));
		await settle();
		await jest.advanceTimersByTimeAsync(5000);
		await settle();
		const before = on.service.requests.length;
		execution.cancel();
		expect((await result).run.status).toBe('canceled');
		await jest.advanceTimersByTimeAsync(60_000);
		await settle();
		expect([before > 1, on.service.requests.length - before]).toEqual([true, 0]);
	});
});
