import { PaidTaskList } from '../../../nodes/MediaGeneration/report/paidTaskList';

it('names every task by what it means for the money, paid ones first', () => {
	const list = new PaidTaskList(['earlier']);
	for (const id of ['a', 'b', 'c', 'd']) list.note(id, 'PENDING');
	list.note('b', 'SUCCESS');
	list.note('d', 'FAILURE');
	const wait = 'Task → Wait fetches the results without paying again';
	expect(list.describe()).toBe(
		[
			'1 task succeeded and is paid for. Task → Get fetches the results without paying again: b.',
			`2 tasks are not finished, and are billed if they succeed. ${wait}: a, c.`,
			`1 task was created in an earlier try. ${wait}: earlier.`,
			'1 task failed, which is usually free: d.',
		].join(' '),
	);
});

it('is nothing where no task was created', () => {
	expect(new PaidTaskList([]).describe()).toBeUndefined();
});

it('names 200,000 tasks in a time that grows with their number alone', () => {
	const list = new PaidTaskList(Array.from({ length: 200_000 }, (_, index) => `task-${index}`));
	const start = performance.now();
	expect(list.describe()?.length).toBeGreaterThan(2_000_000);
	// In the square of it, it would be minutes.
	expect(performance.now() - start).toBeLessThan(10_000);
});
