import { retryOf } from '../../../nodes/MediaGeneration/run/createItem';
import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import type { FailedTask } from '../../../nodes/MediaGeneration/service/taskRecord';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { plan as creates } from '../create/makers';
import { caught } from '../support';
import { SECOND } from '../../durations';

const plan = (retryFailed?: number): CreatePlan =>
	creates(retryFailed === undefined ? {} : { retryFailed });

const failed = (creditsConsumed: number | null = 0): FailedTask => ({
	taskId: 'task-1',
	state: 'FAILURE',
	creditsConsumed,
	record: {},
	reason: 'Overloaded',
});

/** A task of ten seconds that has failed now, at 100 s. */
const failure = (more: Partial<Parameters<typeof retryOf>[1]> = {}) => ({
	task: failed(),
	fields: {},
	count: 1,
	createdAt: 90 * SECOND,
	failedAt: 100 * SECOND,
	deadline: 600 * SECOND,
	...more,
});

/** When another task is created. */
function times(...failed: Parameters<typeof retryOf>) {
	const { at, until } = retryOf(...failed);
	return { at, until };
}

it('pauses longer each time', () => {
	const pauses = [1, 2, 3, 4, 5].map(
		(count) => times(plan(5), failure({ count })).at - 100 * SECOND,
	);
	expect(pauses).toEqual([5, 10, 20, 40, 80].map((seconds) => seconds * SECOND));
});

it('leaves the next task as much time as this one took', () => {
	expect(times(plan(5), failure()).until).toBe(590 * SECOND);
	const justInTime = failure({ deadline: 115 * SECOND });
	expect(times(plan(5), justInTime)).toEqual({ at: 105 * SECOND, until: 105 * SECOND });
});

it.each<[string, ...Parameters<typeof retryOf>, RegExp]>([
	['nobody asks for it', plan(), failure(), /'Retry Failed Tasks' creates it again/],
	['it is switched off', plan(0), failure(), /'Retry Failed Tasks' creates it again/],
	['it was often enough', plan(2), failure({ count: 3 }), /3 tasks of this item have failed/],
	['the time is short', plan(2), failure({ deadline: 114 * SECOND }), /too little time was left/],
	['a failed task is billed', plan(2), failure({ task: failed(8) }), /charged 8 credits/],
])('creates none where %s, and says so', async (_what, item, task, why) => {
	const error = ItemError.from(await caught(async () => retryOf(item, task)));
	expect(error.message).toBe('Task task-1 failed at the service: Overloaded');
	expect(error.description).toMatch(/^Change the prompt or the input of this item/);
	expect(error.description).toMatch(why);
	expect(error.task).toMatchObject({ taskId: 'task-1', state: 'FAILURE' });
});

it('takes it for free where the service does not say what a failed task costs', () => {
	expect(times(plan(1), failure({ task: failed(null) }))).toMatchObject({ at: 105 * SECOND });
});
