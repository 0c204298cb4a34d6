import {
	asTaskId,
	findTaskId,
	parseTaskRecord,
} from '../../../nodes/MediaGeneration/service/taskRecord';

const URLS = ['https://media.example.com/1.png', 'https://media.example.com/2.png'];

describe('the state of a record', () => {
	it.each([
		['PENDING', 'PENDING'],
		['SUCCESS', 'SUCCESS'],
		['FAILURE', 'FAILURE'],
		['success', 'SUCCESS'],
		['Failure', 'FAILURE'],
		[' pending ', 'PENDING'],
	])('%j is %s', (sent, state) => {
		expect(parseTaskRecord('t', { state: sent }).state).toBe(state);
	});

	it.each(['RUNNING', 'queued', 'PROCESSING', 'SUCCEEDED'])(
		'%j, which the specification does not name, counts as PENDING',
		(state) => {
			expect(parseTaskRecord('t', { state }).state).toBe('PENDING');
		},
	);

	it.each([
		[{}],
		[{ state: '' }],
		[{ state: 1 }],
		[{ state: null }],
		[[]],
		[null],
		['SUCCESS'],
		[7],
	])('cannot be told from %j, which is an error that names the task', (body) => {
		expect(() => parseTaskRecord('task-1', body)).toThrow(
			expect.objectContaining({
				kind: 'unusableRecord',
				message: 'The record of task task-1 has no state',
			}),
		);
	});
});

describe('a record', () => {
	it('is handed on as it was received, with whatever else it holds', () => {
		const body = { state: 'SUCCESS', resultUrls: URLS, prompt: { text: 'a' }, extra: [1] };
		expect(parseTaskRecord('t', body).record).toBe(body);
	});

	it('loses long data URIs that were sent along, and keeps those that are results', () => {
		const picture = `data:image/png;base64,${'A'.repeat(9000)}`;
		const body = { data: { state: 'SUCCESS', resultUrls: [picture], input: { frame: picture } } };
		const task = parseTaskRecord('t', body);
		expect(task).toMatchObject({ resultUrls: [picture] });
		expect(JSON.stringify(task.record)).toContain('(9022 characters)');
		expect(parseTaskRecord('t', task.record)).toMatchObject({ resultUrls: [picture] });
	});

	it('keeps the id it was asked for, whatever it says itself', () => {
		expect(parseTaskRecord('asked', { state: 'PENDING', taskId: 'other' }).taskId).toBe('asked');
	});

	it.each(['data', 'task'])('may be wrapped in `%s`', (wrapper) => {
		const body = { [wrapper]: { state: 'SUCCESS', resultUrls: URLS, creditsConsumed: 8 } };
		expect(parseTaskRecord('t', body)).toEqual({
			taskId: 't',
			state: 'SUCCESS',
			resultUrls: URLS,
			creditsConsumed: 8,
			record: body,
		});
	});

	it('is looked for in the wrapper too where the outer `state` is empty', () => {
		expect(parseTaskRecord('t', { state: '', data: { state: 'FAILURE' } }).state).toBe('FAILURE');
	});
});

describe('the results of a success', () => {
	it.each([
		['a list', URLS, URLS],
		['nothing', undefined, []],
		['null', null, []],
		['a single string', URLS[0], [URLS[0]]],
		['an empty string', '', []],
		['a list with odd entries', [URLS[0], null, 7, '', { url: 'x' }, URLS[1]], URLS],
		['an empty list', [], []],
		['an object', { url: URLS[0] }, []],
	])('are read from %s', (_shape, resultUrls, expected) => {
		expect(parseTaskRecord('t', { state: 'SUCCESS', resultUrls })).toHaveProperty(
			'resultUrls',
			expected,
		);
	});

	it('do not exist before it', () => {
		const record = parseTaskRecord('t', { state: 'PENDING', resultUrls: URLS });
		expect(record).not.toHaveProperty('resultUrls');
	});
});

