import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { storedRun } from '../create/executionsBefore';
import type { Journal } from '../create/journal';
import type { TurnId } from '../create/storedJournal';
import { whenEndIsStored } from '../n8n/executionEnd';
import { askUntilAnswered } from '../n8n/storeAnswers';
import { noteWoken } from '../n8n/stretch';
import { TurnRow } from '../n8n/turnRow';
import { noteWake } from '../n8n/wakes';
import { isNearLimit } from '../plan/planWait';
import { clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import { suspend } from './endTurn';
import { hint, showHints } from './runHints';
import { OUTDATED, refuseOutdated, settleDoubts, takeOver } from './takeOver';

/** After this time a turn is stored or dead, milliseconds. */
const LONGEST_TURN_MS = 10 * 60_000;

/**
 * Begins a turn of a run that was asleep. A turn that only reads writes nothing to n8n's store.
 *
 * @returns what `execute` returns, if the run sleeps on; undefined if the turn has begun
 * @throws ItemError if this execution may not order
 */
export async function wakeUp(
	context: IExecuteFunctions,
	journal: Journal,
	row: TurnRow,
): Promise<INodeExecutionData[][] | undefined> {
	noteWoken(context, journal.executionStartedAt);
	const { wakeAt } = journal.lastSleep;
	if (wakeAt !== undefined) noteWake(wakeAt);
	await settleDoubts(context, journal);
	if (journal.mayOrder) {
		const asleep = await beginTurn(context, journal, row);
		if (asleep) return asleep;
		await orderAfter(context, journal, row);
	}
	// A turn that only reads leaves the rows to the end, but for the row that all first turns share: it says that nothing is stored.
	if (row.hasBegun || journal.rows.some(([, turn]) => turn === 0)) {
		await settled(clear(context, journal.dropEarlierRows()));
	}
	// n8n keeps the hints of the last turn.
	showHints(context, ...journal.settings.warnings.map((each) => hint(each, 'warning')));
	return undefined;
}

/**
 * Begins a turn in which something happens that must not happen twice. n8n wakes some executions twice, under one id and
 * from the same stored state: then one of them has written the row of the turn, and the other one stands aside. When it
 * wakes, it goes on from that turn as a retry does.
 */
async function beginTurn(
	context: IExecuteFunctions,
	journal: Journal,
	row: TurnRow,
): Promise<INodeExecutionData[][] | undefined> {
	// The run stays awake while n8n's store fails: n8n would not store a sleep, and never wake the run.
	const hasBegun = await askUntilAnswered(async () => await row.begin());
	if (!hasBegun) {
		// n8n keeps what is stored last: this state is stored at once, and that of the other wake when its turn ends. If it is
		// the other way round, the state is out of date, which the next turn notices.
		const wakeAt = clock.now() + LONGEST_TURN_MS;
		journal.standAside(row.turn, wakeAt);
		return await suspend(context, journal, wakeAt);
	}
	journal.noteRow();
	return undefined;
}

/** Takes over what the turns before have begun. @throws ItemError if this execution may not order */
async function orderAfter(
	context: IExecuteFunctions,
	journal: Journal,
	row: TurnRow,
): Promise<void> {
	const taken = await settled(takeOver(context, journal, row));
	if ('value' in taken) return;
	if (row.hasBegun) await settled(row.clear());
	throw taken.error;
}

/**
 * Writes the row of a turn that only read, so that of two wakes one lets the items out.
 *
 * @returns what `execute` returns, if the run sleeps on; undefined if the items may leave
 * @throws ItemError if the other wake has let the items out
 */
export async function beforeItemsLeave(
	context: IExecuteFunctions,
	journal: Journal,
	row: TurnRow,
): Promise<INodeExecutionData[][] | undefined> {
	if (journal.beginning !== 'woken' || row.hasBegun) return undefined;
	const asleep = await beginTurn(context, journal, row);
	if (asleep) return asleep;
	await refuseOutdated(context, journal);
	// The row of the other wake may be gone: then n8n has stored the end of its turn.
	const stored = await storedRun(context, row.execution);
	if (stored && (stored.turn > row.turn || !stored.isAsleep)) throw OUTDATED;
	return undefined;
}

/**
 * Settles, before a run that was planned anew orders anything, whether it may: another execution may order the same. A
 * retry sleeps first: from then on a kill leaves of it what a kill of every run leaves.
 *
 * @returns what `execute` returns, if the run sleeps first
 * @throws ItemError if it may not
 */
export async function beginOrders(
	context: IExecuteFunctions,
	journal: Journal,
	row: TurnRow,
): Promise<INodeExecutionData[][] | undefined> {
	if (!journal.mayOrder) return undefined;
	const { settings } = journal;
	const maySleep = settings.suspendAfterMs < Infinity && !isNearLimit(settings.limitAt);
	if (isRetry(journal) && maySleep) {
		const wakeAt = clock.now();
		journal.takeUp();
		journal.fallAsleep(wakeAt);
		showHints(context, hint('This retry is stored first. It goes on in about a minute.'));
		return await suspend(context, journal, wakeAt);
	}
	if (journal.beginning === 'first') await refuseLost(context, journal, row);
	await row.begin();
	journal.noteRow();
	await orderAfter(context, journal, row);
	return undefined;
}

/** @throws ItemError if an execution that this one goes on from has begun to order, and n8n has stored nothing of that */
async function refuseLost(
	context: IExecuteFunctions,
	journal: Journal,
	row: TurnRow,
): Promise<void> {
	for (const { execution } of journal.before) {
		if (!(await new TurnRow(context, 0, execution).isBegun())) continue;
		// If this execution is killed at a later node, n8n tells its retry nothing of the first execution.
		await row.begin();
		journal.noteRow();
		journal.isLost = true;
		throw LOST;
	}
}

const LOST = new ItemError(
	'The execution that is retried was stopped or killed, and n8n has not kept what it created',
	{
		description:
			'No task was created now: a retry would order each task again. Take the task ids from n8n\'s log ("created task"), and fetch the results with Wait for Task. To order again all the same, start the workflow anew.',
	},
);

/** Has the rows of the run removed when its end is stored. */
export function clearAtEnd(context: IExecuteFunctions, journal: Journal): void {
	whenEndIsStored(
		context,
		() => journal.isEnded,
		async () => await clear(context, journal.rows),
	);
}

async function clear(context: IExecuteFunctions, rows: readonly TurnId[]): Promise<void> {
	for (const [execution, turn] of rows) await new TurnRow(context, turn, execution).clear();
}

/** Whether another execution has written the journal. */
export const isRetry = ({ beginning }: Journal): boolean =>
	beginning === 'killed' || beginning === 'retried';
