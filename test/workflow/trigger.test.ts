import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { LedgerRow } from '../../nodes/MediaGeneration/n8n/ledgerRow';
import { parseTaskRecord } from '../../nodes/MediaGeneration/service/taskRecord';
import { furtherFields } from '../../nodes/MediaGeneration/report/taskItems';
import { deliver, outcome } from './webhook';
import { startTrigger, type TestNode, type TestWorkflow, TRIGGER } from './engine';
import { WorkflowN8n } from './n8n/workflowN8n';
import { SECOND_ROW, store, useProcessedData } from './processedData';
import {
	field,
	hasErrorOutput,
	IMAGE_MODEL,
	MINUTE,
	SECOND,
	stage,
	text,
	threeTries,
} from './support';
import { pass, passTime, passUntil, time } from './time';

const on = stage();

useProcessedData();

/** A finished task, as the gate admits it. */
const finished = (more: IDataObject = {}, state?: 'FAILURE') => {
	const taskId = on.finishedTask(state);
	const record = { ...on.service.tasks.get(taskId)?.record };
	const task = parseTaskRecord(taskId, record, on.service.url);
	return { json: { taskId, record, task: task as unknown as IDataObject, ...more } };
};

/** The same task, as the gate admits it otherwise. */
const as = ({ json }: INodeExecutionData, more: IDataObject) => ({ json: { ...json, ...more } });

interface Started extends TestNode {
	mode?: TestWorkflow['mode'];
}
const workflow = ({ mode, ...node }: Started = {}) => ({
	...on.workflow({ ...TRIGGER, ...node }),
	...(mode && { mode }),
});
const start = async (task: INodeExecutionData, how?: Started) =>
	await passTime(startTrigger(workflow(how), [task]));

/** How many items leave each of these starts, one after the other. */
const counts = async (...starts: Array<[INodeExecutionData, Started?]>) => {
	const left: number[] = [];
	for (const [task, how] of starts) left.push((await start(task, how)).output.length);
	return left;
};

const BUSY = new Error('SQLITE_BUSY: database is locked');

describe('the output of the trigger', () => {
	it('has exactly the fields of the contract, the reference that came with the callback among them, and no files', async () => {
		const task = finished();
		const { taskId, record } = task.json;
		const resultUrls = [`${on.service.mediaUrl}/media/${taskId}/1.png`];
		const fields = { taskId, state: 'SUCCESS', resultUrls, creditsConsumed: 8 };
		const bare = await start(finished());
		expect(Object.keys(bare.output[0]?.json ?? {})).toEqual([...Object.keys(fields), 'record']);
		const { output } = await start(as(task, { reference: 'row 7' }));
		expect(output.map(({ json }) => Object.entries(json))).toEqual([
			Object.entries({
				...fields,
				reference: 'row 7',
				record: furtherFields(record as IDataObject, fields),
			}),
		]);
		expect(on.service.requests.filter(({ host }) => host === 'media')).toEqual([]);
	});

	it('says of a failed task why and what to do, in the words of the action node', async () => {
		on.service.configure({ failureMessage: 'Blocked by the content filter.' });
		const task = finished({ reference: 'row 7' }, 'FAILURE');
		const { output, errors, run } = await start(task, hasErrorOutput);
		const { taskId } = task.json;
		expect([run.status, errors]).toEqual(['success', []]);
		expect(output[0]?.json).toMatchObject({
			taskId,
			state: 'FAILURE',
			reference: 'row 7',
			error: `Blocked by the content filter (task ${taskId})`,
			advice: text('Create another task'),
		});
	});
});

