import type { IDataObject, INodeExecutionData, WorkflowExecuteMode } from 'n8n-workflow';

import { register } from '../../nodes/MediaGeneration/callback/triggerUrl';
import { deliver } from '../unit/callback/webhook';
import {
	executeContext,
	hookContext,
	retryExecution,
	startTrigger,
	TRIGGER,
	type TestNode,
} from './engine';
import { type ProcessedData, useProcessedData } from './processedData';
import { field, IMAGE_MODEL, imageNode, prompts, stage } from './support';
import { passTime } from './time';

jest.setTimeout(60_000);

const on = stage();

let store: ProcessedData;
beforeAll(async () => {
	store = await useProcessedData();
});
beforeEach(() => {
	store.reset();
	on.service.configure({ callbackLost: true, mediaBytes: 100, mediaType: 'image/png' });
});

let callbacks = 0;

/** A finished task, as the gate admits it. */
const finished = (outcome: 'SUCCESS' | 'FAILURE' = 'SUCCESS'): INodeExecutionData => {
	const { taskId } = on.service.createTask(IMAGE_MODEL, { prompt: 'A' });
	on.service.complete(taskId, outcome);
	const record = on.service.tasks.get(taskId)?.record;
	const callbackId = `callback ${++callbacks}`;
	return { json: { taskId, record: { ...record }, callbackId, account: 'account' } };
};

const start = async (
	items: INodeExecutionData[],
	options: IDataObject = {},
	{ mode, ...node }: TestNode & { mode?: WorkflowExecuteMode } = {},
) => {
	const trigger = { ...TRIGGER, ...node, parameters: { options } };
	return await passTime(startTrigger(on.workflow(trigger), items, mode));
};

describe('the output of the trigger', () => {
	it('has exactly the fields of the contract', async () => {
		const task = finished();
		const { taskId, record } = task.json;
		const { output } = await start([task]);
		expect(output.map(({ json }) => json)).toEqual([
			{
				taskId,
				state: 'SUCCESS',
				resultUrls: [`${on.service.mediaUrl}/media/${String(taskId)}/1.png`],
				creditsConsumed: 8,
				record,
			},
		]);
	});

	it('has the reference that came with the callback, before the record', async () => {
		const task = finished();
		task.json.reference = 'row 7';
		const { output } = await start([task]);
		expect(Object.entries(output[0]?.json ?? {}).slice(-2)).toEqual([
			['reference', 'row 7'],
			['record', task.json.record],
		]);
	});

	it('of a failed task has no results', async () => {
		const { output } = await start([finished('FAILURE')]);
		expect(output[0]?.json).toMatchObject({ state: 'FAILURE', resultUrls: [], creditsConsumed: 0 });
	});

	it('is one item for each result where they are split', async () => {
		on.service.configure({ resultCount: 3 });
		const { output } = await start([finished()], { splitResults: true });
		expect(field(output, 'resultIndex')).toEqual([0, 1, 2]);
	});

	it('carries the downloads in the field that was chosen', async () => {
		const { output } = await start([finished()], {
			downloadResults: true,
			outputBinaryField: 'picture',
		});
		expect(output[0]?.binary?.picture).toMatchObject({
			fileName: `${String(output[0]?.json.taskId)}.png`,
			mimeType: 'image/png',
		});
	});
});

