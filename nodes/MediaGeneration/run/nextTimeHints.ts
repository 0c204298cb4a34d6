import type { NodeExecutionHint } from 'n8n-workflow';

import type { ItemPlan } from '../plan/itemPlan';
import { fasterBatch } from '../report/fasterBatch';
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
		const faster = fasterBatch({ taskMs, tookMs, maxInFlight });
		if (faster === undefined) return undefined;
		return {
			message: `${taskMs.length} tasks took ${seconds(tookMs)}, ${maxInFlight} at a time, and the service refused none. With 'Max Tasks at the Same Time' at ${faster.maxInFlight} they would have taken about ${seconds(faster.wouldTakeMs)}.`,
			location: 'outputPane',
		};
	}
}

/** Says how to see results that were not downloaded, before somebody orders them again for it. */
export function seeHint(
	items: ReadonlyArray<ItemPlan | ItemError>,
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
