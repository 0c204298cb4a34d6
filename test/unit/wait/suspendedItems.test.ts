import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/itemPlan';
import { CreatedTaskList } from '../../../nodes/MediaGeneration/report/createdTaskList';
import type { ItemResult } from '../../../nodes/MediaGeneration/report/outcome';
import { ReadPace } from '../../../nodes/MediaGeneration/wait/readPace';
import { SuspendedItems } from '../../../nodes/MediaGeneration/wait/suspendedItems';
import type { TaskReader } from '../../../nodes/MediaGeneration/wait/taskReader';
import { FakeClock } from '../support';

const HOUR = 3_600_000;

it('suspends for the longest timeout of 150,000 items, by the calendar', async () => {
	const clock = new FakeClock();
	const tasks = { read: async () => await Promise.reject(new Error()) } as unknown as TaskReader;
	const pace = new ReadPace(clock, 2000, 10);
	const suspended = new SuspendedItems(tasks, new CreatedTaskList([]), pace, clock);
	for (let itemIndex = 0; itemIndex < 150_000; itemIndex++) {
		const item = { itemIndex, timeoutMs: itemIndex === 70_000 ? HOUR : 1000 } as CreatePlan;
		suspended.add({ item, taskId: `task-${itemIndex}`, json: {} });
	}
	const results: Array<ItemResult | undefined> = [];
	const before = Date.now();
	const resumeBy = await suspended.settle(false, results);
	expect(results).toHaveLength(150_000);
	expect(resumeBy?.getTime()).toBeGreaterThanOrEqual(before + HOUR);
	expect(resumeBy?.getTime()).toBeLessThanOrEqual(Date.now() + HOUR);
});
