import type { IDataObject, INodeExecutionData, WorkflowExecuteMode } from 'n8n-workflow';

import { deliver } from '../unit/callback/webhook';
import { executeContext, retryExecution, startTrigger, TRIGGER, type TestNode } from './engine';
import { store, useProcessedData } from './processedData';
import { field, IMAGE_MODEL, imageNode, keepsGoing, prompts, stage, threeTries } from './support';
import { passTime } from './time';

const on = stage();

useProcessedData();
beforeEach(() => on.service.configure({ mediaBytes: 100, mediaType: 'image/png' }));

let callbacks = 0;

/** A finished task, as the gate admits it. */
const finished = (more: IDataObject = {}) => {
	const taskId = on.finishedTask();
	const record = { ...on.service.tasks.get(taskId)?.record };
	const callbackId = `callback ${++callbacks}`;
	return { json: { taskId, record, callbackId, account: 'account', ...more } };
};

/** The same task, as the gate admits it otherwise. */
const as = ({ json }: INodeExecutionData, more: IDataObject) => ({ json: { ...json, ...more } });

interface Started {
	options?: IDataObject;
	mode?: WorkflowExecuteMode;
	node?: TestNode;
}
const start = async (task: INodeExecutionData, { options = {}, mode, node }: Started = {}) => {
	const trigger = { ...TRIGGER, ...node, parameters: { options } };
	return await passTime(startTrigger(on.workflow(trigger), [task], mode));
};

/** How many items leave each of these starts, one after the other. */
const counts = async (...starts: Array<[INodeExecutionData, Started?]>) => {
	const left: number[] = [];
	for (const [task, how] of starts) left.push((await start(task, how)).output.length);
	return left;
};

const downloading = { downloadResults: true };
const BUSY = new Error('SQLITE_BUSY: database is locked');

describe('the output of the trigger', () => {
	it('has exactly the fields of the contract, the reference that came with the callback among them', async () => {
		const task = finished();
		const { taskId, record } = task.json;
		const resultUrls = [`${on.service.mediaUrl}/media/${taskId}/1.png`];
		const fields = { taskId, state: 'SUCCESS', resultUrls, creditsConsumed: 8 };
		const { output } = await start(task);
		expect(output.map(({ json }) => json)).toEqual([{ ...fields, record }]);
		const referring = await start(finished({ reference: 'row 7' }));
		const names = Object.keys(referring.output[0]?.json ?? {});
		expect(names).toEqual([...Object.keys(fields), 'reference', 'record']);
		expect(field(referring.output, 'reference')).toEqual(['row 7']);
	});

	it('is one item for each result where they are split', async () => {
		on.service.configure({ resultCount: 3 });
		const { output } = await start(finished(), { options: { splitResults: true } });
		expect(field(output, 'resultIndex')).toEqual([0, 1, 2]);
	});

	it('carries the downloads in the field that was chosen', async () => {
		const options = { ...downloading, outputBinaryField: 'picture' };
		const { output } = await start(finished(), { options });
		const fileName = `${String(output[0]?.json.taskId)}.png`;
		expect(output[0]?.binary?.picture).toMatchObject({ fileName, mimeType: 'image/png' });
	});
});

describe('one task', () => {
	it("starts the workflow once, however often its callback is admitted, and n8n's log names it then", async () => {
		const task = finished();
		const info = jest.spyOn(executeContext(on.workflow(TRIGGER)).logger, 'info');
		const runs = [await start(task), await start(task), await start(task)];
		expect(runs.map(({ output, run }) => [output.length, run.status])).toEqual([
			[1, 'success'],
			[0, 'success'],
			[0, 'success'],
		]);
		const named = `task ${task.json.taskId} starts the workflow (execution `;
		expect(info.mock.calls).toEqual([[expect.stringContaining(named)]]);
	});

	it('of another account, or at another trigger, starts the workflow, too', async () => {
		const task = finished();
		const of = (account: string): [INodeExecutionData] => [as(task, { account })];
		expect(await counts(of('a'), of('b'), of('a'), of('b'))).toEqual([1, 1, 0, 0]);
		expect(await counts([task, { node: { id: 'other' } }])).toEqual([1]);
	});

	it('leaves nothing behind in a test run', async () => {
		expect(await counts([finished(), { mode: 'manual' }])).toEqual([1]);
		expect(store.rows.size).toBe(0);
	});

	it.each(['manual', 'retry'] as const)('starts it again in a run by hand (%s)', async (mode) => {
		const task = finished();
		expect(await counts([task], [task, { mode }])).toEqual([1, 1]);
	});

	it('is an error where the database fails, and not silently lost', async () => {
		store.nextError = BUSY;
		const { error, output } = await start(finished());
		expect(error?.message).toContain('database is locked');
		expect(output).toEqual([]);
	});

	it.each<[string, TestNode]>([
		['On Error: Continue', { onError: 'continueRegularOutput' }],
		['On Error: Continue (using error output)', { onError: 'continueErrorOutput' }],
	])('starts nothing where the database fails, also with %s', async (_setting, node) => {
		store.nextError = BUSY;
		const task = finished();
		expect(await counts([task, { node }], [task, { node }])).toEqual([0, 1]);
	});

	it("starts the workflow once with n8n's Always Output Data, too", async () => {
		const node = { alwaysOutputData: true };
		const task = finished();
		expect(await counts([task, { node }], [task, { node }])).toEqual([1, 0]);
	});

	it('that was asked for before its callback came is one that has started', async () => {
		const task = finished();
		const { output } = await start(as(task, { startAgain: 'a' }));
		expect(output.map(({ json }) => json.taskId)).toEqual([task.json.taskId]);
		expect(output[0]?.json).not.toHaveProperty('startAgain');
		expect(await counts([task])).toEqual([0]);
	});
});

