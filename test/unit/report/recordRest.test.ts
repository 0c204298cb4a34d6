import { recordRest } from '../../../nodes/MediaGeneration/report/recordRest';
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

	it('keeps what the item says otherwise', () => {
		const record = { id: 'event-7', state: 'RUNNING', resultUrls: [URL], creditsConsumed: 3 };
		const pending = { taskId: 'task-1', state: 'PENDING', resultUrls: [], creditsConsumed: null };
		expect(recordRest(record, pending)).toEqual(record);
	});

	it('keeps links that say more than their address', () => {
		const resultUrls = [{ url: URL, width: 1024 }];
		expect(recordRest({ resultUrls }, FIELDS)).toEqual({ resultUrls });
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

it.each([
	[{}, 0],
	[{ creditsConsumed: null }, 0],
	[{ creditsConsumed: 8 }, 8],
])('a failed task has cost nothing unless the service says otherwise (%j)', (more, credits) => {
	const task = parseTaskRecord('task-1', { taskId: 'task-1', state: 'FAILURE', ...more });
	expect(taskJson(task).creditsConsumed).toBe(credits);
});
