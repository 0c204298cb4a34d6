import type { TaskEntry } from '../../../nodes/MediaGeneration/create/taskEntry';
import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import { retryOf } from '../../../nodes/MediaGeneration/run/retryFailed';
import type { FailedTask } from '../../../nodes/MediaGeneration/service/taskRecord';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { SECOND } from '../../durations';
import { plan as creates } from '../create/makers';
import { caught } from '../support';

const NOW = 100 * SECOND;

const plan = (retryFailed?: number): CreatePlan =>
	creates(retryFailed === undefined ? {} : { retryFailed });

const failed = (creditsConsumed: number | null = 0): FailedTask => ({
	taskId: 'task-1',
	state: 'FAILURE',
	creditsConsumed,
	record: {},
	reason: 'Overloaded',
});

/** A task of ten seconds, after so many others that failed. */
const entry = (before = 0, until = 600 * SECOND): TaskEntry => ({
	...{ state: 'created', taskId: 'task-1', createdAt: 90 * SECOND, until },
	failed: Array.from({ length: before }, (_, index) => `earlier-${index}`),
});

const again = (item: CreatePlan, of = entry(), task = failed()) => retryOf(item, of, task, {}, NOW);

it('pauses longer each time', () => {
	const pauses = [0, 1, 2, 3, 4].map((before) => again(plan(5), entry(before)).at - NOW);
	expect(pauses).toEqual([5, 10, 20, 40, 80].map((seconds) => seconds * SECOND));
});

it('leaves the next task as much time as this one took', () => {
	expect(again(plan(5)).until).toBe(590 * SECOND);
	const justInTime = again(plan(5), entry(0, 115 * SECOND));
	expect(justInTime).toMatchObject({ at: 105 * SECOND, until: 105 * SECOND });
});

it('names the failure where another task comes to nothing', () => {
	expect(again(plan(1)).failure).toMatchObject({
		message: 'Overloaded (task task-1)',
		description: expect.stringContaining('not created again in time') as string,
	});
});

it.each<[string, Parameters<typeof again>, RegExp]>([
	['nobody asks for it', [plan()], /'Retry Failed Tasks' creates it again/],
	['it is switched off', [plan(0)], /'Retry Failed Tasks' creates it again/],
	['it was often enough', [plan(2), entry(2)], /3 tasks of this item have failed/],
	['the time is short', [plan(2), entry(0, 114 * SECOND)], /too little time was left/],
	['a failed task is billed', [plan(2), entry(), failed(8)], /charged 8 credits/],
])('creates none where %s, and says so', async (_what, given, why) => {
	const error = ItemError.from(await caught(async () => again(...given)));
	expect(error.message).toBe('Overloaded (task task-1)');
	expect(error.description).toMatch(/Change the prompt or the input of this item/);
	expect(error.description).toMatch(why);
	expect(error.task).toMatchObject({ taskId: 'task-1', state: 'FAILURE' });
});

it('takes it for free where the service does not say what a failed task costs', () => {
	expect(again(plan(1), entry(), failed(null))).toMatchObject({ at: 105 * SECOND });
});