describe('one task', () => {
	it('starts the workflow once, however often its callback is admitted', async () => {
		const task = finished();
		const runs = [await start([task]), await start([task]), await start([task])];
		expect(runs.map(({ output }) => output.length)).toEqual([1, 0, 0]);
		expect(runs.map(({ run }) => run.status)).toEqual(['success', 'success', 'success']);
	});

	it("is named in n8n's log when it starts the workflow, and only then", async () => {
		const task = finished();
		const info = jest.spyOn(executeContext(on.workflow(TRIGGER)).logger, 'info');
		await start([task]);
		await start([task]);
		const named = `task ${String(task.json.taskId)} starts the workflow (execution `;
		expect(info.mock.calls).toEqual([[expect.stringContaining(named)]]);
	});

	it('starts it once where ten executions begin at the same moment', async () => {
		const task = finished();
		const runs = await Promise.all(Array.from({ length: 10 }, async () => await start([task])));
		expect(runs.filter(({ output }) => output.length > 0)).toHaveLength(1);
	});

	it('of another account starts the workflow, too, where it has the same id', async () => {
		const task = finished();
		const of = (account: string) => ({ json: { ...task.json, account } });
		const runs = [];
		for (const account of ['a', 'b', 'a', 'b']) runs.push(await start([of(account)]));
		expect(runs.map(({ output }) => output.length)).toEqual([1, 1, 0, 0]);
	});

	it('starts each trigger of the workflow once', async () => {
		const task = finished();
		const runs = [
			await start([task], {}, { id: 'first' }),
			await start([task], {}, { id: 'second' }),
		];
		expect(runs.map(({ output }) => output.length)).toEqual([1, 1]);
	});

	it('leaves nothing behind in a test run', async () => {
		await start([finished()], {}, { mode: 'manual' });
		expect(store.rows.size).toBe(0);
	});

	it.each(['manual', 'retry'] as const)('starts it again in a run by hand (%s)', async (mode) => {
		const task = finished();
		await start([task]);
		expect((await start([task], {}, { mode })).output).toHaveLength(1);
	});

	it('is an error where the database fails, and not silently lost', async () => {
		const task = finished();
		store.nextError = new Error('SQLITE_BUSY: database is locked');
		const { error, output } = await start([task]);
		expect(error?.message).toContain('database is locked');
		expect(output).toEqual([]);
	});
});

describe('a host of results that stumbles', () => {
	it.each([503, 429])('with HTTP %d loses no task: no callback starts it again', async (status) => {
		on.service.configure({ mediaStatus: { status, times: 3, retryAfter: 300 } });
		const { output, run } = await start([finished()], { downloadResults: true });
		expect(run.status).toBe('success');
		expect(output[0]?.binary).toHaveProperty('data');
	});

	it('is given up after an hour', async () => {
		on.service.configure({ mediaStatus: 503 });
		const startedAt = Date.now();
		const { error } = await start([finished()], { downloadResults: true });
		expect(error?.message).toContain('HTTP 503');
		const minutes = (Date.now() - startedAt) / 60_000;
		expect(minutes).toBeGreaterThan(58);
		expect(minutes).toBeLessThan(62);
	});
});

describe('a result that cannot be downloaded', () => {
	beforeEach(() => on.service.configure({ mediaStatus: 404 }));

	it('stops the workflow with the URL', async () => {
		const { error } = await start([finished()], { downloadResults: true });
		expect(error?.message).toMatch(/could not be downloaded \(HTTP 404\): http.*\/1\.png/);
	});

	it('leaves an item with task and URLs where the node continues', async () => {
		const task = finished();
		const { output } = await start(
			[task],
			{ downloadResults: true },
			{ onError: 'continueRegularOutput' },
		);
		expect(output[0]?.json).toMatchObject({
			taskId: task.json.taskId,
			resultUrls: [expect.stringContaining('/media/')],
			error: expect.stringContaining('HTTP 404') as string,
		});
	});

	it('leaves it on the error output where there is one', async () => {
		const { output, errors } = await start(
			[finished()],
			{ downloadResults: true },
			{ onError: 'continueErrorOutput' },
		);
		expect([output.length, errors.length]).toEqual([0, 1]);
	});
});