describe('one task', () => {
	it("starts the workflow once, however often its callback is admitted, also with n8n's Always Output Data", async () => {
		const how = { alwaysOutputData: true };
		const task = finished();
		expect(await counts([task], [task], [task, how])).toEqual([1, 0, 0]);
		const other = finished();
		expect(await counts([other, how], [other, how])).toEqual([1, 0]);
		expect((await start(task)).run.status).toBe('success');
	});

	it('whose id is a UUID starts the workflow once, in small and in capital letters', async () => {
		const task = finished({ taskId: '123e4567-e89b-12d3-a456-42661417400a' });
		const written = as(task, { taskId: String(task.json.taskId).toUpperCase() });
		expect(await counts([task], [written])).toEqual([1, 0]);
	});

	it('starts it again in a run by hand: a test run, which leaves nothing behind, and a retry', async () => {
		const task = finished();
		expect(await counts([task, { mode: 'manual' }])).toEqual([1]);
		expect(store.rows.size).toBe(0);
		const [manual, retry] = [{ mode: 'manual' } as const, { mode: 'retry' } as const];
		expect(await counts([task], [task, manual], [task, retry])).toEqual([1, 1, 1]);
		expect(await counts([task, retry], [task])).toEqual([1, 0]);
	});

	it('is an error where the database fails, whatever On Error says, and neither lost nor started', async () => {
		store.nextError = BUSY;
		const task = finished();
		const { error, output, errors } = await start(task, hasErrorOutput);
		expect(error?.message).toContain('database is locked');
		expect([output, errors]).toEqual([[], []]);
		expect(await counts([task, hasErrorOutput])).toEqual([1]);
	});

	it.each(Object.entries(SECOND_ROW))(
		'has started the workflow where %s refuses a second row',
		async (_by, error) => {
			store.nextError = error;
			const { output, run } = await start(finished());
			expect([output, run.status]).toEqual([[], 'success']);
		},
	);

	it('whose start is in doubt is not started by a further try of n8n', async () => {
		const insert = jest.spyOn(LedgerRow.prototype, 'insert').mockResolvedValueOnce(undefined);
		const { error, output } = await start(finished(), threeTries);
		insert.mockRestore();
		expect(error?.message).toContain('It is not known whether another execution has started');
		expect(output).toEqual([]);
	});
});

describe('Wait for Task behind the trigger', () => {
	/** The trigger leads into a *Wait for Task*, with its defaults. */
	const WAIT: TestNode = {
		name: 'Files',
		parameters: { resource: 'task', operation: 'wait', taskId: '={{ $json.taskId }}' },
	};
	const begin = (task: INodeExecutionData) => {
		const n8n = new WorkflowN8n({
			...on.workflow(WAIT),
			starter: { ...TRIGGER, name: 'Trigger', id: 'trigger' },
		});
		return n8n.begin('webhook', 'Trigger', [task]);
	};
	const files = { mediaBytes: 100, mediaType: 'image/png' };

	it('fetches the file of a fresh link that answers 404 for 100 s', async () => {
		on.service.configure({ ...files, mediaStatus: 404 });
		const begun = begin(finished());
		await pass(100 * SECOND);
		on.service.resetSettings();
		on.service.configure(files);
		const { output, run } = await begun.end();
		expect([run.status, output[0]?.binary]).toMatchObject(['success', { data: {} }]);
		expect(on.elapsed).toBeLessThan(130 * SECOND);
	});

	it('sleeps while the host of the files is away for an hour: one execution, and one start', async () => {
		on.service.configure({ ...files, mediaStatus: 503 });
		const task = finished();
		const begun = await begin(task).rests();
		expect(begun.row.status).toBe('waiting');
		while (on.elapsed < 60 * MINUTE) await begun.wake();
		// Callbacks that come meanwhile start nothing: the task has started the workflow.
		const again = await begun.n8n.start('webhook', 'Trigger', [task]);
		expect([again.row.status, again.ran.output]).toEqual(['success', []]);
		on.service.resetSettings();
		on.service.configure(files);
		const { output, run } = await begun.end();
		expect([run.status, output.length]).toEqual(['success', 1]);
		expect(output[0]?.binary).toBeDefined();
	});
});

