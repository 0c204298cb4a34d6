import { PaidTaskList } from '../../../nodes/MediaGeneration/report/paidTaskList';

it('names every task by what it means for the money, paid ones first', () => {
	const list = new PaidTaskList(['earlier']);
	for (const id of ['a', 'b', 'c', 'd']) list.add(id);
	list.note('b', 'SUCCESS');
	list.note('unknown', 'SUCCESS');
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

it('names 50,000 tasks in milliseconds', () => {
	const list = new PaidTaskList(Array.from({ length: 50_000 }, (_, index) => `task-${index}`));
	const start = performance.now();
	expect(list.describe()?.length).toBeGreaterThan(500_000);
	expect(performance.now() - start).toBeLessThan(500);
});
