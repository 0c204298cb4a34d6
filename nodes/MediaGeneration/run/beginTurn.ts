import type { IExecuteFunctions } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import { isToCreate } from '../create/taskEntry';
import { claimRetry, refuseIfRetried } from '../n8n/retryClaim';
import { TurnLease } from '../n8n/turnLease';

/**
 * Settles, before a turn creates anything, what it may create: another turn or another execution may have begun with the
 * same stored state.
 *
 * @returns false if another process runs this very turn
 * @throws UserError if another execution may create the tasks of this run
 */
export async function beginTurn(
	context: IExecuteFunctions,
	journal: Journal,
	lease: TurnLease,
): Promise<boolean> {
	const { beginning, earlier, isLater, sleeps } = journal;
	const isRetry = beginning === 'killed' || beginning === 'retried';
	if (isRetry && journal.entries().some(isToCreate)) await claimRetry(context);
	if (beginning === 'killed') {
		journal.takeOver(await new TurnLease(context, sleeps, earlier).hadBegun());
	}
	if (beginning === 'again' && isLater) void lease.stayAlive();
	if (beginning === 'woken') {
		const begun = await lease.begin();
		if (begun === 'underWay') return false;
		if (begun === 'dead') journal.takeOver(true);
		if (journal.entries().some(isToCreate)) await refuseIfRetried(context);
	}
	journal.takeUp();
	return true;
}
