import { RunProgress } from '../../../nodes/MediaGeneration/suspend/runProgress';
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
	const run = new RunProgress(ids(1), '', new FakeClock());
	expect(await run.isComplete('task-0', read)).toBe(true);
	expect(reads).toEqual([]);
});

it('one task that is found pending is proof that the run is not finished', async () => {
	const { read, reads } = service(...ids(500).slice(0, -1));
	const run = new RunProgress(ids(500), '', new FakeClock());
	await run.isComplete('task-0', read);
	// 1, 2, 4, … at once, up to the one that is pending.
	expect(new Set(reads).size).toBe(reads.length);
	expect(await run.isComplete('task-499', read)).toBe(true);
});

it('500 callbacks cost fewer reads than there are tasks', async () => {
	const clock = new FakeClock();
	const { read, reads, finish } = service();
	const run = new RunProgress(ids(500), '', clock);
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
	const run = new RunProgress(ids(4), '', new FakeClock());
	const answers = await Promise.all(
		['task-0', 'task-1', 'task-0', 'task-1'].map(async (id) => await run.isComplete(id, read)),
	);
	expect(answers).toEqual([false, false, false, false]);
	expect(reads.length).toBeLessThanOrEqual(2);
});

it('the last of the callbacks that are not lost sees that all are finished', async () => {
	const { read, finish } = service();
	const run = new RunProgress(ids(3), '', new FakeClock());
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
	const run = new RunProgress(ids(2), '', clock);
	for (let count = 0; count < 10; count++) await run.isComplete('task-0', read);
	expect(reads).toHaveLength(10);
	expect(clock.now()).toBeGreaterThanOrEqual(9 * 2000);
});

it('a read that does not work is the trouble of whoever asks', async () => {
	const run = new RunProgress(ids(2), '', new FakeClock());
	const read = async () => await Promise.reject(new Error('down'));
	await expect(run.isComplete('task-0', read)).rejects.toThrow('down');
});
