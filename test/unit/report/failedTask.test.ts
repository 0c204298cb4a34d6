import { ofTask } from '../../../nodes/MediaGeneration/report/taskItems';

it.each([
	['5', 'The service is not working at the moment (HTTP 500)', 'Task 5: The service is not'],
	['a', 'The service gave no complete answer', 'Task a: The service gave'],
	['5', 'The service knows no task 5 for this account (HTTP 404)', 'The service knows no task 5'],
	['5', 'Task 5 failed at the service', 'Task 5 failed'],
])('an error of the task %s names it once: %s', (taskId, message, expected) => {
	expect((ofTask(new Error(message), taskId, {}) as Error).message).toMatch(
		new RegExp(`^${expected}`),
	);
});
