import type { IDataObject } from 'n8n-workflow';

import type { Settings } from '../service/settings';
import { retryExecution, startWorkflow } from './engine';
import {
	descriptionOf,
	field,
	hintsOf as hints,
	imageNode,
	keepsGoing,
	prompts,
	SECOND,
	stage,
	threeTries,
} from './support';
import { passTime } from './time';

const on = stage();

/** An item of whose tasks the first so many fail. */
const unlucky = (prompt: string, times: number, more: Settings = {}) => ({
	prompt,
	simulate: { taskFails: { times }, ...more } as IDataObject,
});

/** From a moment on, the service is otherwise. */
const later = (ms: number, settings: Settings) =>
	setTimeout(() => on.service.configure(settings), ms);

/** Seconds from the start of the first create to each. */
const times = () =>
	on.creates.map(({ at }) => Math.round((at - (on.creates[0]?.at ?? 0)) / SECOND));

describe('a task that fails', () => {
	it('is created anew until one succeeds, after a pause, and costs what one costs', async () => {
		const ran = await on.images([unlucky('a', 2)], { retryFailed: 5 });
		const [first, second, third] = on.taskIds;
		expect(ran.output.map(({ json }) => json)).toMatchObject([
			{
				taskId: third,
				state: 'SUCCESS',
				failedTaskIds: [first, second],
				estimatedCostUsd: 0.08,
				creditsConsumed: 8,
				input: { prompt: 'a' },
			},
		]);
		expect(Object.keys(ran.output[0]?.json ?? {}).at(-1)).toBe('record');
		expect(on.taskIds).toHaveLength(3);
		// Found failed after two seconds each, then a pause of five and of ten.
		expect(times()).toEqual([0, 7, 19]);
		expect(hints(ran)[0]).toBe(
			'1 task created. 2 failed tasks created again; failed tasks are usually free. Estimated price: 0.08 USD. The service charged 8 credits.',
		);
	});

	it('ends its item where the last one fails, too, with the ids of all', async () => {
		const { output } = await on.images(['a', unlucky('b', 9), 'c'], { retryFailed: 2 });
		expect(field(output, 'state')).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS']);
		const ofB = on.tasks.flatMap(({ taskId, record }) =>
			record.input.prompt === 'b' ? [taskId] : [],
		);
		expect(ofB).toHaveLength(3);
		expect(output[1]?.json).toMatchObject({
			taskId: ofB[2],
			failedTaskIds: ofB.slice(0, 2),
			error: expect.stringContaining(ofB[2] ?? '') as string,
		});
	});

	it('is named in the message of a node that stops, with all others', async () => {
		const ran = await on.images([unlucky('a', 9)], { retryFailed: 1, ifSomeFail: 'stop' });
		expect(descriptionOf(ran)).toContain(
			`2 tasks failed, which is usually free: ${on.taskIds.join(', ')}.`,
		);
		expect(descriptionOf(ran)).toContain('2 tasks of this item have failed.');
	});

	it('is not created anew where its item leaves at once', async () => {
		const node = imageNode({ retryFailed: 3 }, { parameters: { completion: 'return' } });
		await on.run(node, prompts(unlucky('a', 9)));
		expect(on.creates).toHaveLength(1);
	});

	it('gives its place to the others while it pauses', async () => {
		on.service.configure({ concurrencyLimit: 1 });
		const items = prompts(unlucky('a', 1), 'b');
		const { output } = await on.run(imageNode({ retryFailed: 1, maxInFlight: 2 }), items);
		expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
		const order = on.inputs.map((input) => input.prompt);
		expect(order).toEqual(['a', 'b', 'a']);
	});

	it('has the same file sent again', async () => {
		const files = { file: [{ inputField: 'picture', binaryPropertyName: 'data' }] };
		const node = imageNode({ retryFailed: 1, files });
		const [item] = prompts(unlucky('a', 1));
		const data = { data: Buffer.from('a picture').toString('base64'), mimeType: 'image/png' };
		await on.run(node, [{ json: item?.json ?? {}, binary: { data } }]);
		const sent = on.inputs.map((input) => input.picture);
		expect(sent).toEqual(Array(2).fill(`data:image/png;base64,${data.data}`));
	});
});

