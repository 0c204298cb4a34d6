import { Container } from '@n8n/di';
import { BinaryDataConfig } from 'n8n-core';
import type { IDataObject, INodeExecutionData } from 'n8n-workflow';
import type { Settings } from '../service/settings';
import { EPOCH } from '../virtualTime';
import { additionalData, type TestNode } from './engine';
import { fromStored, toStored } from './stored';
import {
	fails,
	field,
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
import { pass, time } from './time';

/** What is paid for: within the limits of an account, and in all tries of n8n. */

const on = stage();

const stops = { ifSomeFail: 'stop' };
const returns = { parameters: { completion: 'return' } };

/** The first try gives a late task up. */
const givesUp = { timeout: 10 };
const late = (seconds = 15) => ({ latencyMs: seconds * SECOND });

const refusals = () => on.creates.filter(({ status }) => status !== 200).length;

/** Items whose tasks take the given times in turn, seconds. */
const batch = (count: number, ...seconds: number[]) =>
	Array.from({ length: count }, (_, index) =>
		item(`p${index}`, late(seconds[index % seconds.length] ?? 0)),
	);

/** n8n looks credentials up like this. */
function host(getDecrypted: jest.Mock) {
	const { credentialsHelper } = additionalData(on.credential);
	return { host: { credentialsHelper: Object.assign(credentialsHelper, { getDecrypted }) } };
}
const away = new Error('The database is away');
const found = () => jest.fn(async () => await Promise.resolve({ ...on.credential }));

// The law spreads its probes by chance.
beforeEach(() => {
	jest.spyOn(Math, 'random').mockReturnValue(0.5);
});
afterEach(() => {
	jest.restoreAllMocks();
});

it('a batch above the budget is refused whole, and the hint says why, also where n8n goes on', async () => {
	const { output, hints } = await on.images(['a', 'b'], { maxCostUsd: 0.1 }, keepsGoing);
	expect(output).toHaveLength(2);
	expect(hints).toEqual([
		expect.stringMatching(/^2 items failed: 2 tasks would cost 0.16 USD.* No task was created\.$/),
	]);
	expect(on.creates).toEqual([]);
});

describe('an account with a limit', () => {
	it('lets all tasks through, which take very different times', async () => {
		const limit = 5;
		on.service.configure({ concurrencyLimit: limit });
		const times = [1, 20, 3, 7, 0.5];
		const { output } = await on.images(batch(20, ...times), { maxInFlight: 20 });
		expect(new Set(field(output, 'state'))).toEqual(new Set(['SUCCESS']));
		expect(field(output, 'taskId').sort()).toEqual([...on.taskIds].sort());
		expect(on.ordered).toHaveLength(20);
		// Six to find out, one for five tasks and one a minute; and short tasks end unseen between two reads, so that their
		// places look like more places.
		expect(refusals()).toBeLessThanOrEqual(10 + on.elapsed / MINUTE + 15);
		// Tasks are found finished at a read, up to two seconds later than they are.
		const sum = times.reduce((all, seconds) => all + Math.ceil(seconds / 2) * 2 + 0.2, 0);
		expect(on.elapsed / SECOND).toBeLessThan(((sum * 4) / limit) * 1.3 + 40);
	});

	it('does not count the wait for a place against the timeout', async () => {
		on.service.configure({ concurrencyLimit: 1 });
		const { output } = await on.images(batch(5, 20), { timeout: 30 });
		expect(field(output, 'state')).toEqual(Array(5).fill('SUCCESS'));
		expect(on.elapsed).toBeGreaterThan(80 * SECOND);
	});

	it('has tasks read where items leave at once: the end of one lets the next one in, and no task is read once the last one is created', async () => {
		on.service.configure({ concurrencyLimit: 4 });
		const { output } = await on.images(batch(12, 10), {}, returns);
		expect(field(output, 'state')).toEqual(Array(12).fill('PENDING'));
		expect(on.elapsed).toBeLessThan((12 / 4) * 12.5 * SECOND);
		expect(refusals()).toBeLessThanOrEqual(15);
		const made = on.requests('GET');
		expect(made.length).toBeGreaterThan(0);
		await time.pass(5 * MINUTE);
		expect(on.requests('GET')).toHaveLength(made.length);
		for (const id of on.taskIds) {
			const moments = made.filter(({ path }) => path.endsWith(id)).map(({ at }) => at);
			const gaps = moments.slice(1).map((at, index) => at - (moments[index] ?? 0));
			expect(Math.min(2 * SECOND, ...gaps)).toBe(2 * SECOND);
		}
	});
});

it("the user's bound of a wait holds back nothing where items leave at once, and no task is read where the service refuses nothing", async () => {
	await on.images(batch(20, 60), { maxInFlight: 1 }, returns);
	expect(on.elapsed).toBeLessThan(3 * SECOND);
	expect(on.taskIds).toHaveLength(20);
	await time.pass(MINUTE);
	expect(on.requests('GET')).toEqual([]);
});

describe('Retry On Fail', () => {
	const goesOn = { ...threeTries, ...keepsGoing };
	const three = ['a', item('b', late()), item('c', late(18))];
	const first = [item('a', late()), 'b', 'c'];

	it.each<[string, Parameters<typeof prompts>, TestNode]>([
		['takes up finished and running tasks, and pays for none again', three, threeTries],
		['pays for nothing again where the node goes on and its first item had failed', first, goesOn],
	])('%s', async (_what, items, node) => {
		// The expression gives something else in each try.
		const additionalInput = '={{ JSON.stringify({ now: Date.now(), simulate: $json.simulate }) }}';
		const { output, error } = await on.images(items, { ...givesUp, additionalInput }, node);
		expect(error).toBeUndefined();
		expect(field(output, 'state')).toEqual(items.map(() => 'SUCCESS'));
		expect(field(output, 'taskId')).toEqual(on.taskIds);
		expect(field(output, 'input')).toMatchObject(on.inputs.map(({ now }) => ({ now })));
		expect(on.creates).toHaveLength(items.length);
	});

	it('tries again with what failed, whichever item it is, and then keeps what succeeded', async () => {
		const { output, error } = await on.images([fails('a'), 'b'], {}, threeTries);
		expect(error).toBeUndefined();
		expect(field(output, 'state')).toEqual(['FAILURE', 'SUCCESS']);
		expect(on.taskIds).toHaveLength(1 + 3);
	});

	it('keeps what succeeded in its last try, also where an earlier try was refused before it began', async () => {
		const node = { ...threeTries, maxTries: 2 };
		const more = host(found().mockRejectedValueOnce(away));
		const { output, error } = await on.images(['a', fails('b')], {}, node, more);
		expect(error).toBeUndefined();
		expect(field(output, 'state')).toEqual(['SUCCESS', 'FAILURE']);
	});

	it('names every created task on the last try too', async () => {
		const items = ['a', item('b', late(90)), 'c'];
		const ran = await on.images(items, { ...stops, ...givesUp, maxInFlight: 1 }, threeTries);
		for (const taskId of on.taskIds) expect(ran.description).toContain(taskId);
		expect(on.creates).toHaveLength(2);
	});

	it('takes up tasks whose items left at once', async () => {
		const items = ['a', item('b', { createStatus: { status: 400, times: 1 } })];
		const { output } = await on.images(items, {}, { ...threeTries, ...returns });
		expect(field(output, 'taskId')).toEqual(on.taskIds);
		expect(on.creates.map(({ status }) => status)).toEqual([200, 400, 200]);
	});
});

describe('a create that the service may have taken', () => {
	const lost = [item('a', { createWay: 'lost' })];

	it('is sent once in all tries, and may be billed once', async () => {
		const ran = await on.images(lost, {}, threeTries);
		expect(ran.error?.message).toContain('It is not known whether the task was created');
		expect(ran.description).toContain('The task may exist and may be billed once.');
		expect(ran.description).toContain('was not sent again');
		expect(on.creates).toHaveLength(1);
	});

	it('is in doubt, too, where no key can be looked up in the next try', async () => {
		const getDecrypted = found().mockImplementationOnce(found()).mockRejectedValue(away);
		const node = { ...threeTries, maxTries: 2, ...keepsGoing };
		const { output } = await on.images(lost, {}, node, host(getDecrypted));
		expect(output[0]?.json.error).toMatch(
			/^It is not known whether the task was created\. .*The database is away/,
		);
		expect(on.creates).toHaveLength(1);
	});
});

describe('Retry of a stored execution', () => {
	/** Runs until it fails, and then once more from what n8n stored. */
	async function runTwice(items: INodeExecutionData[], more: IDataObject = {}, apiKey?: string) {
		const failed = await on.start(imageNode({ ...stops, ...givesUp, ...more }), items);
		expect(failed.row.status).toBe('error');
		const creates = on.creates.length;
		// Of the first task, which has ended.
		const reads = () => on.requests('GET', on.taskIds[0]).length;
		const readBefore = reads();
		if (apiKey !== undefined) failed.n8n.test.credential = { ...on.credential, apiKey };
		const retried = await (await failed.retry()).end();
		return { retried, creates: on.creates.length - creates, reads: reads() - readBefore };
	}
	const failing = (...more: Parameters<typeof prompts>) => prompts('a', item('b', late()), ...more);

	it('takes up the tasks of the first execution, reads the one that has ended for links that are fresh, and creates the items that were never sent', async () => {
		const { retried, creates, reads } = await runTwice(failing('c', 'd'), { maxInFlight: 1 });
		expect(retried.error).toBeUndefined();
		expect(field(retried.output, 'taskId')).toEqual(on.taskIds);
		expect([creates, reads]).toEqual([2, 1]);
	});

	it('counts what the first execution has paid for the budget, which may be another one now', async () => {
		const maxCostUsd = `={{ Date.now() > ${EPOCH + 5 * SECOND} ? 0.2 : 1 }}`;
		const { retried, creates } = await runTwice(failing('c'), { maxInFlight: 1, maxCostUsd });
		expect(retried.error?.message).toContain(
			'1 task would cost 0.24 USD with 0.16 USD for the tasks before',
		);
		expect(creates).toBe(0);
	});

	it('names the tasks of the first execution where nothing can be started', async () => {
		const { retried } = await runTwice(failing(), {}, '');
		expect(retried.error?.message).toContain("The 'API Key'");
		for (const taskId of on.taskIds) expect(retried.description).toContain(taskId);
	});

	it('pays for nothing again where n8n itself has refused the output', async () => {
		const config = Container.get(BinaryDataConfig);
		const { mode } = config;
		config.mode = 'filesystem';
		// n8n adds files to this field, and can add none to a text.
		const items = [{ json: { prompt: 'a', _files: 'a.png' } }];
		const node = imageNode({ includeInput: true, downloadResults: true });
		const failed = await on.start(node, items, { settings: { binaryMode: 'combined' } });
		expect(failed.ran.error?.message).toContain('Binary data could not be converted');
		failed.n8n.settings = {};
		const { output } = (await failed.retry()).ran;
		config.mode = mode;
		expect(field(output, 'taskId')).toEqual(on.taskIds);
		expect(on.creates).toHaveLength(1);
	});
});

it('a loop creates the same prompts anew in each round, and keeps the last round alone in the context of the node', async () => {
	const rounds = Array.from({ length: 4 }, () => prompts('a', 'b'));
	const { run } = await on.run(imageNode(), undefined, { rounds });
	expect(run.data.resultData.runData.Media).toHaveLength(4);
	expect(on.ordered.join('')).toBe('abababab');
	const stored = fromStored(toStored(run.data)).executionData?.contextData['node:Media'];
	const kept = stored?.journal as IDataObject;
	expect(Object.keys(kept.runs as IDataObject)).toEqual(['3']);
});

/** The option *Retry Failed Tasks*. */

/** An item of whose tasks the first so many fail. */
const unlucky = (prompt: string, times = 9, more: Settings = {}) =>
	item(prompt, { taskFails: { times }, ...more });

/** Three seconds later the service is otherwise. */
const later = (settings: Settings) => setTimeout(() => on.service.configure(settings), 3 * SECOND);

/** Seconds from the start of the first create to each. */
const times = () =>
	on.creates.map(({ at }) => Math.round((at - (on.creates[0]?.at ?? 0)) / SECOND));

describe('a task that fails', () => {
	it('is created anew until one succeeds, after a pause, and costs what one costs', async () => {
		const options = { retryFailed: 5, maxCostUsd: 0.08 };
		const { output, hints } = await on.images([unlucky('a', 2)], options);
		const [first, second, third] = on.taskIds;
		expect(output.map(({ json }) => json)).toMatchObject([
			{
				...{ taskId: third, state: 'SUCCESS', failedTaskIds: [first, second] },
				...{ estimatedCostUsd: 0.08, creditsConsumed: 8, input: { prompt: 'a' } },
			},
		]);
		expect(Object.keys(output[0]?.json ?? {}).at(-1)).toBe('record');
		expect(on.tasks.map(({ record }) => record.creditsConsumed)).toEqual([0, 0, 8]);
		// Found failed after two seconds each, then a pause of five and of ten.
		expect(times()).toEqual([0, 7, 19]);
		expect(hints[0]).toBe(
			'1 task, about 0.08 USD, 8 credits. 2 failed tasks created again; failed tasks are usually free.',
		);
	});

	it('ends its item where the last one fails, too, with the ids of all', async () => {
		const { output } = await on.images(['a', unlucky('b'), 'c'], { retryFailed: 2 });
		expect(field(output, 'state')).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS']);
		const ofB = on.taskIds.filter((_, index) => on.ordered[index] === 'b');
		const last = { taskId: ofB[2], failedTaskIds: ofB.slice(0, 2), error: text(ofB[2] ?? '') };
		expect(output[1]?.json).toMatchObject(last);
		expect(ofB).toHaveLength(3);
	});

	it('gives its place to the others while it pauses, and has the same file sent again', async () => {
		on.service.configure({ concurrencyLimit: 1 });
		const files = { file: [{ inputField: 'picture', binaryPropertyName: 'data' }] };
		const data = { data: btoa('a picture'), mimeType: 'image/png' };
		const items = prompts(unlucky('a', 1), 'b').map((each) => ({ ...each, binary: { data } }));
		const { output } = await on.run(imageNode({ retryFailed: 1, maxInFlight: 2, files }), items);
		expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
		expect(on.ordered).toEqual(['a', 'b', 'a']);
		const sent = on.inputs.map(({ picture }) => picture);
		expect(sent).toEqual(Array(3).fill(`data:image/png;base64,${data.data}`));
	});
});

describe('no other task is created', () => {
	it('where its item leaves at once', async () => {
		const returns = { parameters: { completion: 'return' } };
		await on.images([unlucky('a')], { retryFailed: 3 }, returns);
		expect(on.creates).toHaveLength(1);
	});

	it('where the second one is refused', async () => {
		later({ createStatus: 400 });
		const { output } = await on.images([unlucky('a')], { retryFailed: 5 }, keepsGoing);
		expect(on.creates.map(({ status }) => status)).toEqual([200, 400, 400]);
		const json = { error: text('(HTTP 400)'), failedTaskIds: on.taskIds };
		expect(output).toMatchObject([{ json }]);
	});

	it('where the answer to the second one was lost, in all tries of n8n', async () => {
		later({ createWay: 'lost' });
		const ran = await on.images([unlucky('a', 1)], { retryFailed: 5 }, threeTries);
		expect(ran.error?.message).toContain('It is not known whether the task was created');
		expect(ran.description).toContain('Sent, but the answer was lost: item 1. Its task may');
		expect(ran.description).toContain(`failed, which is usually free: ${on.taskIds[0]}.`);
		expect(on.creates).toHaveLength(2);
	});

	it('where the service has billed a failed task: in no try of n8n, and it counts in the budget of a retry', async () => {
		on.service.configure({ extraFields: { creditsConsumed: 8 } });
		const maxCostUsd = `={{ Date.now() > ${EPOCH + MINUTE} ? 0.1 : 1 }}`;
		const options = { ifSomeFail: 'stop', retryFailed: 2, maxInFlight: 1, maxCostUsd };
		const slow = unlucky('a', 9, { latencyMs: 10 * SECOND });
		const failed = await on.start(imageNode(options, threeTries), prompts(slow, 'b'));
		expect(failed.ran.description).toContain('charged 8 credits');
		expect(failed.ran.description).not.toContain('which is usually free');
		await pass(MINUTE);
		const retried = await (await failed.retry()).end();
		expect(retried.error?.message).toContain('0.08 USD for the tasks before');
		expect(on.creates).toHaveLength(1);
	});

	it('where no place comes free in time', async () => {
		later({ concurrencyLimit: 0 });
		const options = { retryFailed: 5, timeout: 30 };
		const { output } = await on.images([unlucky('a')], options, keepsGoing);
		expect(on.taskIds).toHaveLength(1);
		expect(output[0]?.json).toMatchObject({ taskId: on.taskIds[0], state: 'FAILURE' });
		expect(Math.max(...times())).toBeLessThan(30);
	});

	it('where another item stops the node during the pause, and nobody waits for its end', async () => {
		const items = prompts(unlucky('a'), unlucky('b', 9, { latencyMs: 3 * SECOND }));
		const retryFailed = '={{ $json.prompt === "a" ? 5 : 0 }}';
		const ran = await on.run(imageNode({ retryFailed, ifSomeFail: 'stop' }), items);
		expect(ran.error?.message).toContain(on.taskIds[0]);
		for (const taskId of on.taskIds) expect(ran.description).toContain(taskId);
		expect(on.creates).toHaveLength(2);
		expect(on.elapsed).toBeLessThan(7 * SECOND);
	});

	it('in a dry run, which says that these are usually free', async () => {
		const { hints } = await on.images([unlucky('a'), 'b'], { retryFailed: 2, dryRun: true });
		expect(on.creates).toHaveLength(0);
		expect(hints).toEqual([
			text('A failed task would be created again up to 2 times. Failed tasks are usually free.'),
		]);
	});
});

it('a task that is not finished in time is named with those that failed before', async () => {
	later({ latencyMs: 3600 * SECOND });
	const options = { retryFailed: 1, timeout: 30 };
	const { output } = await on.images([unlucky('a', 1)], options, keepsGoing);
	const [first, taskId] = on.taskIds;
	const json = { taskId, state: 'PENDING', timedOut: true, failedTaskIds: [first] };
	expect(output).toMatchObject([{ json }]);
	expect(on.creates).toHaveLength(2);
});

describe('a second try of n8n', () => {
	it('(Retry On Fail) creates one at least, and counts what failed before', async () => {
		const { description } = await on.images([unlucky('a')], { retryFailed: 1 }, threeTries);
		// Two in the first try, one in each of the others.
		expect(on.creates).toHaveLength(4);
		expect(description).toContain('4 tasks of this item have failed.');
	});

	it.each([
		['Retry On Fail', threeTries],
		['Retry execution', {}],
	])('(%s) takes up the last one', async (_which, tries) => {
		// The first try gives the second task up.
		later({ latencyMs: 35 * SECOND });
		const options = { retryFailed: 1, timeout: 30 };
		const run = await on.start(imageNode(options, tries), prompts(unlucky('a', 1)));
		const first = run.ran;
		expect(first.error === undefined).toBe('retryOnFail' in tries);
		const { output } = first.error ? (await run.retry()).ran : first;
		const [failed, taskId] = on.taskIds;
		expect(output[0]?.json).toMatchObject({ taskId, state: 'SUCCESS', failedTaskIds: [failed] });
		expect(on.creates).toHaveLength(2);
	});
});
