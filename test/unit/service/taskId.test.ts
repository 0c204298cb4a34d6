import { asTaskId, comparableId, findTaskId } from '../../../nodes/MediaGeneration/service/taskId';

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
