import { CreatedTaskList } from '../../../nodes/MediaGeneration/report/createdTaskList';

it('names every task with its state, in the order of creation', () => {
	const list = new CreatedTaskList(['earlier']);
	for (const id of ['a', 'b', 'c']) list.add(id);
	list.note('b', 'SUCCESS');
	list.note('unknown', 'SUCCESS');
	expect(list.describe()).toBe(
		'Tasks created by this run, which the operation Task → Wait fetches: not read again: earlier; PENDING: a, c; SUCCESS: b.',
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
