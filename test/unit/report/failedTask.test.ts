import { failureText } from '../../../nodes/MediaGeneration/report/failedTask';

describe('what is said of a failed task', () => {
	it.each([
		['no such colour', 'Task task-1 failed at the service: no such colour'],
		[undefined, 'Task task-1 failed at the service'],
	])('names the reason where there is one (%s)', (reason, text) => {
		expect(failureText({ taskId: 'task-1', reason })).toBe(text);
	});
});
