import type { IExecuteFunctions } from 'n8n-workflow';

import { settled } from '../shared/promises';
import { internalsOf } from './internals';

/**
 * Does a piece of work when the execution has ended, and n8n has stored its end. Until then a kill of n8n takes away what
 * the execution knows. An execution that was stopped is stored without its last turn, so it does not count as ended.
 * If the execution sleeps after the end of this run of the node, in a later round of a loop, the end is stored as well.
 *
 * It relies on n8n's lifecycle hooks, which run in the order in which they were added (n8n 2.41), shown by
 * test/e2e/restart.test.ts.
 *
 * @param isRunEnded whether this run of the node has ended
 * @param work may fail without effect on the execution
 */
export function whenEndIsStored(
	context: IExecuteFunctions,
	isRunEnded: () => boolean,
	work: () => Promise<void>,
): void {
	const { hooks } = internalsOf(context).additionalData ?? {};
	hooks?.addHandler?.('workflowExecuteAfter', async ({ status }) => {
		const isStored = ['success', 'error'].includes(status);
		if (isStored || (status === 'waiting' && isRunEnded())) await settled(work());
	});
}
