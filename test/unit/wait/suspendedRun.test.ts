import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/itemPlan';
import { CreatedTaskList } from '../../../nodes/MediaGeneration/report/createdTaskList';
import { ReadPace } from '../../../nodes/MediaGeneration/wait/readPace';
import { SuspendedRun } from '../../../nodes/MediaGeneration/wait/suspendedRun';
import type { TaskReader } from '../../../nodes/MediaGeneration/wait/taskReader';
import { FakeClock } from '../support';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

it('is given up a quarter of an hour after the longest timeout of 150,000 items, by the calendar', () => {
	const clock = new FakeClock();
	const reader = { read: async () => await Promise.reject(new Error()) } as unknown as TaskReader;
	const pace = new ReadPace(clock, 2000, 10);
	const now = Date.UTC(2026, 0, 1);
	const run = new SuspendedRun(reader, new CreatedTaskList([]), pace, clock, () => now);
	for (let itemIndex = 0; itemIndex < 150_000; itemIndex++) {
		const item = { itemIndex, timeoutMs: itemIndex === 70_000 ? HOUR : 1000 } as CreatePlan;
		run.add({ item, taskId: `task-${itemIndex}`, json: {} });
	}
	expect(run.giveUpAt().getTime()).toBe(now + HOUR + 15 * MINUTE);
});
