import { type IExecuteFunctions, type INodeExecutionData, UserError } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import { isToCreate } from '../create/taskEntry';
import { claimRetry, refuseIfRetried } from '../n8n/retryClaim';
import { TurnLease } from '../n8n/turnLease';
import { clock } from '../shared/clock';
import { settled } from '../shared/promises';
import { standBesideTwin } from './twin';

/** How often a turn asks n8n's store while it fails, and the pause between two tries, milliseconds. */
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
	const ask = async <T>(question: () => Promise<T>) => await askStore(context, question);
	if (isRetry && journal.entries().some(isToCreate)) {
		await ask(async () => await claimRetry(context));
	}
	if (beginning === 'killed') {
		const turn = new TurnLease(context, sleeps, earlier);
		journal.takeOver(await ask(async () => await turn.hadBegun()));
	}
	if (beginning === 'again' && isLater) void lease.stayAlive();
	if (beginning === 'woken') {
		const begin = async () => await ask(async () => await lease.begin());
		let begun = await begin();
		while (begun === 'underWay') {
			const asleep = await standBesideTwin(context, journal, lease);
			if (asleep) return asleep;
			begun = await begin();
		}
		if (begun === 'dead') journal.takeOver(true);
		if (journal.entries().some(isToCreate)) {
			await ask(async () => await refuseIfRetried(context));
		}
	}
	journal.takeUp();
	return undefined;
}

/**
 * Asks n8n's store, which may fail for a moment: that must not end a run whose tasks are paid for.
 *
 * @throws UserError if the answer is a refusal; the database's error if the store goes on failing
 */
async function askStore<T>(context: IExecuteFunctions, question: () => Promise<T>): Promise<T> {
	for (let tries = 1; ; tries++) {
		const asked = await settled(question());
		if ('value' in asked) return asked.value;
		if (asked.error instanceof UserError || tries === MOST_TRIES) throw asked.error;
		await clock.sleep(PAUSE_MS, context.getExecutionCancelSignal());
	}
}
