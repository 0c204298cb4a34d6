import { RecentTasks } from '../../../nodes/MediaGeneration/callback/recentCallbacks';
import { DUPLICATE } from '../../../nodes/MediaGeneration/callback/webhookAnswer';
import { FakeClock } from '../support';

it('knows nothing of a task at first, and keeps tasks apart', () => {
	const recent = new RecentTasks();
	expect(recent.earlier('a')).toBeUndefined();
	recent.begin('a')(DUPLICATE);
	expect(recent.earlier('b')).toBeUndefined();
});

it('tells the callbacks that wait what became of the first', async () => {
	const recent = new RecentTasks();
	const settle = recent.begin('a');
	const waiting = [recent.earlier('a'), recent.earlier('a')];
	settle(DUPLICATE);
	expect(await Promise.all(waiting)).toEqual([DUPLICATE, DUPLICATE]);
});

it('takes whoever comes for a duplicate, until ten minutes after the execution was stored', async () => {
	const clock = new FakeClock();
	const recent = new RecentTasks(clock);
	const settle = recent.begin('a');
	clock.pass(60_000);
	settle(DUPLICATE);
	clock.pass(10 * 60_000 - 1);
	expect(await recent.earlier('a')).toBe(DUPLICATE);
	clock.pass(1);
	expect(recent.earlier('a')).toBeUndefined();
});

it.each(['notStored', { status: 503, body: {} }] as const)(
	'forgets a task of which %j became',
	(outcome) => {
		const recent = new RecentTasks();
		recent.begin('a')(outcome);
		expect(recent.earlier('a')).toBeUndefined();
	},
);