describe('an execution that dies before the workflow starts', () => {
	/** A callback as it comes, and the execution that n8n begins for it. */
	const callback = (taskId: string, id: string) =>
		deliver({ ...on.credential, body: { taskId }, node: id });
	const begun = async (taskId: string, id: string) => {
		const { workflowData } = await passTime(callback(taskId, id).result);
		return workflowData?.[0]?.[0] ?? { json: {} };
	};

	it.each([
		['killed before it has run', undefined],
		['that could not write its row', BUSY],
	])('(%s) leaves the task to a callback that comes a minute later', async (_how, error) => {
		const id = `trigger of a start that died: ${String(error)}`;
		const taskId = on.finishedTask();
		const dying = await begun(taskId, id);
		if (error) {
			store.nextError = error;
			expect((await start(dying, { id })).output).toEqual([]);
		}
		expect(await passTime(outcome(callback(taskId, id)))).toMatchObject({
			status: 200,
			body: { accepted: false, reason: 'duplicate' },
		});
		time.jump(MINUTE);
		const next = await begun(taskId, id);
		expect((await start(next, { id })).output).toHaveLength(1);
	});

	it('after its row was written: its worker is killed, another worker runs it again, and the workflow starts once', async () => {
		const n8n = new WorkflowN8n(on.workflow(TRIGGER), true);
		const task = finished();
		const write = store.checkProcessedAndRecord.bind(store);
		const dying = jest.spyOn(store, 'checkProcessedAndRecord');
		dying.mockImplementationOnce(async (...given) => {
			await write(...given);
			n8n.rows[0]?.process?.die();
			return await new Promise(() => undefined);
		});
		const run = n8n.begin('webhook', 'Trigger', [task]);
		await passUntil(() => run.row.process?.isDead === true);
		n8n.executions.runAgain(run.row);
		const { output, run: ran } = await run.end();
		expect([ran.status, output.length]).toEqual(['success', 1]);
		const copy = await n8n.start('webhook', 'Trigger', [task]);
		expect([copy.row.status, copy.ran.output]).toEqual(['success', []]);
	});

	it('of executions that several processes have begun for one task, one starts the workflow', async () => {
		const id = 'trigger of callbacks that come together';
		const task = await begun(on.finishedTask(), id);
		const all = Promise.all(
			[1, 2, 3].map(async () => await startTrigger(workflow({ id }), [task])),
		);
		const ran = await passTime(all);
		expect(ran.map(({ run }) => run.status)).toEqual(Array(3).fill('success'));
		expect(ran.flatMap(({ output }) => output)).toHaveLength(1);
	});
});

/** What the trigger puts out for a finished task whose callback has come. */
async function startedBy(resultShape: unknown) {
	on.service.configure({ resultShape });
	const taskId = on.finishedTask();
	const callback = deliver({ ...on.credential, body: { taskId } });
	const { workflowData } = await passTime(callback.result);
	return await start(workflowData?.[0]?.[0] ?? { json: {} });
}

it('a success without a link is read again for a while, and then leaves with a warning', async () => {
	const { output, hints } = await startedBy(['']);
	expect(output).toMatchObject([{ json: { state: 'SUCCESS', resultUrls: [] } }]);
	expect(hints).toEqual([text(`Of task ${on.taskIds[0]} it says: {"model"`)]);
	expect(on.requests('GET').length).toBeGreaterThan(2);
	expect(on.elapsed).toBeLessThan(8_000);
});

it('puts out a long result whole that is a data URI, and cuts it in the record', async () => {
	const { taskId, record } = on.service.createTask(IMAGE_MODEL, { prompt: 'A' });
	on.service.complete(taskId);
	const uri = `data:image/png;base64,${'A'.repeat(6000)}`;
	record.resultUrls = [uri];
	Object.assign(record, { preview: uri });
	const { workflowData } = await deliver({ ...on.credential, body: { taskId } }).result;
	const { output } = await start(workflowData?.[0]?.[0] ?? { json: {} });
	expect(field(output, 'resultUrls')).toEqual([[uri]]);
	expect(JSON.stringify(output[0]?.json.record)).toContain('… (6022 characters)');
});