describe('the credits consumed', () => {
	it.each([
		[8, 8],
		[0, 0],
		[0.5, 0.5],
		['8', 8],
		[' 0.25 ', 0.25],
		['eight', null],
		['', null],
		[null, null],
		[undefined, null],
		[true, null],
		[Infinity, null],
	])('%j are %j', (creditsConsumed, expected) => {
		expect(parseTaskRecord('t', { state: 'SUCCESS', creditsConsumed }).creditsConsumed).toBe(
			expected,
		);
	});
});

describe('the reason of a failure', () => {
	it.each([
		[{ error: 'Unsafe prompt' }, 'Unsafe prompt'],
		[{ error: { code: 'unsafe', message: 'Unsafe prompt' } }, 'Unsafe prompt'],
		[{ failureReason: 'Unsafe prompt' }, 'Unsafe prompt'],
		[{ message: 'Unsafe\n  prompt' }, 'Unsafe prompt'],
		[{}, undefined],
	])('is found in %j', (fields, reason) => {
		expect(parseTaskRecord('t', { state: 'FAILURE', ...fields })).toHaveProperty('reason', reason);
	});

	it('is never taken from what the user sent', () => {
		const body = { state: 'FAILURE', input: { message: 'Say hello' }, data: { error: 'no' } };
		expect(parseTaskRecord('t', body)).toHaveProperty('reason', undefined);
	});
});

describe('the task id of a body', () => {
	it.each([
		[{ taskId: 'a' }],
		[{ task_id: 'a' }],
		[{ id: 'a' }],
		[{ data: { taskId: 'a' } }],
		[{ data: { task_id: 'a' } }],
		[{ data: { id: 'a' } }],
		[{ task: { taskId: 'a' } }],
		[{ task: { task_id: 'a' } }],
		[{ task: { id: 'a' } }],
		[{ id: 'callback', taskId: 'a' }],
		[{ taskId: '', data: { id: 'a' } }],
		[{ code: 200, message: 'ok', data: { taskId: ' a ' } }],
	])('is found in %j', (body) => {
		expect(findTaskId(body)).toBe('a');
	});

	it.each([
		[{ id: 'evt_1', type: 'task.completed', data: { taskId: 'a', id: 'x' } }],
		[{ id: 'evt_1', task_id: 'x', task: { taskId: 'a' } }],
		[{ id: 'evt_1', data: { id: 'x' }, task: { task_id: 'a' } }],
		[{ task_id: 'a', data: { task_id: 'x', id: 'x' } }],
		[{ taskId: 'a', data: { taskId: 'x' } }],
		[{ id: 'evt_1', data: { id: 'a' } }],
		[{ id: 'req_1', task: { id: 'a', state: 'PENDING' } }],
	])("is told from an envelope's own id in %j", (body) => {
		expect(findTaskId(body)).toBe('a');
	});

	it.each([
		[{}],
		[{ taskId: null }],
		[{ taskId: { id: 'a' } }],
		[{ data: { data: { taskId: 'a' } } }],
		[{ result: { taskId: 'a' } }],
		[{ data: ['a'] }],
		[['a']],
		['a'],
		[null],
		[undefined],
	])('is not made up from %j', (body) => {
		expect(findTaskId(body)).toBeUndefined();
	});
});

describe('a task id', () => {
	it.each([
		['task-1', 'task-1'],
		[' task-1\n', 'task-1'],
		[42, '42'],
		['a/b', 'a/b'],
		['../credits', '../credits'],
		['...', '...'],
		['a?b#c%20', 'a?b#c%20'],
		['ü🙂', 'ü🙂'],
		['x'.repeat(512), 'x'.repeat(512)],
	])('may be %j', (value, id) => {
		expect(asTaskId(value)).toBe(id);
	});

	it.each([
		['.'],
		['..'],
		[' .. '],
		[''],
		['  '],
		['\uD800'],
		['a\uDC00b'],
		['x'.repeat(513)],
		[1.5],
		[2 ** 60],
		[NaN],
		[true],
		[null],
		[undefined],
		[{}],
		[['a']],
	])('cannot be %j', (value) => {
		expect(asTaskId(value)).toBeUndefined();
	});
});