describe('a second try of the execution that a task has started', () => {
	const tries = { retryOnFail: true, maxTries: 2, waitBetweenTries: 0 };
	const downloads = { downloadResults: true };
	const rows = () => store.rows.size;

	it('by Retry On Fail goes on with the task', async () => {
		on.service.configure({ mediaStatus: { status: 404, times: 1 } });
		const task = finished();
		const { output, run } = await start([task], downloads, tries);
		expect([run.status, output.length, rows()]).toEqual(['success', 1, 1]);
		expect((await start([task])).output).toEqual([]);
	});

	it("by Retry On Fail goes on where the database's answer was lost", async () => {
		const task = finished();
		store.answerIsLost = true;
		expect((await start([task], {}, tries)).output).toHaveLength(1);
		expect((await start([task])).output).toEqual([]);
	});

	it('by Retry On Fail starts nothing where another was first, whatever the database does', async () => {
		const task = finished();
		await start([task]);
		store.nextError = new Error('SQLITE_BUSY: database is locked');
		expect((await start([task], {}, tries)).output).toEqual([]);
	});

	const retried = async (task: INodeExecutionData, options: IDataObject) => {
		const trigger = on.workflow({ ...TRIGGER, parameters: { options } });
		const failed = await passTime(startTrigger(trigger, [task]));
		return [failed, await passTime(retryExecution(trigger, failed))] as const;
	};

	it('from the list goes on after a download that went wrong', async () => {
		on.service.configure({ mediaStatus: { status: 404, times: 1 } });
		const task = finished();
		const [failed, retry] = await retried(task, downloads);
		expect([failed.run.status, retry.output.length, rows()]).toEqual(['error', 1, 1]);
		expect((await start([task])).output).toEqual([]);
	});

	it('from the list leaves a row where there was none, so that a later callback starts nothing', async () => {
		const task = finished();
		store.nextError = new Error('SQLITE_BUSY: database is locked');
		const [failed, retry] = await retried(task, {});
		expect([failed.run.status, retry.output.length, rows()]).toEqual(['error', 1, 1]);
		expect((await start([task])).output).toEqual([]);
	});
});

describe('an execution whose ledger could not be written, retried from the list', () => {
	it('starts nothing where another callback has started the task meanwhile', async () => {
		const task = finished();
		const by = (callbackId: string) => ({ json: { ...task.json, callbackId } });
		const trigger = on.workflow({ ...TRIGGER, parameters: { options: {} } });
		store.nextError = new Error('SQLITE_BUSY: database is locked');
		const failed = await passTime(startTrigger(trigger, [by('first')]));
		expect(failed.run.status).toBe('error');
		expect((await start([by('second')])).output).toHaveLength(1);
		expect((await passTime(retryExecution(trigger, failed))).output).toEqual([]);
	});
});

describe('a request to start again', () => {
	/** As the gate admits it. */
	const again = ({ json }: INodeExecutionData, startAgain: string) => ({
		json: { ...json, startAgain },
	});

	it('starts the workflow with a task that has started it, once for each who asks', async () => {
		const task = finished();
		await start([task]);
		const runs = [];
		for (const who of ['a', 'a', 'b', 'a']) runs.push(await start([again(task, who)]));
		expect(runs.map(({ output }) => output.length)).toEqual([1, 0, 1, 0]);
		expect(runs[0]?.output[0]?.json).not.toHaveProperty('startAgain');
	});

	it('leaves the task as one that has started, also where it had not', async () => {
		const task = finished();
		expect((await start([again(task, 'a')])).output).toHaveLength(1);
		expect((await start([task])).output).toEqual([]);
	});

	it('starts once where ten of one who asks begin at the same moment', async () => {
		const task = finished();
		await start([task]);
		const runs = await Promise.all(
			Array.from({ length: 10 }, async () => await start([again(task, 'a')])),
		);
		expect(runs.filter(({ output }) => output.length > 0)).toHaveLength(1);
	});
});

describe('from the action node to the trigger', () => {
	it('the address that the action node gives out is one that the trigger admits', async () => {
		const staticData = {};
		const { credential } = on;
		register(hookContext({ node: TRIGGER, credential, staticData }).hook);
		const node = imageNode({}, { parameters: { completion: 'trigger' } });
		await on.run(node, prompts('a'), { staticData });

		const [task] = on.service.tasks.values();
		const { pathname, searchParams } = new URL(task?.webhookUrl ?? '');
		on.service.complete(task?.taskId ?? '');
		const callback = deliver({
			...credential,
			body: task?.record,
			path: pathname,
			token: searchParams.get('token'),
		});
		const { workflowData } = await callback.result;
		const { output } = await start(workflowData?.[0] ?? []);
		expect(output[0]?.json).toMatchObject({ taskId: task?.taskId, state: 'SUCCESS' });
	});
});
