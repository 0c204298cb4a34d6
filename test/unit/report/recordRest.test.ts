import { echo } from '../../../nodes/MediaGeneration/plan/inputFile';
import { recordRest } from '../../../nodes/MediaGeneration/report/recordRest';
import { timedOut } from '../../../nodes/MediaGeneration/report/taskErrors';
import { taskJson, pendingJson } from '../../../nodes/MediaGeneration/report/taskItems';
import { parseTaskRecord } from '../../../nodes/MediaGeneration/service/taskRecord';

const URL = 'https://m.example.com/1.png';
const FIELDS = { taskId: 'task-1', state: 'SUCCESS', resultUrls: [URL], creditsConsumed: 8 };
const TIMES = { createdAt: '2026-01-01', width: 1024 };

describe('the record of an item', () => {
	it.each<[string, Record<string, unknown>]>([
		['at the top', { ...FIELDS, ...TIMES }],
		[
			'by other spellings',
			{ task_id: 'TASK-1', State: 'success', credits_consumed: '8', ...TIMES },
		],
		['by the bare id', { id: 'task-1', result_urls: [URL], ...TIMES }],
		['as nothing', { ...FIELDS, creditsConsumed: null, resultUrls: null, ...TIMES }],
	])('does not repeat what the item says: %s', (_where, record) => {
		expect(recordRest(record as never, FIELDS)).toEqual(TIMES);
	});

	it('does not repeat it inside a wrapper either, and leaves no empty wrapper', () => {
		const wrapped = { code: 200, data: { ...FIELDS, prompt: 'A sea' }, task: { id: 'task-1' } };
		expect(recordRest(wrapped, FIELDS)).toEqual({ code: 200, data: { prompt: 'A sea' } });
	});

	it.each([
		['in another order', { model: 'a/b', input: { seed: 7, prompt: 'A', sizes: [1, 2] } }, []],
		['with a default', { input: { prompt: 'A', sizes: [1, 2], seed: 7, steps: 20 } }, ['input']],
		['without a field', { input: { prompt: 'A', seed: 7 } }, ['input']],
		['with another order of a list', { input: { prompt: 'A', sizes: [2, 1], seed: 7 } }, ['input']],
		['of another model', { model: 'a/b-2' }, ['model']],
	])('does not repeat the model and the input as they were sent: %s', (_what, echo, left) => {
		const sent = { model: 'a/b', input: { prompt: 'A', sizes: [1, 2], seed: 7 } };
		const record = { taskId: 'task-1', state: 'SUCCESS', width: 1024, ...echo };
		const { record: rest } = taskJson(parseTaskRecord('task-1', record), sent);
		expect(Object.keys(rest as object)).toEqual([...left, 'width']);
	});

	it('does not repeat a picture that was sent, which the item shows cut short', () => {
		const picture = `data:image/png;base64,${'A'.repeat(5_000)}`;
		const sent = echo({ model: 'a/b', input: { image_url: picture } });
		const record = { state: 'SUCCESS', input: { image_url: picture } };
		expect(taskJson(parseTaskRecord('task-1', record), sent).record).toEqual({});
	});

	it('keeps what the item says otherwise', () => {
		const record = { id: 'event-7', state: 'RUNNING', resultUrls: [URL], creditsConsumed: 3 };
		const pending = { taskId: 'task-1', state: 'PENDING', resultUrls: [], creditsConsumed: null };
		expect(recordRest(record, pending)).toEqual(record);
	});

	it('keeps links that say more than their address, cut short where they are whole files', () => {
		const resultUrls = [{ url: URL, width: 1024 }];
		expect(recordRest({ resultUrls }, FIELDS)).toEqual({ resultUrls });
		const picture = `data:image/png;base64,${'A'.repeat(5_000)}`;
		const whole = recordRest({ resultUrls: [{ url: picture, width: 1024 }] }, FIELDS);
		expect(JSON.stringify(whole).length).toBeLessThan(200);
	});

	it('begins with the prompt metadata', () => {
		const record = { createdAt: 1, model: 'a/b', input: {}, revised_prompt: 'A', prompt: 'B' };
		const names = Object.keys(recordRest({ ...FIELDS, ...record }, FIELDS));
		expect(names).toEqual(['revised_prompt', 'prompt', 'model', 'input', 'createdAt']);
		const wrapped = { code: 200, message: 'ok', data: { prompt: 'B' } };
		expect(Object.keys(recordRest(wrapped, FIELDS))).toEqual(['data', 'code', 'message']);
	});

	it('of a task that was only created is the rest of the answer to the create', () => {
		const record = { taskId: 'task-1', state: 'PENDING', queue: 3 };
		expect(pendingJson('task-1', { record }).record).toEqual({ queue: 3 });
	});
});

describe('the credits of a task that is not finished', () => {
	const charged = { taskId: 'task-1', state: 'PENDING', creditsConsumed: 4 };

	it.each([charged, { data: charged }, { data: { ...charged, creditsConsumed: '4' } }])(
		'are those of the answer to its create: %j',
		(record) => {
			const json = pendingJson('task-1', { record });
			expect(json).toMatchObject({ creditsConsumed: 4 });
			expect(json.record).toEqual({});
		},
	);

	it.each([
		[charged, 4],
		[{ state: 'PENDING' }, 3],
	])('are those of the last record when its time is up: %j', (record, credits) => {
		const known = pendingJson('task-1', { record: { creditsConsumed: 3 } });
		const last = parseTaskRecord('task-1', record);
		const { task } = timedOut('task-1', 1000, { last }, known);
		expect(task).toMatchObject({ creditsConsumed: credits });
		expect(task.record).toEqual({});
	});
});

it.each([
	[{}, 0],
	[{ creditsConsumed: null }, 0],
	[{ creditsConsumed: 8 }, 8],
])('a failed task has cost nothing unless the service says otherwise (%j)', (more, credits) => {
	const task = parseTaskRecord('task-1', { taskId: 'task-1', state: 'FAILURE', ...more });
	expect(taskJson(task).creditsConsumed).toBe(credits);
});
