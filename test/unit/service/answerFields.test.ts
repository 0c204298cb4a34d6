import {
	asTaskId,
	comparableId,
	findServiceMessage,
	findTaskId,
	isOfTask,
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
		// At any depth, in a list, and in JSON as text.
		[[{ taskId: 'a' }]],
		[{ data: [{ taskId: 'a' }] }],
		[{ tasks: [{ taskId: 'a' }] }],
		[{ result: { taskId: 'a' } }],
		[{ output: { task_id: 'a' } }],
		[{ generation: { taskId: 'a' } }],
		[{ data: { data: { attributes: { 'task-id': 'a' } } } }],
		[{ data: '{"taskId":"a"}' }],
		['[{"data":"{\\"task_id\\":\\"a\\"}"}]'],
		[{ id: 'evt_9', result: { taskId: 'a' } }],
		[{ id: 'req_1', job_id: 'a' }],
		[{ job_id: 'x', result: { task_id: 'a' } }],
		[{ success: true, result: { id: 'a' } }],
		[{ id: 'evt_1', tasks: [{ id: 'a' }] }],
		[{ id: 'a', state: 'SUCCESS', output: { id: 'file-1' } }],
		// The outermost one wins, also over several in a list.
		[{ taskId: 'a', children: [{ taskId: 'x' }, { taskId: 'y' }] }],
		[{ tasks: [{ taskId: 'a' }, { taskId: 'a' }] }],
		// What the user sent, and what is said of other tasks, does not count.
		[{ input: { taskId: 'x' }, data: { attributes: { taskId: 'a' } } }],
		[{ metadata: { taskId: 'x' }, result: { task: { task_id: 'a' } } }],
		[{ prompt: '{"taskId":"x"}', id: 'a' }],
		[{ params: '{"taskId":"x"}', data: { taskId: 'a' } }],
		[{ webhook_url: 'https://n/?x', callback: { taskId: 'x' }, job_id: 'a' }],
		[{ parent: { taskId: 'x' }, data: { job: { taskId: 'a' } } }],
	])('is found in %j', (body) => {
		expect(findTaskId(body)).toBe('a');
	});

	it.each([
		[{}],
		[{ taskId: null }],
		[{ taskId: { id: 'a' } }],
		[{ data: ['a'] }],
		[{ data: 'queued' }],
		[{ data: 'Task 7 was created' }],
		[{ message: 'a', user: { id: 'a' }, model: { id: 'a' } }],
		// Several tasks: nobody knows which one is meant.
		[{ tasks: [{ taskId: 'a' }, { taskId: 'b' }] }],
		[{ id: 'a', tasks: [{ taskId: 'a' }, { taskId: 'b' }] }],
		[{ data: { taskId: 'a' }, result: { taskId: 'b' } }],
		[{ task: { id: 'a' }, job: { id: 'b' } }],
		// What the user sent, and what is said of other tasks.
		[{ input: { taskId: 'a' } }],
		[{ data: { metadata: { taskId: 'a' } } }],
		[{ error: { message: 'Too many', running: [{ taskId: 'a' }] } }],
		[['a']],
		['a'],
		[null],
		[undefined],
	])('is not made up from %j', (body) => {
		expect(findTaskId(body)).toBeUndefined();
	});
});

it.each([['t1'], ['0d9a4b1c-77aa-4f00-9c3e-5b6f7a8b9cde'], ['task:17.a']])(
	'the task id may be `data` itself: %s',
	(data) => {
		expect(findTaskId({ code: 200, msg: 'success', data })).toBe(data);
	},
);

it.each<[boolean, object]>([
	[true, { code: 400, data: { taskId: 't1', successFlag: 3 } }],
	[true, { code: 400, data: { task: { state: 'PENDING' } } }],
	[false, { code: 429, data: { list: [{ taskId: 't1' }] } }],
	[false, { code: 429, data: { limits: { state: 'full' } } }],
	[false, { code: 429, data: 't1' }],
])('that an answer is of a task is %j for %j', (isOf, answer) => {
	expect(isOfTask(answer)).toBe(isOf);
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
	const message = 'Too long, '.repeat(10_000);
	expect(findServiceMessage({ message })).toBe(`${message.slice(0, 500)}… (99999 characters)`);
});

it('looks no deeper than four levels, so that a body cannot send it astray', () => {
	const nested = (depth: number): unknown => (depth === 0 ? 'deep' : { error: nested(depth - 1) });
	expect(findServiceMessage(nested(4))).toBe('deep');
	expect(findServiceMessage(nested(5))).toBeUndefined();
});
