import { CreatedTaskList } from '../../../nodes/MediaGeneration/report/createdTaskList';

it('names every task by what it means for the money, paid ones first', () => {
	const list = new CreatedTaskList(['earlier']);
	for (const id of ['a', 'b', 'c', 'd']) list.add(id);
	list.note('b', 'SUCCESS');
	list.note('unknown', 'SUCCESS');
	list.note('d', 'FAILURE');
	const wait =
		"Fetch them without paying again: operation Task → Wait, with these ids in 'Task ID'.";
	expect(list.describe()).toBe(
		[
			"1 task succeeded and is paid for: b. Get the results without paying again: operation Task → Get, with these ids in 'Task ID'.",
			`2 tasks are not finished, and are billed if they succeed: a, c. ${wait}`,
			`1 task was created in an earlier try: earlier. ${wait}`,
			'1 task failed, which is usually free: d.',
		].join(' '),
	);
});

it('is nothing where no task was created', () => {
	expect(new CreatedTaskList([]).describe()).toBeUndefined();
});

it('names 50,000 tasks in milliseconds', () => {
	const list = new CreatedTaskList(Array.from({ length: 50_000 }, (_, index) => `task-${index}`));
	const start = performance.now();
	expect(list.describe()?.length).toBeGreaterThan(500_000);
	expect(performance.now() - start).toBeLessThan(500);
});