describe('a host of results', () => {
	it.each([503, 429])('that stumbles with HTTP %d loses no task', async (status) => {
		on.service.configure({ mediaStatus: { status, times: 3, retryAfter: 300 } });
		const { output, run } = await start(finished(), { options: downloading });
		expect(run.status).toBe('success');
		expect(output[0]?.binary).toHaveProperty('data');
	});

	it('is given up after an hour', async () => {
		on.service.configure({ mediaStatus: 503 });
		const startedAt = Date.now();
		const { error } = await start(finished(), { options: downloading });
		expect(error?.message).toContain('HTTP 503');
		expect(Math.abs((Date.now() - startedAt) / 60_000 - 60)).toBeLessThan(2);
	});

	it('without the result stops the workflow with the URL, unless the node continues', async () => {
		on.service.configure({ mediaStatus: 404 });
		const options = downloading;
		const stopped = await start(finished(), { options });
		expect(stopped.error?.message).toMatch(/could not be downloaded \(HTTP 404\): http.*\/1\.png/);
		const task = finished();
		const { output } = await start(task, { options, node: keepsGoing });
		expect(output[0]?.json).toMatchObject({
			taskId: task.json.taskId,
			resultUrls: [expect.stringContaining('/media/')],
			error: expect.stringContaining('HTTP 404') as string,
		});
		const split = await start(finished(), { options, node: { onError: 'continueErrorOutput' } });
		expect([split.output.length, split.errors.length]).toEqual([0, 1]);
	});
});

describe('a second try of the execution that a task has started', () => {
	const onceMissing = () => on.service.configure({ mediaStatus: { status: 404, times: 1 } });

	it('by Retry On Fail goes on with the task', async () => {
		onceMissing();
		const task = finished();
		expect(await counts([task, { options: downloading, node: threeTries }], [task])).toEqual([
			1, 0,
		]);
		expect(store.rows.size).toBe(1);
	});

	it('from the list goes on after a download that went wrong', async () => {
		onceMissing();
		const task = finished();
		const trigger = on.workflow({ ...TRIGGER, parameters: { options: downloading } });
		const failed = await passTime(startTrigger(trigger, [task]));
		expect(failed.run.status).toBe('error');
		const { output } = await passTime(retryExecution(trigger, failed));
		expect([output.length, store.rows.size]).toEqual([1, 1]);
		expect(await counts([task])).toEqual([0]);
	});
});

/** The task of a callback, as the gate admits it. */
async function admitted(callback: Parameters<typeof deliver>[0]) {
	const { workflowData } = await deliver({ ...on.credential, ...callback }).result;
	return workflowData?.[0]?.[0] ?? { json: {} };
}

it('the address that the action node gives out is one that the trigger admits', async () => {
	const node = imageNode({}, { parameters: { completion: 'trigger' } });
	await on.run(node, prompts('a'), { triggers: [TRIGGER] });
	const [task] = on.service.tasks.values();
	const { pathname: path, searchParams } = new URL(task?.webhookUrl ?? '');
	on.service.complete(task?.taskId ?? '');
	const callback = { body: task?.record, path, token: searchParams.get('token') };
	const { output } = await start(await admitted(callback));
	expect(output[0]?.json).toMatchObject({ taskId: task?.taskId, state: 'SUCCESS' });
});

it('puts out a long result whole that is a data URI, and cuts it in the record', async () => {
	const { taskId, record } = on.service.createTask(IMAGE_MODEL, { prompt: 'A' });
	on.service.complete(taskId);
	const uri = `data:image/png;base64,${'A'.repeat(6000)}`;
	record.resultUrls = [uri];
	const { output } = await start(await admitted({ body: { taskId } }));
	expect(output[0]?.json.resultUrls).toEqual([uri]);
	expect(JSON.stringify(output[0]?.json.record)).toContain('… (6022 characters)');
});
