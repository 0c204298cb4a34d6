import type { IExecuteFunctions } from 'n8n-workflow';

import { storedRun } from '../create/executionsBefore';
import type { Journal } from '../create/journal';
import type { TurnId } from '../create/storedJournal';
import { isToOrder, positionOf, type TaskEntry, takeOver as takeTask } from '../create/taskEntry';
import { NOTHING_ORDERED, TurnRow } from '../n8n/turnRow';
import { clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';

/** So long after a run has begun n8n may still store a turn that it goes on from, milliseconds. */
const STORED_WITHIN_MS = 10 * 60_000;

/**
 * Takes over what the turns have begun that this run goes on from: the turn of an execution that it retries, and of an
 * execution that the retried one has retried; or a turn of its own that another wake had. What they may have sent, and n8n
 * has not stored, is in doubt.
 *
 * @param row the row of the present turn
 * @throws ItemError if another retry orders the same, or nothing is known of what was ordered
 */
export async function takeOver(
	context: IExecuteFunctions,
	journal: Journal,
	row: TurnRow,
): Promise<void> {
	const { before } = journal;
	// The nearest first: of two retries of one execution only one comes to the claims that both may have from it.
	for (const { execution, claimant } of before.toReversed()) {
		if (claimant !== undefined && !(await row.claim(execution, claimant))) {
			throw anotherRetry(execution);
		}
	}
	await refuseOutdated(context, journal);
	for (const { execution, turn } of before) {
		const open = await catchUp(context, journal, [execution, turn]);
		if (open === undefined) continue;
		const positions = journal.entries.filter(isToOrder).map(positionOf);
		// A look at the notes disturbs a turn that writes notes, so only who has the claim looks.
		const noted = await new TurnRow(context, open[1], open[0]).notesOf(positions);
		putInDoubt(journal.entries, noted, open);
	}
}

/** @throws ItemError if n8n has kept the state of a wake that stood aside, and the other wake has ended its turn */
export async function refuseOutdated(
	context: IExecuteFunctions,
	{ before }: Journal,
): Promise<void> {
	for (const { execution, turn, hasBegun } of before) {
		if (hasBegun && !(await new TurnRow(context, turn, execution).isBegun())) throw OUTDATED;
	}
}

/**
 * Takes over what n8n has stored, since this run began, of an execution that this run goes on from.
 *
 * @param turn the turn whose end was not known before
 * @returns the turn whose end is not known now; undefined if the execution has ended
 */
async function catchUp(
	context: IExecuteFunctions,
	{ entries }: Journal,
	[execution, turn]: TurnId,
): Promise<TurnId | undefined> {
	const run =
		execution === context.getExecutionId() ? undefined : await storedRun(context, execution);
	if (run === undefined || run.turn < turn || (run.turn === turn && run.isAsleep)) {
		return [execution, turn];
	}
	const known = new Map(run.entries.map((entry) => [positionOf(entry), entry]));
	for (const entry of entries) takeTask(entry, known.get(positionOf(entry)), execution);
	return run.isAsleep ? [execution, run.turn] : undefined;
}

/** @param positions orders that a turn may have sent before it was killed */
function putInDoubt(
	entries: readonly TaskEntry[],
	positions: readonly string[],
	turn: TurnId,
): void {
	for (const entry of entries) {
		if (entry.state !== 'free' || !positions.includes(positionOf(entry))) continue;
		const costUsd = entry.plan?.kind === 'create' ? entry.plan.estimatedCostUsd : undefined;
		Object.assign(entry, { state: 'sent', doubtIn: turn, costUsd });
	}
}

/** Looks whether n8n has stored by now what became of the orders that are in doubt. */
export async function settleDoubts(context: IExecuteFunctions, journal: Journal): Promise<void> {
	if (clock.now() - journal.startedAt > STORED_WITHIN_MS) return;
	const turns = journal.entries.flatMap(({ doubtIn, taskId }) =>
		doubtIn === undefined || taskId !== undefined ? [] : [doubtIn],
	);
	for (const turn of new Map(turns.map((each) => [each.join(), each])).values()) {
		await catchUp(context, journal, turn);
	}
}

export const OUTDATED = new ItemError(
	'n8n woke this execution twice, and what n8n has kept of it is out of date',
	{
		description:
			'No task was created now: the other wake may have created them all, and its items may have left. If results are missing, take the task ids from n8n\'s log ("created task"), and fetch them with Wait for Task.',
	},
);

const anotherRetry = (execution: string) =>
	new ItemError(`Another retry of execution ${execution} goes on with its tasks`, {
		description: NOTHING_ORDERED,
	});
