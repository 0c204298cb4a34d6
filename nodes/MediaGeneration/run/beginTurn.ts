import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import { isToCreate } from '../create/taskEntry';
import { claimRetry, refuseIfRetried } from '../n8n/retryClaim';
import { TurnLease } from '../n8n/turnLease';
import { clock } from '../shared/clock';
import { settled } from '../shared/promises';
import { standBesideTwin } from './twin';

/** How often a turn tries to begin while n8n's store fails, and the pause between two tries, milliseconds. */
const MOST_TRIES = 5;
const PAUSE_MS = 5_000;

/**
 * Settles, before a turn creates anything, what it may create: another turn or another execution may have begun with the
 * same stored state.
 *
 * @returns what `execute` returns, if n8n runs this very turn a second time; undefined if the turn has begun
 * @throws UserError if another execution may create the tasks of this run
 */
export async function beginTurn(
	context: IExecuteFunctions,
	journal: Journal,
	lease: TurnLease,
): Promise<INodeExecutionData[][] | undefined> {
	const { beginning, earlier, isLater, sleeps } = journal;
	const isRetry = beginning === 'killed' || beginning === 'retried';
	if (isRetry && journal.entries().some(isToCreate)) await claimRetry(context);
	if (beginning === 'killed') {
		journal.takeOver(await new TurnLease(context, sleeps, earlier).hadBegun());
	}
	if (beginning === 'again' && isLater) void lease.stayAlive();
	if (beginning === 'woken') {
		let begun = await beginLease(context, lease);
		while (begun === 'underWay') {
			const asleep = await standBesideTwin(context, journal, lease);
			if (asleep) return asleep;
			begun = await beginLease(context, lease);
		}
		if (begun === 'dead') journal.takeOver(true);
		if (journal.entries().some(isToCreate)) await refuseIfRetried(context);
	}
	journal.takeUp();
	return undefined;
}

/** n8n's store may fail for a moment: that must not end a run whose tasks are paid for. @throws the database's error */
async function beginLease(context: IExecuteFunctions, lease: TurnLease) {
	for (let tries = 1; ; tries++) {
		const begun = await settled(lease.begin());
		if ('value' in begun) return begun.value;
		if (tries === MOST_TRIES) throw begun.error;
		await clock.sleep(PAUSE_MS, context.getExecutionCancelSignal());
	}
}
