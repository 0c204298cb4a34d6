import type { IDataObject } from 'n8n-workflow';

import { executeContext } from './engine';
import { MINUTE, field, imageNode, item, prompts, SECOND, stage } from './support';
import { useProcessedData } from './processedData';

/** Answers in other shapes than the specification shows, in whole runs. */

useProcessedData();
const on = stage();

const RECORD = '$record';
const TASK = { taskId: '$taskId' };

it.each<[string, unknown, unknown]>([
	['lists of one', [TASK], [RECORD]],
	['data with a list', { data: [TASK] }, { data: [RECORD] }],
	['tasks', { id: 'req_1', tasks: [TASK] }, { tasks: [RECORD] }],
	['a result', { result: TASK }, { id: 'req_2', result: RECORD }],
	['an output', { output: { task_id: '$taskId' } }, { output: RECORD }],
	['a generation', { generation: TASK }, { generation: RECORD }],
	['data that is the id', { code: 200, data: '$taskId' }, { code: 200, data: RECORD }],
	['JSON as text', { data: '{"taskId":"$taskId"}' }, RECORD],
	['an id beside a job', { id: 'req_1', job_id: '$taskId' }, RECORD],
	[
		'an id of the user',
		{ input: { taskId: 'mine' }, metadata: TASK, data: TASK },
		{ input: { state: 'FAILURE', taskId: 'mine' }, data: RECORD },
	],
])('%s are read to their end', async (_what, createShape, readShape) => {
	on.service.configure({ createShape, readShape });
	const { output, error } = await on.images(['a', 'b']);
	expect(error).toBeUndefined();
	expect(field(output, 'taskId')).toEqual(on.taskIds);
	expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
	expect(field(output, 'resultUrls').flat()).toHaveLength(2);
});

it('an answer with several ids is in doubt: no id is guessed, nothing is sent again, and the log has the answer', async () => {
	const others = { id: 'req_1', tasks: [TASK, { taskId: 'task-2' }], prompt: 'x'.repeat(100_000) };
	on.service.configure({ createShape: others });
	const info = jest.spyOn(executeContext(on.workflow({})).logger, 'info');
	const { error, description } = await on.images(['a']);
	expect(error?.message).toContain('It is not known whether the task was created');
	expect(on.creates).toHaveLength(1);
	expect(JSON.stringify(info.mock.calls)).toContain(on.taskIds[0]);
	info.mockRestore();
	expect(`${error?.message}${description}`.length).toBeLessThan(2000);
});

describe('a record that has no state, and says with an error code why', () => {
	const readShape = {
		...{ code: 400, msg: 'flagged by the content policy' },
		data: { ...TASK, successFlag: 3, errorMessage: 'x'.repeat(100_000) },
	};

	it('ends its item after five minutes, as a failure that costs nothing', async () => {
		on.service.configure({ readShape });
		const items: Parameters<typeof prompts> = ['a', item('b', { readShape: RECORD })];
		const { output, error } = await on.images(items, { suspendAfter: 60 });
		expect(error).toBeUndefined();
		expect(output[0]?.json).toMatchObject({
			taskId: on.taskIds[0],
			state: 'FAILURE',
			error: `The task record has no state: flagged by the content policy (task ${on.taskIds[0]})`,
		});
		expect(output[1]?.json).toMatchObject({ state: 'SUCCESS' });
		expect(on.elapsed).toBeGreaterThan(5 * MINUTE);
		expect(on.elapsed).toBeLessThan(6 * MINUTE);
		expect(on.creates).toHaveLength(2);
	});

	it('is read on where it gets a state before that', async () => {
		on.service.configure({ readShape });
		setTimeout(() => on.service.configure({ readShape: RECORD }), 4 * MINUTE);
		const { output } = await on.images(['a']);
		expect(field(output, 'state')).toEqual(['SUCCESS']);
	});
});

describe('results that are data', () => {
	const BYTES = 1_000_000;
	const png = Buffer.concat([Buffer.from('iVBORw0KGgo=', 'base64'), Buffer.alloc(BYTES, 'ab1')]);
	const uri = `data:image/png;base64,${png.toString('base64')}`;
	/** More than a record without its file. */
	const SMALL = 20_000;

	it.each<[string, unknown]>([
		['data URIs', [uri]],
		['base64', [png.toString('base64')]],
		['b64_json', [{ b64_json: png.toString('base64'), mime_type: 'image/png' }]],
	])('%s become files, and no item repeats them', async (_what, resultShape) => {
		on.service.configure({ resultShape });
		const { output } = await on.run(imageNode({ downloadResults: true }), prompts('a', 'b'));
		expect(output.map(({ binary }) => binary?.data?.mimeType)).toEqual(['image/png', 'image/png']);
		const [file] = output.map(({ binary }) => Buffer.from(binary?.data?.data ?? '', 'base64'));
		expect(file?.equals(png)).toBe(true);
		expect(JSON.stringify(output.map(({ json }) => json)).length).toBeLessThan(SMALL);
	});

	it.each([true, false])(
		'are never stored with a run that sleeps, and leave whole (downloads: %p)',
		async (downloadResults) => {
			on.service.configure({ resultShape: [uri] });
			const slow = item('slow', { latencyMs: 30 * MINUTE, resultShape: '$1' });
			const options: IDataObject = { downloadResults, suspendAfter: 1, timeout: 7200 };
			const run = await on.start(imageNode(options), prompts('a', slow));
			expect(run.isAsleep).toBe(true);
			await run.wake();
			expect(run.isAsleep).toBe(true);
			expect(JSON.stringify(run.data).includes(uri.slice(0, 5000))).toBe(false);
			const { output } = await run.end();
			const json = JSON.stringify(output[0]?.json);
			if (downloadResults) {
				expect(json.length).toBeLessThan(SMALL);
				expect(output[0]?.binary?.data?.mimeType).toBe('image/png');
			} else expect(field(output, 'resultUrls')[0]).toEqual([uri]);
		},
	);
});

it('a failure that was charged for does not advise to create it again', async () => {
	on.service.configure({ extraFields: { creditsConsumed: 8 } });
	const { output } = await on.images(['a', item('b', { outcome: 'FAILURE' })], {}, {}, {});
	const { advice } = output[1]?.json ?? {};
	expect(advice).toContain('charged 8 credits');
	expect(advice).not.toContain('Retry Failed Tasks');
	expect(on.elapsed).toBeLessThan(30 * SECOND);
});
