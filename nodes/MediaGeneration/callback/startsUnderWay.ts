import type { IExecuteFunctions } from 'n8n-workflow';

import { executionIdOf } from '../n8n/internals';
import { ExpiringCache } from '../shared/clock';
import { LONGEST_SLEEP_MS } from '../wait/nextWake';

/** Longer than the longest sleep: n8n may wake an execution a minute late. */
const MAX_AGE_MS = LONGEST_SLEEP_MS + 5 * 60_000;

interface UnderWay {
	callbackId: string;
	executionId: string;
}

const underWay = new ExpiringCache<UnderWay>(MAX_AGE_MS);

/**
 * What the executions of this process are about to start: they download results, or sleep because the media host is in
 * trouble. This only saves the work of a second execution for the same task: the ledger decides.
 */
export const startsUnderWay = {
	/**
	 * @param key names the trigger node and the task, as `keyInProcess` does
	 * @param callbackId names the execution in all its tries
	 * @returns whether no other execution is about to start the workflow for the task
	 */
	async begin(context: IExecuteFunctions, key: string, callbackId: string): Promise<boolean> {
		const executionId = String(executionIdOf(context));
		const other = underWay.get(key);
		if (other !== undefined && other.callbackId !== callbackId) {
			const data = await context.getExecutionDataById(other.executionId);
			// Somebody may have stopped or deleted an execution that slept.
			if (data !== undefined && data.resultData.error === undefined) {
				const { name } = context.getNode();
				context.logger.info(
					`${name}: execution ${other.executionId} downloads these results already`,
				);
				return false;
			}
		}
		underWay.set(key, { callbackId, executionId });
		return true;
	},

	end(key: string, callbackId: string): void {
		if (underWay.get(key)?.callbackId === callbackId) underWay.delete(key);
	},
};
