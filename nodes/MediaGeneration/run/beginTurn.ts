import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import { errorOf, isToOrder, placeOf, type StoredError, storedError } from '../create/taskEntry';
import { whenEndIsStored } from '../n8n/executionEnd';
import { retriedBy } from '../n8n/internals';
import { NOTHING_ORDERED, TurnRow } from '../n8n/turnRow';
import { askUntilAnswered } from '../n8n/storeAnswers';
import { noteWoken } from '../n8n/stretch';
import { noteWake } from '../n8n/wakes';
import { clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import { suspend } from './endTurn';
import { hint, showHints } from './runHints';

/** After this time a turn is stored or dead, milliseconds. */
const LONGEST_TURN_MS = 10 * 60_000;

/**
 * Begins a turn of a run that was asleep. n8n wakes some executions twice, under one id and from the same stored state: then
 * one of them has written the row of the turn, and the other one stands aside.
 *
 * @returns what `execute` returns, if the run sleeps on; undefined if the turn has begun
 * @throws ItemError if n8n has kept the state of the wake that stood aside, and the other one has ended its turn
 */
export async function wakeUp(
	context: IExecuteFunctions,
	journal: Journal,
	row: TurnRow,
): Promise<INodeExecutionData[][] | undefined> {
	noteWoken(context, journal.startedAt);
	const { wakeAt } = journal.lastSleep;
	if (wakeAt !== undefined) noteWake(wakeAt);
	// The run stays awake while n8n's store fails: n8n would not store a sleep, and never wake the run.
	const hasBegun = await askUntilAnswered(async () => await row.begin());
	if (!hasBegun && !journal.isAside) {
		// What the other wake stores at the end of its turn takes the place of what is stored here.
		journal.isAside = true;
		return await suspend(context, journal, clock.now() + LONGEST_TURN_MS);
	}
	if (hasBegun && journal.isAside) {
		await row.clear();
		throw OUTDATED;
	}
	// Nobody has stored the turn: its process is dead.
	if (!hasBegun) journal.putInDoubt(await row.notesOf(placesToOrder(journal)), row.execution);
	// n8n keeps the hints of the last turn.
	showHints(context, ...journal.settings.warnings.map((each) => hint(each, 'warning')));
	return undefined;
}

/**
 * Takes over what another execution has begun: of several retries one orders what is left. What a killed or stopped turn
 * may have sent is in doubt. A look at the notes disturbs a turn that writes notes, so only the retry with the claim looks,
 * and a turn looks for the claim after each of its notes.
 *
 * @returns gives the claim back, if nothing is ordered after all
 */
export async function takeOver(
	context: IExecuteFunctions,
	journal: Journal,
): Promise<() => Promise<void>> {
	const retried = retriedBy(context);
	if (journal.refusal) return async () => undefined;
	const claimed =
		retried === undefined ? undefined : await claimedByOther(context, journal, retried);
	if (claimed !== undefined) {
		journal.refusal = storedError(anotherRetry(claimed));
		return async () => undefined;
	}
	const places = placesToOrder(journal);
	// Only a wake that stood aside may have left a state that is out of date.
	let isTurnLeft = !journal.isAside;
	for (const execution of retriedOnes(context, journal)) {
		const row = new TurnRow(context, journal.sleeps, execution);
		journal.putInDoubt(await row.notesOf(places), execution);
		isTurnLeft ||= await row.isBegun();
	}
	if (!isTurnLeft) journal.refusal = storedError(OUTDATED);
	const claimedRow = new TurnRow(context, journal.sleeps, retried ?? journal.earlier);
	return async () => await claimedRow.giveBack();
}

/** @returns the execution that another retry has claimed: the retried one, or the one that the retried one retries */
async function claimedByOther(
	context: IExecuteFunctions,
	{ sleeps, earlier }: Journal,
	retried: string,
): Promise<string | undefined> {
	if (!(await new TurnRow(context, sleeps, retried).claim())) return retried;
	if (earlier === retried) return undefined;
	return (await new TurnRow(context, sleeps, earlier).claim(retried)) ? undefined : earlier;
}

/**
 * The executions that may have sent what this one is about to send: a retry that was killed before it stored anything has
 * left the state of the execution that it retried.
 */
const retriedOnes = (context: IExecuteFunctions, { earlier }: Journal): Set<string> =>
	new Set([earlier, retriedBy(context) ?? earlier]);

/**
 * Settles, before a run that was planned anew orders anything, whether it may: another execution may order the same.
 *
 * @throws ItemError if it may not
 */
export async function beginOrders(
	context: IExecuteFunctions,
	journal: Journal,
	row: TurnRow,
): Promise<void> {
	journal.refusal ??= await refusalOf(context, journal);
	const doubts = journal.entries.flatMap((entry) =>
		entry.doubtIn === undefined ? [] : placeOf(entry),
	);
	await row.begin(doubts);
	if (!journal.refusal) return;
	// A retry of this execution is refused, too, also if n8n is killed before it stores the refusal.
	await row.claim();
	whenEndIsStored(
		context,
		() => true,
		async () => await row.clear({ claim: true }),
	);
	throw errorOf(journal.refusal);
}

/**
 * Why an execution may not order, if it may not: nothing is known of what the retried one has ordered, or another retry
 * orders the same.
 */
async function refusalOf(
	context: IExecuteFunctions,
	{ beginning }: Journal,
): Promise<StoredError | undefined> {
	const retried = retriedBy(context);
	if (retried === undefined || beginning !== 'first') return undefined;
	const row = new TurnRow(context, 0, retried);
	if (await row.isBegun()) return storedError(LOST);
	return (await row.claim()) ? undefined : storedError(anotherRetry(retried));
}

const LOST = new ItemError(
	'The execution that is retried was stopped or killed, and n8n has not kept what it created',
	{
		description:
			'No task was created now: a retry would order each task again. Take the task ids from n8n\'s log ("created task"), and fetch the results with Task → Wait. To order again all the same, start the workflow anew.',
	},
);

const OUTDATED = new ItemError(
	'n8n woke this execution twice, and what n8n has kept of it is out of date',
	{
		description:
			'No task was created now: the other wake may have created them all, and its items may have left. If results are missing, take the task ids from n8n\'s log ("created task"), and fetch them with Task → Wait.',
	},
);

const anotherRetry = (execution: string) =>
	new ItemError(`Another retry of execution ${execution} goes on with its tasks`, {
		description: NOTHING_ORDERED,
	});

/** Removes the rows of a run that n8n needs no more: now those of the turns before, at the end of the execution all. */
export async function clearRows(
	context: IExecuteFunctions,
	journal: Journal,
	row: TurnRow,
): Promise<void> {
	const { beginning, rows, sleeps } = journal;
	// n8n has stored what the turns before have done. What a killed turn has done is stored with this one.
	if (beginning === 'woken') await settled(clear(context, rows));
	const others = [...(beginning === 'woken' ? [] : rows)];
	if (isRetry(journal)) {
		for (const execution of retriedOnes(context, journal)) others.push([execution, sleeps]);
	}
	const mayOrder = journal.entries.some(({ plan }) => plan?.kind === 'create');
	if (mayOrder) others.push([row.execution, row.turn]);
	journal.rows = others;
	if (others.length === 0) return;
	whenEndIsStored(
		context,
		() => journal.isEnded,
		async () => await clear(context, others),
	);
}

async function clear(context: IExecuteFunctions, rows: Journal['rows']): Promise<void> {
	for (const [execution, turn] of rows) await new TurnRow(context, turn, execution).clear();
}

/** Whether another execution has written the journal. */
export const isRetry = ({ beginning }: Journal): boolean =>
	beginning === 'killed' || beginning === 'retried';

const placesToOrder = (journal: Journal): string[] =>
	journal.entries.filter(isToOrder).map(placeOf);
