import type { NodeExecutionHint } from 'n8n-workflow';

import type { TaskPlan } from '../plan/taskPlan';
import type { ItemResult } from '../report/outcome';
import type { Clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';

const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;

/** How long the tasks of one run take. */
export class BatchTimes {
	private readonly taskMs: number[] = [];

	private readonly startedAt: number;

	private endedAt: number;

	constructor(
		private readonly clock: Clock,
		private readonly maxInFlight: number,
	) {
		this.startedAt = clock.now();
		this.endedAt = this.startedAt;
	}

	/** @param createdAt when the task was created that is found finished now, by the clock */
	finished(createdAt: number): void {
		this.endedAt = this.clock.now();
		this.taskMs.push(this.endedAt - createdAt);
	}

	/** Says what a higher limit would have brought, where nothing but this limit held the batch back. */
	hint(): NodeExecutionHint | undefined {
		const { taskMs, maxInFlight } = this;
		const tookMs = this.endedAt - this.startedAt;
		const faster = higherLimitSaves({ taskMs, tookMs, maxInFlight });
		if (faster === undefined) return undefined;
		return {
			message: `${taskMs.length} tasks took ${seconds(tookMs)}, ${maxInFlight} at a time, and the service refused none. With 'Max Tasks at the Same Time' at ${faster.maxInFlight} they would have taken about ${seconds(faster.wouldTakeMs)}.`,
			location: 'outputPane',
		};
	}
}

/** Says how to see results that were not downloaded, before somebody orders them again for it. */
export function seeHint(
	items: ReadonlyArray<TaskPlan | ItemError>,
	results: ReadonlyArray<ItemResult | undefined>,
): NodeExecutionHint | undefined {
	const isThere = items.some((item, index) => {
		const result = results[index];
		if (item instanceof ItemError || item.kind !== 'create' || item.output.download) return false;
		if (result === undefined || result instanceof ItemError) return false;
		return result.some(({ json }) => json.state === 'SUCCESS');
	});
	if (!isThere) return undefined;
	return {
		message:
			"Pin this output before you build the next steps; then nothing is ordered again. To see these results: Task → Get with 'Download Results', and 'taskId' as 'Task ID'.",
		location: 'outputPane',
	};
}

/** What is worth a hint: so much of the time, and so many milliseconds. */
const WORTH_SHARE = 0.25;
const WORTH_MS = 15_000;

/** So many times the present value at most: how much the account allows is not known. */
const MAX_FACTOR = 4;

/** A batch that is over. */
export interface Batch {
	/** How long each task took from its creation until it was found finished, milliseconds. */
	taskMs: readonly number[];
	/** How long all of them took together, milliseconds. */
	tookMs: number;
	/** How many were under way at once at most. */
	maxInFlight: number;
}

/**
 * What a higher *Max Tasks at the Same Time* would have brought a batch of which nothing was refused.
 *
 * @returns the value to try, and how long the batch would have taken with it at best, in milliseconds; undefined where
 *   it is not worth a word
 */
export function higherLimitSaves({
	taskMs,
	tookMs,
	maxInFlight,
}: Batch): { maxInFlight: number; wouldTakeMs: number } | undefined {
	const higher = Math.min(taskMs.length, maxInFlight * MAX_FACTOR);
	if (higher <= maxInFlight) return undefined;
	const sum = taskMs.reduce((total, ms) => total + ms, 0);
	const longest = taskMs.reduce((most, ms) => Math.max(most, ms), 0);
	const wouldTakeMs = Math.max(longest, sum / higher);
	const savedMs = tookMs - wouldTakeMs;
	if (savedMs < WORTH_MS || savedMs < tookMs * WORTH_SHARE) return undefined;
	return { maxInFlight: higher, wouldTakeMs };
}
