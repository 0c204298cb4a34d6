import {
	asTaskId,
	comparableId,
	findServiceMessage,
	findTaskId,
	retryAfterMs,
} from '../../../nodes/MediaGeneration/service/answerFields';

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
		// An id of the caller may stand beside the task.
		[{ id: 'mine', data: { id: 'customer-7', task: { id: 'a' } } }],
		[{ data: { id: 'customer-7' }, task: { id: 'a' } }],
		[{ id: 'mine', data: { taskID: 'a' } }],
		[{ id: 'mine', data: { id: 'customer-7', task: { taskId: 'a' } } }],
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

it('a UUID is the same in small and in capital letters, and no other id is', () => {
	const uuid = '123e4567-e89b-12d3-a456-42661417400A';
	expect(comparableId(uuid)).toBe(comparableId(uuid.toLowerCase()));
	expect(comparableId(uuid.replaceAll('-', ''))).toBe(uuid.replaceAll('-', '').toLowerCase());
	expect(comparableId('Task-A')).toBe('Task-A');
});

it.each([
	['Not enough credits'],
	[{ error: { message: 'Not enough credits', code: 'x' } }],
	[{ error: { code: 7, detail: 'Not enough credits' } }],
	[{ errors: [{ message: 'Not enough credits' }, { message: 'second' }] }],
	[{ detail: [{ loc: ['body'], message: 'Not enough credits' }] }],
	[{ detail: [{ loc: ['body'], msg: 'Not enough credits' }] }],
	[{ code: 402, msg: 'Not enough credits' }],
	[{ data: { error: { message: 'Not enough credits' } } }],
	[{ status: 402, title: 'Not enough credits' }],
	[{ message: '', error: 'Not enough credits' }],
	[{ message: { text: 1 }, reason: 'Not  enough\n\tcredits' }],
])('finds the message of the service in %j', (body) => {
	expect(findServiceMessage(body)).toBe('Not enough credits');
});

it.each([[undefined], [null], [''], [' \n'], [7], [{}], [[]], [{ code: 'x' }], [{ message: 7 }]])(
	'finds none in %j',
	(body) => {
		expect(findServiceMessage(body)).toBeUndefined();
	},
);

it('cuts a long message at 500 characters', () => {
	expect(findServiceMessage({ message: 'x'.repeat(501) })).toBe('x'.repeat(500));
});

it('looks no deeper than four levels, so that a body cannot send it astray', () => {
	const nested = (depth: number): unknown => (depth === 0 ? 'deep' : { error: nested(depth - 1) });
	expect(findServiceMessage(nested(4))).toBe('deep');
	expect(findServiceMessage(nested(5))).toBeUndefined();
});

const NOW = Date.parse('2026-01-01T12:00:00Z');

describe('the header Retry-After', () => {
	it.each([
		[' 7 ', 7000],
		['0', 0],
		['1.5', 1500],
		['9'.repeat(40), 30 * 86_400_000],
		['Thu, 01 Jan 2026 12:00:30 GMT', 30_000],
		['Thu, 01 Jan 2026 11:00:00 GMT', 0],
	])('%j means %d ms', (header, ms) => {
		expect(retryAfterMs({ 'retry-after': header }, NOW)).toBe(ms);
	});

	const NONE = ['soon', '', '  ', '-5', 'NaN', undefined, null, ['7'], 7];
	it.each(NONE)('%j means nothing', (header) => {
		expect(retryAfterMs({ 'retry-after': header }, NOW)).toBeUndefined();
	});
});

describe('how long to wait', () => {
	const SECONDS = NOW / 1000;
	const at = (seconds: number) => new Date((SECONDS + seconds) * 1000).toUTCString();
	// Each row has three values: in place of a missing value Jest hands over a callback, and waits for its call.
	it.each<[number | undefined, Record<string, string>, unknown]>([
		[1_500, { 'retry-after-ms': '1500', 'retry-after': '2' }, {}],
		// By the clock of the service, which is an hour behind.
		[30_000, { date: at(-3600), 'retry-after': at(-3570) }, {}],
		[7_000, { 'ratelimit-reset': '7' }, {}],
		[7_000, { 'x-ratelimit-reset': '7' }, {}],
		[7_000, { 'x-ratelimit-reset': String(SECONDS + 7) }, {}],
		[7_000, { 'x-ratelimit-reset': String(NOW + 7_000) }, {}],
		[7_000, { 'x-ratelimit-reset': at(7) }, {}],
		[7_000, { 'ratelimit-reset': '7', 'ratelimit-remaining': '0' }, {}],
		[undefined, { 'ratelimit-reset': '7', 'ratelimit-remaining': '3' }, {}],
		[2_000, { 'ratelimit-reset': '7', 'retry-after': '2' }, {}],
		[2_500, {}, { retry_after: 2.5 }],
		[2_500, {}, { error: { retryAfter: '2.5' } }],
		[2_500, {}, { detail: { retry_after_ms: 2500 } }],
		[2_500, {}, { data: { retry_after_seconds: 2.5 } }],
		[undefined, {}, { input: { retry_after: 7 } }],
		[undefined, {}, { retry_after: 'soon' }],
	])('is %j ms for %j %j', (ms, headers, body) => {
		expect(retryAfterMs(headers, NOW, body)).toBe(ms);
	});
});
