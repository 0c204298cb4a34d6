import type { Settings } from '../service/settings';
import { EPOCH } from '../virtualTime';
import {
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
import { pass } from './time';

/** The option *Retry Failed Tasks*. */

const on = stage();

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
