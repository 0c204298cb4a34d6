import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/planTypes';

/** A task to create, as it was planned. */
export const plan = (more: Partial<CreatePlan> = {}): CreatePlan => ({
	kind: 'create',
	itemIndex: 0,
	part: 0,
	pollIntervalMs: 2000,
	timeoutMs: 600_000,
	patienceMs: 600_000,
	output: { download: false, split: false, binaryField: 'data' },
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
