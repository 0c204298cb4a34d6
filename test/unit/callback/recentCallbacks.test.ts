import { RecentTasks } from '../../../nodes/MediaGeneration/callback/recentCallbacks';
import { FakeClock } from '../support';

it('knows nothing of a task at first', () => {
	const recent = new RecentTasks();
	expect([recent.has('a'), recent.earlier('a')]).toEqual([false, undefined]);
});

it('tells the callbacks that wait what became of the first', async () => {
	const recent = new RecentTasks();
	const settle = recent.begin('a');
	const waiting = [recent.earlier('a'), recent.earlier('a')];
	settle('stored');
	expect(await Promise.all(waiting)).toEqual(['stored', 'stored']);
});

it('remembers a task whose execution is stored', () => {
	const recent = new RecentTasks();
	recent.begin('a')('stored');
	expect([recent.has('a'), recent.earlier('a')]).toEqual([true, undefined]);
});

it('forgets it after ten minutes, so that the ledger is asked again', () => {
	const clock = new FakeClock();
	const recent = new RecentTasks(clock);
	recent.begin('a')('stored');
	clock.pass(10 * 60_000 - 1);
	expect(recent.has('a')).toBe(true);
	clock.pass(1);
	expect(recent.has('a')).toBe(false);
	recent.begin('a')('stored');
	expect(recent.has('a')).toBe(true);
});

it.each(['notStored', { status: 503, body: {} }] as const)(
	'forgets a task of which %j became',
	(outcome) => {
		const recent = new RecentTasks();
		recent.begin('a')(outcome);
		expect([recent.has('a'), recent.earlier('a')]).toEqual([false, undefined]);
	},
);

it('keeps tasks apart', () => {
	const recent = new RecentTasks();
	recent.begin('a')('stored');
	expect([recent.has('b'), recent.earlier('b')]).toEqual([false, undefined]);
});

it('remembers the last ten thousand, and forgets the oldest first', () => {
	const recent = new RecentTasks();
	for (let index = 0; index <= 10_000; index++) recent.begin(`task-${index}`)('stored');
	expect([recent.has('task-0'), recent.has('task-1'), recent.has('task-10000')]).toEqual([
		false,
		true,
		true,
	]);
});
