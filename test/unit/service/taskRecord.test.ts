import {
	asTaskId,
	findTaskId,
	parseTaskRecord,
} from '../../../nodes/MediaGeneration/service/taskRecord';

const URLS = ['https://media.example.com/1.png', 'https://media.example.com/2.png'];
const parse = (body: unknown) => parseTaskRecord('t', body);

describe('the state of a record', () => {
	it.each([
		['SUCCESS', ['SUCCESS', 'success', 'Success ']],
		['FAILURE', ['FAILURE', 'Failure']],
		['PENDING', ['PENDING', ' pending ']],
		// The specification does not name these.
		['PENDING', ['RUNNING', 'queued', 'PROCESSING', 'SUCCEEDED']],
	])('is %s where it is one of %j', (expected, states) => {
		for (const state of states) expect(parse({ state }).state).toBe(expected);
	});

	it('is looked for in the wrapper too where the outer `state` is empty', () => {
		expect(parse({ state: '', data: { state: 'FAILURE' } }).state).toBe('FAILURE');
	});

	it.each([[{}], [{ state: '' }], [{ state: 1 }], [[]], [null], ['SUCCESS']])(
		'cannot be told from %j, which is an error that names the task',
		(body) => {
			expect(() => parseTaskRecord('task-1', body)).toThrow(
				expect.objectContaining({
					kind: 'unusableRecord',
					message: 'The record of task task-1 has no state',
				}),
			);
		},
	);
});

describe('a record', () => {
	it('is handed on as it was received, with whatever else it holds', () => {
		const body = { state: 'SUCCESS', resultUrls: URLS, prompt: { text: 'a' }, extra: [1] };
		expect(parse(body).record).toEqual(body);
	});

	it('loses long data URIs that were sent along, and keeps those that are results', () => {
		const picture = `data:image/png;base64,${'A'.repeat(9000)}`;
		const body = { data: { state: 'SUCCESS', resultUrls: [picture], input: { frame: picture } } };
		const task = parse(body);
		expect(task).toMatchObject({ resultUrls: [picture] });
		expect(JSON.stringify(task.record)).toContain('(9022 characters)');
		expect(parse(task.record)).toMatchObject({ resultUrls: [picture] });
	});

	it.each(['data', 'task'])(
		'may be wrapped in `%s`, and keeps the id it was asked for',
		(place) => {
			const inner = { taskId: 'other', state: 'SUCCESS', resultUrls: URLS, creditsConsumed: 8 };
			const record = { [place]: inner };
			expect(parse(record)).toEqual({ ...inner, taskId: 't', record });
		},
	);

	it('has results only where it is a success', () => {
		expect(parse({ state: 'PENDING', resultUrls: URLS })).not.toHaveProperty('resultUrls');
	});

	it.each([
		['nothing', undefined, []],
		['a single string', URLS[0], [URLS[0]]],
		['an empty string', '', []],
		['a list with odd entries', [URLS[0], null, 7, '', { id: 'x' }, URLS[1]], URLS],
		['a list of objects', [{ url: URLS[0], width: 1024 }, { url: URLS[1] }], URLS],
		['an object', { url: URLS[0] }, [URLS[0]]],
		['an object without a URL', { id: 'x' }, []],
	])('has its results read from %s', (_shape, resultUrls, expected) => {
		expect(parse({ state: 'SUCCESS', resultUrls })).toHaveProperty('resultUrls', expected);
	});

	it('has credits that are a number, or null where it is none', () => {
		const credits = (creditsConsumed: unknown) =>
			parse({ state: 'SUCCESS', creditsConsumed }).creditsConsumed;
		expect([8, 0, 0.5, '8', ' 0.25 '].map(credits)).toEqual([8, 0, 0.5, 8, 0.25]);
		const none = ['eight', '', null, undefined, true, Infinity];
		expect(none.map(credits)).toEqual(none.map(() => null));
	});

	it.each([
		[{ error: 'Unsafe prompt' }, 'Unsafe prompt'],
		[{ error: { code: 'unsafe', message: 'Unsafe prompt' } }, 'Unsafe prompt'],
		[{ failureReason: 'Unsafe prompt' }, 'Unsafe prompt'],
		[{ message: 'Unsafe\n  prompt' }, 'Unsafe prompt'],
		[{}, undefined],
		// What the user sent.
		[{ input: { message: 'Say hello' }, data: { error: 'no' } }, undefined],
		[{ title: 'A harbour', description: 'At dawn' }, undefined],
	])('that is a failure has its reason found in %j: %s', (fields, reason) => {
		expect(parse({ state: 'FAILURE', ...fields })).toHaveProperty('reason', reason);
	});
});

describe('the task id of a body', () => {
	it.each([
		[{ id: 'a' }],
		[{ data: { task_id: 'a' } }],
		[{ id: 'callback', taskId: 'a' }],
		[{ taskId: '', data: { id: 'a' } }],
		[{ code: 200, message: 'ok', data: { taskId: ' a ' } }],
		// An envelope has an id of its own.
		[{ id: 'evt_1', type: 'task.completed', data: { taskId: 'a', id: 'x' } }],
		[{ id: 'evt_1', task_id: 'x', task: { taskId: 'a' } }],
		[{ id: 'evt_1', data: { id: 'x' }, task: { task_id: 'a' } }],
		[{ task_id: 'a', data: { task_id: 'x', id: 'x' } }],
		[{ taskId: 'a', data: { taskId: 'x' } }],
		[{ id: 'evt_1', data: { id: 'a' } }],
		[{ id: 'req_1', task: { id: 'a', state: 'PENDING' } }],
	])('is found in %j', (body) => {
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
	it('may be any text that fits into a path, and loses the white space around it', () => {
		const ids = ['task-1', 'a/b', '../credits', '...', 'a?b#c%20', 'ü🙂', 'x'.repeat(512)];
		expect(ids.map(asTaskId)).toEqual(ids);
		expect([' task-1\n', 42].map(asTaskId)).toEqual(['task-1', '42']);
	});

	it('cannot be what leads elsewhere, is too long, or is no text', () => {
		const texts = ['.', '..', ' .. ', '', '  ', '\uD800', 'a\uDC00b', 'x'.repeat(513)];
		const others = [1.5, 2 ** 60, NaN, true, null, undefined, {}, ['a']];
		for (const value of [...texts, ...others]) expect(asTaskId(value)).toBeUndefined();
	});
});
