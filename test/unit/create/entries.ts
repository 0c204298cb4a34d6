import type { TaskEntry } from '../../../nodes/MediaGeneration/create/taskEntry';
import type { CreatePlan, ReadPlan } from '../../../nodes/MediaGeneration/plan/planTypes';

const base = {
	itemIndex: 0,
	taskIndex: 0,
	timeoutMs: 600_000,
	output: { download: false, split: false, binaryField: 'data' },
};

/** A task to create, as it was planned. */
export const plan = (more: Partial<CreatePlan> = {}): CreatePlan => ({
	...base,
	kind: 'create',
	patienceMs: 600_000,
	completion: 'wait',
	model: 'vendor/model',
	input: { prompt: 'A lighthouse' },
	sendsLinks: false,
	isDry: false,
	retryFailed: 0,
	maxCostUsd: 0,
	estimatedCostUsd: undefined,
	...more,
});

/** A task to wait for, as it was planned. */
export const readPlan = (more: Partial<ReadPlan> = {}): ReadPlan => ({
	...base,
	kind: 'read',
	taskId: 'task-1',
	wait: true,
	...more,
});

/** A task that is to be ordered, unless something else is known of it. */
export function entryOf(more: Partial<TaskEntry> = {}): TaskEntry {
	const { itemIndex = 0, taskIndex = 0 } = more.plan ?? more;
	return { itemIndex, taskIndex, plan: plan({ itemIndex, taskIndex }), state: 'free', ...more };
}

/** A task that this run has created. */
export const createdEntry = (more: Partial<TaskEntry> = {}): TaskEntry =>
	entryOf({
		state: 'created',
		taskId: 'task-1',
		sent: { model: 'vendor/model', input: { prompt: 'A lighthouse' } },
		...more,
	});
