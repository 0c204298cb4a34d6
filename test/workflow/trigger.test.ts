import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { deliver, outcome } from '../unit/callback/webhook';
import { startTrigger, TRIGGER, type TestNode, type TestWorkflow } from './engine';
import { WorkflowN8n } from './n8n/workflowN8n';
import { store, useProcessedData } from './processedData';
import {
	field,
	hasErrorOutput,
	IMAGE_MODEL,
	keepsGoing,
	MINUTE,
	stage,
	text,
	threeTries,
} from './support';
import { furtherFields } from '../../nodes/MediaGeneration/report/taskItems';
import { passTime } from './time';

const on = stage();

useProcessedData();
const mend = () => {
	on.service.resetSettings();
	on.service.configure({ mediaBytes: 100, mediaType: 'image/png' });
};
beforeEach(mend);

/** A finished task, as the gate admits it. */
const finished = (more: IDataObject = {}) => {
	const taskId = on.finishedTask();
	const record = { ...on.service.tasks.get(taskId)?.record };
	return { json: { taskId, record, baseUrl: on.service.url, ...more } };
};

/** The same task, as the gate admits it otherwise. */
const as = ({ json }: INodeExecutionData, more: IDataObject) => ({ json: { ...json, ...more } });

interface Started extends TestNode {
	options?: IDataObject;
	mode?: TestWorkflow['mode'];
}
const workflow = ({ options = {}, mode, ...node }: Started = {}) => ({
	...on.workflow({ ...TRIGGER, ...node, parameters: { options } }),
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

const downloading = { options: { downloadResults: true } };

/** A callback starts an execution that n8n stores. */
const begin = async (task: INodeExecutionData, n8n = new WorkflowN8n(workflow(downloading))) =>
	await n8n.start('webhook', 'Trigger', [task]);

/** What an execution comes to that sleeps while the host of results is in trouble. */
const atLast = async (task: INodeExecutionData, how: Started = downloading) =>
	await (await begin(task, new WorkflowN8n(workflow(how)))).end();
const BUSY = new Error('SQLITE_BUSY: database is locked');

describe('the output of the trigger', () => {
	it('has exactly the fields of the contract, the reference that came with the callback among them', async () => {
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
	});

	it('is one item for each result where they are split, with the downloads in the field that was chosen', async () => {
		on.service.configure({ resultCount: 3 });
		const options = { downloadResults: true, splitResults: true, outputBinaryField: 'picture' };
		const { output } = await start(finished(), { options });
		const picture = (index: number) => ({
			fileName: text(`-${index + 1}.png`),
			mimeType: 'image/png',
		});
		expect(output).toMatchObject(
			[0, 1, 2].map((resultIndex) => ({
				json: { resultIndex },
				binary: { picture: picture(resultIndex) },
			})),
		);
	});
});

describe('one task', () => {
	it('starts the workflow once, however often its callback is admitted', async () => {
		const task = finished();
		const runs = [await start(task), await start(task), await start(task)];
		expect(runs.map(({ output, run }) => [output.length, run.status])).toEqual([
			[1, 'success'],
			[0, 'success'],
			[0, 'success'],
		]);
	});

	it('starts it again in a run by hand: a test run, which leaves nothing behind, and a retry', async () => {
		const task = finished();
		expect(await counts([task, { mode: 'manual' }])).toEqual([1]);
		expect(store.rows.size).toBe(0);
		const [manual, retry] = [{ mode: 'manual' } as const, { mode: 'retry' } as const];
		expect(await counts([task], [task, manual], [task, retry])).toEqual([1, 1, 1]);
		expect(await counts([task, retry], [task])).toEqual([1, 0]);
	});

	it.each([keepsGoing, hasErrorOutput])(
		'is an error where the database fails, and neither lost nor started (%j)',
		async (how) => {
			store.nextError = BUSY;
			const task = finished();
			const { error, output, errors } = await start(task, how);
			expect(error?.message).toContain('database is locked');
			expect([output, errors]).toEqual([[], []]);
			expect(await counts([task, how])).toEqual([1]);
		},
	);

	it("starts the workflow once with n8n's Always Output Data, too", async () => {
		const how = { alwaysOutputData: true };
		const task = finished();
		expect(await counts([task, how], [task, how])).toEqual([1, 0]);
	});
});

describe('a host of results', () => {
	const TROUBLE = { mediaStatus: 503 };

	it('in trouble has the execution sleep within a minute, which holds nothing, and it starts the workflow once it is over', async () => {
		on.service.configure(TROUBLE);
		const task = finished();
		const begun = await begin(task);
		expect([begun.row.status, begun.ran.output, store.rows.size]).toEqual(['waiting', [], 0]);
		expect(on.elapsed).toBeLessThan(MINUTE);
		await begun.wake();
		expect([begun.row.status, begun.ran.output]).toEqual(['waiting', []]);
		mend();
		const { output, run } = await begun.end();
		expect([run.status, begun.row.wakes]).toEqual(['success', 2]);
		expect(output).toMatchObject([
			{ json: { taskId: task.json.taskId, state: 'SUCCESS' }, binary: { data: {} } },
		]);
		expect(output[0]?.json).not.toHaveProperty('baseUrl');
		expect(run.data.resultData.runData.Trigger).toHaveLength(1);
		expect(await counts([task])).toEqual([0]);
	});

	it('is given up after an hour', async () => {
		on.service.configure(TROUBLE);
		const task = finished();
		const begun = await begin(task);
		const { error } = await begun.end();
		expect(error?.message).toContain('HTTP 503');
		expect(Math.abs(on.elapsed / MINUTE - 60)).toBeLessThan(2);
		expect(begun.row.wakes).toBeLessThan(20);
		// The failure is the task's outcome, which *Retry execution* goes on with. Its callback starts nothing more.
		mend();
		expect(await counts([task, downloading])).toEqual([0]);
		expect(await counts([task, { ...downloading, mode: 'retry' }])).toEqual([1]);
	});

	it("is given up before n8n's time limit, which would cancel the execution without a word", async () => {
		on.service.configure(TROUBLE);
		const limited = { ...workflow(downloading), settings: { executionTimeout: 900 } };
		const begun = await begin(finished(), new WorkflowN8n(limited));
		const { error } = await begun.end();
		expect(error?.message).toContain('HTTP 503');
		expect(on.elapsed / MINUTE).toBeGreaterThan(12);
		expect(on.elapsed / MINUTE).toBeLessThan(15);
	});

	it('that asks to wait is not asked before', async () => {
		on.service.configure({ mediaStatus: { status: 503, retryAfter: 1800 } });
		const begun = await begin(finished());
		await begun.wake();
		expect(on.elapsed).toBeGreaterThan(30 * MINUTE);
		expect(begun.row.sleeps).toBe(2);
	});

	it('lets nothing of the callback out where n8n passes over the sleeping trigger', async () => {
		on.service.configure(TROUBLE);
		const task = finished();
		const [, entry] = (await begin(task)).data.executionData?.nodeExecutionStack ?? [];
		expect(entry?.data.main?.[0]?.map(({ json }) => json) ?? []).toEqual([
			{
				taskId: task.json.taskId,
				state: 'SUCCESS',
				resultUrls: expect.any(Array) as unknown,
				error: text("passed over 'Trigger'"),
			},
		]);
	});

	it('without the result stops the workflow with the URL, unless the node continues', async () => {
		on.service.configure({ mediaStatus: 404 });
		const stopped = await atLast(finished());
		expect(stopped.error?.message).toMatch(/could not be downloaded \(HTTP 404\): http.*\/1\.png/);
		const task = finished();
		const { output } = await atLast(task, { ...downloading, ...keepsGoing });
		const { taskId } = task.json;
		const json = { taskId, resultUrls: [text('/media/')], error: text('HTTP 404') };
		expect(output).toMatchObject([{ json }]);
		const split = await atLast(finished(), { ...downloading, ...hasErrorOutput });
		expect([split.output.length, split.errors.length]).toEqual([0, 1]);
	});
});

it('of two executions that download the results of one task, as in two processes, one starts the workflow', async () => {
	const task = finished();
	const both = await passTime(
		Promise.all(
			[task, task].map(async (each) => await startTrigger(workflow(downloading), [each])),
		),
	);
	expect(on.service.requests.filter(({ host }) => host === 'media')).toHaveLength(2);
	expect(both.map(({ run }) => run.status)).toEqual(['success', 'success']);
	expect(both.flatMap(({ output }) => output)).toHaveLength(1);
});

it('a second try of the execution that a task has started goes on with the task', async () => {
	on.service.configure({ mediaStatus: { status: 404, times: 1 } });
	const task = finished();
	expect(await counts([task, { ...downloading, ...threeTries }], [task])).toEqual([1, 0]);
	expect(store.rows.size).toBe(1);
});

/** What the trigger puts out for a finished task whose callback has come. */
async function startedBy(resultShape: unknown) {
	on.service.configure({ resultShape });
	const taskId = on.finishedTask();
	const callback = deliver({ ...on.credential, body: { taskId } });
	const { workflowData } = await passTime(callback.result);
	return await start(workflowData?.[0]?.[0] ?? { json: {} });
}

it('resolves the links of results that have no host, as the action node does', async () => {
	const { output } = await startedBy({ image: '$path' });
	const [taskId] = on.taskIds;
	const { origin } = new URL(on.service.url);
	expect(field(output, 'resultUrls')).toEqual([[`${origin}/media/${taskId}/1.png`]]);
});

it('a success without a link is read again for a while, and then leaves with a warning', async () => {
	const { output, hints } = await startedBy(['']);
	expect(output).toMatchObject([{ json: { state: 'SUCCESS', resultUrls: [] } }]);
	expect(hints).toEqual([text(`Of task ${on.taskIds[0]} it says: {"model"`)]);
	expect(on.requests('GET').length).toBeGreaterThan(2);
	expect(on.elapsed).toBeLessThan(8_000);
});

it('links that come a little later are the results', async () => {
	on.service.configure({ readStatus: { status: 200, times: 1, body: { state: 'SUCCESS' } } });
	const { output, hints } = await startedBy('$1');
	expect(output).toMatchObject([{ json: { resultUrls: [text('http')] } }]);
	expect(hints).toEqual([]);
});

it('a task whose id is a UUID starts the workflow once, however its callbacks write the id', async () => {
	const { json } = finished();
	const [small, large] = [
		'3f1c2a00-0000-4000-8000-00000000abcd',
		'3F1C2A00-0000-4000-8000-00000000ABCD',
	];
	const tasks = [small, large, small].map((taskId) => ({ json: { ...json, taskId } }));
	expect(await counts(...tasks.map((task): [INodeExecutionData] => [task]))).toEqual([1, 0, 0]);
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

it('a try of Retry On Fail after one in which the database failed goes by On Error as it was chosen', async () => {
	on.service.configure({ mediaStatus: 404 });
	store.nextError = BUSY;
	const task = finished();
	const how = { ...downloading, ...threeTries, ...keepsGoing };
	const { output, run } = await atLast(task, how);
	expect(run.status).toBe('success');
	expect(output[0]?.json).toMatchObject({
		taskId: task.json.taskId,
		error: expect.stringContaining('HTTP 404') as string,
	});
});

describe('the next callback', () => {
	/** A callback that a trigger has admitted, and what the gate does with another callback of the task. */
	async function admitted(id: string) {
		const callback = { ...on.credential, body: { taskId: on.finishedTask() }, node: id };
		const first = deliver(callback);
		const { workflowData } = await first.result;
		first.response.end(200);
		const next = async () => await outcome(deliver(callback));
		expect(await next()).toMatchObject({ body: { reason: 'duplicate' } });
		return { task: workflowData?.[0]?.[0] ?? { json: {} }, next };
	}

	it('is admitted at once if the execution of the first one has failed', async () => {
		const id = 'trigger of a failed start';
		const { task, next } = await admitted(id);
		store.nextError = BUSY;
		const { error } = await start(task, { id });
		expect(error).toBeDefined();
		expect(await next()).toHaveProperty('starts');
	});

	it('is a duplicate while the execution of the first one sleeps, because its host is in trouble', async () => {
		on.service.configure({ mediaStatus: 503 });
		const id = 'trigger that downloads';
		const { task, next } = await admitted(id);
		const begun = await begin(task, new WorkflowN8n(workflow({ ...downloading, id })));
		for (let wakes = 0; wakes < 5; wakes++) {
			await begun.wake();
			expect([begun.row.status, await next()]).toMatchObject([
				'waiting',
				{ body: { reason: 'duplicate' } },
			]);
		}
		expect(on.elapsed).toBeGreaterThan(5 * MINUTE);
	});
});