describe('no other task is created', () => {
	it('for a prompt that was refused', async () => {
		const refused = { prompt: 'a', simulate: { createStatus: 400 } };
		await on.images([refused], { retryFailed: 5 }, keepsGoing);
		expect(on.creates).toHaveLength(1);
	});

	it('where the second one is refused', async () => {
		later(3 * SECOND, { createStatus: 400 });
		const { output } = await on.images([unlucky('a', 9)], { retryFailed: 5 }, keepsGoing);
		expect(on.creates.map(({ status }) => status)).toEqual([200, 400]);
		expect(output[0]?.json).toMatchObject({
			error: expect.stringContaining('(HTTP 400)') as string,
			failedTaskIds: on.taskIds,
		});
	});

	it('where the answer to the second one was lost, in all tries of n8n', async () => {
		later(3 * SECOND, { createLost: true });
		const ran = await on.images([unlucky('a', 1)], { retryFailed: 5 }, threeTries);
		expect(ran.error?.message).toContain('It is not known whether the task was created');
		expect(descriptionOf(ran)).toContain('Sent, but the answer was lost: item 1.');
		expect(descriptionOf(ran)).toContain(`failed, which is usually free: ${on.taskIds[0]}.`);
		expect(on.creates).toHaveLength(2);
	});

	it('where the service bills failed tasks after all, in no try of n8n', async () => {
		on.service.configure({ extraFields: { creditsConsumed: 8 } });
		const ran = await on.images([unlucky('a', 9)], {}, threeTries);
		expect(descriptionOf(ran)).toContain('charged 8 credits');
		expect(descriptionOf(ran)).toContain('1 task failed, and the service says that it charged');
		expect(descriptionOf(ran)).not.toContain('1 task failed, which is usually free');
		expect(on.creates).toHaveLength(1);
	});

	it('where it could not be awaited as long as the one that failed', async () => {
		const item = unlucky('a', 9, { latencyMs: 11 * SECOND });
		await on.images([item], { retryFailed: 5, timeout: 75 }, keepsGoing);
		// 12 s, 5 s of pause, 12 s, 10 s of pause, 12 s: 51 s. After 20 s of pause, 4 s would be left.
		expect(times()).toEqual([0, 17, 39]);
		const states = on.tasks.map(({ record }) => record.state);
		expect(states).toEqual(['FAILURE', 'FAILURE', 'FAILURE']);
	});

	it('where no place comes free in time', async () => {
		later(3 * SECOND, { concurrencyLimit: 0 });
		const { output } = await on.images(
			[unlucky('a', 9)],
			{ retryFailed: 5, timeout: 30 },
			keepsGoing,
		);
		expect(on.taskIds).toHaveLength(1);
		expect(output[0]?.json).toMatchObject({ taskId: on.taskIds[0], state: 'FAILURE' });
		expect(Math.max(...times())).toBeLessThan(30);
	});

	it('where another item stops the node during the pause, and nobody waits for its end', async () => {
		const startedAt = Date.now();
		const items = [
			...prompts(unlucky('a', 9)).map(({ json }) => ({ json: { ...json, retries: 5 } })),
			...prompts(unlucky('b', 9, { latencyMs: 3 * SECOND })),
		];
		const options = { retryFailed: '={{ $json.retries ?? 0 }}', ifSomeFail: 'stop' };
		const ran = await on.run(imageNode(options), items);
		expect(ran.error?.message).toContain(on.taskIds[0]);
		for (const taskId of on.taskIds) expect(descriptionOf(ran)).toContain(taskId);
		expect(on.creates).toHaveLength(2);
		expect(Date.now() - startedAt).toBeLessThan(7 * SECOND);
	});

	it('in a dry run, which says that these are usually free', async () => {
		const node = imageNode({ retryFailed: 2, dryRun: true });
		const ran = await on.run(node, prompts(unlucky('a', 1), 'b'));
		expect(on.creates).toHaveLength(0);
		expect(hints(ran)).toEqual([
			'Nothing was sent. 2 tasks would cost 0.16 USD. A failed task would be created again up to 2 times. Failed tasks are usually free.',
		]);
	});
});

it('a budget holds, since a failed task costs nothing', async () => {
	const items = prompts(unlucky('a', 1), unlucky('b', 1));
	const { output } = await on.run(imageNode({ retryFailed: 1, maxCostUsd: 0.16 }), items);
	expect(field(output, 'estimatedCostUsd')).toEqual([0.08, 0.08]);
	const billed = on.tasks.map(({ record }) => record.creditsConsumed);
	expect(billed).toEqual([0, 0, 8, 8]);
});

it('a task that is not finished in time is named with those that failed before', async () => {
	later(3 * SECOND, { latencyMs: 3600 * SECOND });
	const { output } = await on.images(
		[unlucky('a', 1)],
		{ retryFailed: 1, timeout: 30 },
		keepsGoing,
	);
	const [first, second] = on.taskIds;
	expect(output[0]?.json).toMatchObject({
		taskId: second,
		state: 'PENDING',
		timedOut: true,
		failedTaskIds: [first],
	});
	expect(on.creates).toHaveLength(2);
});

describe('a second try of n8n', () => {
	/** So often that the first try gives the task up. */
	const readFails = { readStatus: { status: 404, times: 3 } };

	it('(Retry On Fail) creates one at least, and counts what failed before', async () => {
		const ran = await on.images([unlucky('a', 9)], { retryFailed: 1 }, threeTries);
		// Two in the first try, one in each of the others.
		expect(on.creates).toHaveLength(4);
		expect(descriptionOf(ran)).toContain('4 tasks of this item have failed.');
	});

	it.each([
		['Retry On Fail', threeTries],
		['Retry execution', {}],
	])('(%s) takes up the last one', async (_which, tries) => {
		later(3 * SECOND, readFails);
		const workflow = on.workflow(imageNode({ retryFailed: 1 }, tries), prompts(unlucky('a', 1)));
		const first = await passTime(startWorkflow(workflow).result);
		const { output } = first.error ? await passTime(retryExecution(workflow, first)) : first;
		expect(first.error === undefined).toBe('retryOnFail' in tries);
		const [failed, taskId] = on.taskIds;
		expect(output[0]?.json).toMatchObject({ taskId, state: 'SUCCESS', failedTaskIds: [failed] });
		expect(on.creates).toHaveLength(2);
	});
});
