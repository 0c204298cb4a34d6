import { SuspendedRuns } from '../../../nodes/MediaGeneration/suspend/suspendedRuns';
import { parseTaskRecord } from '../../../nodes/MediaGeneration/service/taskRecord';
import { FakeClock } from '../support';

const ids = (count: number) => Array.from({ length: count }, (_, index) => `task-${index}`);

/** A service whose tasks are pending until they are said to be finished. */
function service(...finished: string[]) {
	const done = new Set(finished);
	const reads: string[] = [];
	const read = async (taskId: string) => {
		reads.push(taskId);
		await Promise.resolve();
		return parseTaskRecord(taskId, { state: done.has(taskId) ? 'SUCCESS' : 'PENDING' });
	};
	return { read, reads, finish: (taskId: string) => done.add(taskId) };
}

it('a run of one task is finished with its callback, without a read', async () => {
	const { read, reads } = service();
	const run = new SuspendedRuns(new FakeClock()).begin('1/a', ids(1), '');
	expect(await run.isComplete('task-0', read)).toBe(true);
	expect(reads).toEqual([]);
});

it('one task that is found pending is proof that the run is not finished', async () => {
	const { read, reads } = service(...ids(500).slice(0, -1));
	const run = new SuspendedRuns(new FakeClock()).begin('1/a', ids(500), '');
	await run.isComplete('task-0', read);
	// 1, 2, 4, … at once, up to the one that is pending.
	expect(new Set(reads).size).toBe(reads.length);
	expect(await run.isComplete('task-499', read)).toBe(true);
});

it('500 callbacks cost fewer reads than there are tasks', async () => {
	const clock = new FakeClock();
	const { read, reads, finish } = service();
	const run = new SuspendedRuns(clock).begin('1/a', ids(500), '');
	let complete = 0;
	for (const taskId of ids(500)) {
		finish(taskId);
		clock.pass(100);
		if (await run.isComplete(taskId, read)) complete++;
	}
	expect(complete).toBe(1);
	expect(reads.length).toBeLessThanOrEqual(500);
});

it('callbacks that come together share a check', async () => {
	const { read, reads } = service('task-0', 'task-1');
	const run = new SuspendedRuns(new FakeClock()).begin('1/a', ids(4), '');
	const answers = await Promise.all(
		['task-0', 'task-1', 'task-0', 'task-1'].map(async (id) => await run.isComplete(id, read)),
	);
	expect(answers).toEqual([false, false, false, false]);
	expect(reads.length).toBeLessThanOrEqual(2);
});

it('the last of the callbacks that are not lost sees that all are finished', async () => {
	const { read, finish } = service();
	const run = new SuspendedRuns(new FakeClock()).begin('1/a', ids(3), '');
	finish('task-0');
	expect(await run.isComplete('task-0', read)).toBe(false);
	// The callback of the second is lost.
	finish('task-1');
	finish('task-2');
	expect(await run.isComplete('task-2', read)).toBe(true);
});

it('a pending task is read every two seconds at most', async () => {
	const clock = new FakeClock();
	const { read, reads } = service();
	const run = new SuspendedRuns(clock).begin('1/a', ids(2), '');
	for (let count = 0; count < 10; count++) await run.isComplete('task-0', read);
	expect(reads).toHaveLength(10);
	expect(clock.now()).toBeGreaterThanOrEqual(9 * 2000);
});

it('a read that does not work is the trouble of whoever asks', async () => {
	const run = new SuspendedRuns(new FakeClock()).begin('1/a', ids(2), '');
	const read = async () => await Promise.reject(new Error('down'));
	await expect(run.isComplete('task-0', read)).rejects.toThrow('down');
});

it('is found again by its tasks, and in a loop each round is a run of its own', () => {
	const runs = new SuspendedRuns(new FakeClock());
	const first = runs.begin('1/a', ['task-0'], '');
	expect(runs.find('1/a', 'task-0')).toBe(first);
	expect(runs.find('1/a', 'task-1')).toBeUndefined();
	const second = runs.begin('1/a', ['task-1'], '');
	expect(runs.find('1/a', 'task-1')).toBe(second);
	expect(runs.find('1/a', 'task-0')).toBeUndefined();
});

it('is forgotten an hour after the last callback, and when there are too many', () => {
	const clock = new FakeClock();
	const runs = new SuspendedRuns(clock);
	runs.begin('1/a', ids(2), '');
	clock.pass(3_600_001);
	runs.begin('2/a', ids(2), '');
	expect(runs.find('1/a', 'task-0')).toBeUndefined();
	runs.begin('3/a', ids(15_000), '');
	runs.begin('4/a', ids(15_000), '');
	expect(runs.find('3/a', 'task-0')).toBeUndefined();
	expect(runs.find('4/a', 'task-0')).toBeDefined();
});
