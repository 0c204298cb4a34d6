import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import { toOrderIn } from '../create/taskEntry';
import { noteWoken, stretchOf, whenEndIsStored } from '../n8n/stretch';
import { askUntilAnswered } from '../n8n/ledgerRow';
import { TurnRow } from '../n8n/turnRow';
import { isNearLimit } from '../plan/planWait';
import { clock, settled } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { suspend } from './endTurn';
import { hint } from './runHints';

/** After this time a turn is stored or dead, as a rule; milliseconds. */
const LONGEST_TURN_MS = 10 * 60_000;

/**
 * Begins a turn of a run that was asleep.
 *
 * @returns what `execute` returns, if the run sleeps on; undefined if the turn has begun
 * @throws ItemError if this execution may not order
 */
export async function wakeUp(
	context: IExecuteFunctions,
	journal: Journal,
): Promise<INodeExecutionData[][] | undefined> {
	noteWoken(context, journal.executionStartedAt);
	const { hasEnded, turn, wakeAt = 0 } = journal.state;
	if (hasEnded) return undefined;
	// n8n stores the newest state in the place of the older one before anything is ordered.
	if (journal.isOutdated) return await suspend(context, journal, Math.max(wakeAt, clock.now()));
	const row = new TurnRow(context, turn);
	await standBack(journal, row);
	// The run stays awake while n8n's store fails: n8n would not store a sleep, and never wake the run.
	if (!(await askUntilAnswered(async () => await row.begin()))) {
		// n8n wakes some executions twice, under one id and from the same stored state. It keeps what is stored last: this
		// state is stored at once, and that of the other wake when its turn ends.
		return await standAside(context, journal);
	}
	// n8n has stored what the turn before has done.
	await settled(clearRows(context, journal));
	journal.noteBegun(1);
	const begun = await settled(async () => {
		// A retry looks for the row of this turn after its claim, so one of the two sees the other.
		await standBack(journal, row);
		if (journal.mayOrder) await takeOver(context, journal);
	});
	if ('error' in begun) {
		// n8n may try the turn once more.
		await settled(clearRows(context, journal));
		throw begun.error;
	}
	// n8n keeps the hints of the last turn.
	context.addExecutionHints(...journal.settings.warnings.map((each) => hint(each, 'warning')));
	return undefined;
}

/** Leaves the turn to another wake of this execution, which has begun it. @returns what `execute` returns */
async function standAside(context: IExecuteFunctions, journal: Journal) {
	const until = clock.now() + LONGEST_TURN_MS;
	journal.standAside(until);
	return await suspend(context, journal, until);
}

/** @throws ItemError if a retry of this execution orders what is left */
async function standBack({ mayOrder }: Journal, row: TurnRow): Promise<void> {
	const isClaimed = mayOrder && (await askUntilAnswered(async () => await row.isClaimed()));
	if (isClaimed) throw await goesOn(row, 'A retry of this execution');
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
): Promise<INodeExecutionData[][] | undefined> {
	if (!journal.mayOrder) return undefined;
	if (journal.beginning === 'first') await refuseLost(context, journal);
	await claimBefore(context, journal);
	const { settings } = journal;
	const maySleep = settings.suspendAfterMs < Infinity && !isNearLimit(settings.limitAt);
	if (journal.beginning === 'retry' && maySleep) {
		const wakeAt = clock.now();
		journal.takeUp();
		journal.sleepFirst(wakeAt);
		context.addExecutionHints(hint('This retry is stored first. It goes on in about a minute.'));
		return await suspend(context, journal, wakeAt);
	}
	const { turn } = journal.state;
	const stretch = stretchOf(context);
	const row = new TurnRow(context, turn);
	if (await row.begin()) {
		journal.noteBegun(1);
		stretch.hasBegun = true;
	}
	// Runs of one turn share a row, and so do the tries of a run. In queue mode, where Redis comes back a moment older, another
	// worker has run this execution (test/e2e/queue.test.ts).
	else if (turn === 0 && !stretch.hasBegun) {
		journal.isLost = true;
		throw LOST;
	}
	// Another wake of this execution is in this round of a loop, or in this node.
	else if (turn > 0 && journal.beginning === 'first') {
		journal.takeUp();
		return await standAside(context, journal);
	}
	// A retry of what sleeps may have begun meanwhile, in another node or an earlier round.
	if (stretch.isStored) await standBack(journal, row);
	await takeOver(context, journal);
	return undefined;
}

/**
 * Of several retries of an execution the first one goes on, in all nodes and rounds. A retry of that one has its claim.
 *
 * @throws ItemError if another retry goes on
 */
async function claimBefore(context: IExecuteFunctions, journal: Journal): Promise<void> {
	const present = context.getExecutionId();
	const before = journal.state.before.map(({ execution }) => execution);
	const chain = [...new Set([...before, present])];
	for (const [index, execution] of chain.slice(0, -1).entries()) {
		if (journal.claimed.includes(execution)) continue;
		const row = new TurnRow(context, 0, execution);
		if (!(await row.claim(chain[index + 1] ?? present))) {
			throw await goesOn(row, `Another retry of execution ${execution}`);
		}
		journal.claimed.push(execution);
	}
}

/**
 * Settles what the turns may have ordered that this run goes on from, and that n8n has not stored: it is in doubt, and is
 * never ordered again.
 */
async function takeOver(context: IExecuteFunctions, journal: Journal): Promise<void> {
	for (const { execution, turn, window = Infinity, hasBegun } of journal.state.before) {
		const windows = await new TurnRow(context, turn, execution).windows();
		if (windows === 0 && !hasBegun) continue;
		// If the rows are gone, nobody knows how many windows the turn has begun.
		const most = windows === 0 ? Infinity : windows * window;
		for (const entry of toOrderIn(journal.entries).slice(0, most)) {
			const costUsd = entry.plan?.kind === 'create' ? entry.plan.estimatedCostUsd : undefined;
			Object.assign(entry, { state: 'sent', doubtIn: execution, costUsd });
		}
	}
	journal.noteSettled();
}

/** @throws ItemError if an execution that this one goes on from has begun to order, and n8n has stored nothing of that */
async function refuseLost(context: IExecuteFunctions, journal: Journal): Promise<void> {
	for (const { execution } of journal.state.before) {
		// A process that died in the next turn may have left the row.
		if (journal.kept.includes(execution)) continue;
		if ((await new TurnRow(context, 0, execution).windows()) === 0) continue;
		// If this execution is killed at a later node, n8n tells its retry nothing of the first execution.
		if (await new TurnRow(context, journal.state.turn).begin()) journal.noteBegun(1);
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

/** @param row of the execution whose orders are claimed */
async function goesOn(row: TurnRow, what: string): Promise<ItemError> {
	const claimant = await settled(row.claimant());
	const id = 'value' in claimant ? claimant.value : undefined;
	const which = id === undefined ? 'that retry' : `execution ${id}`;
	const message = `${what} goes on with its tasks`;
	return new ItemError(id === undefined ? message : `${message}: execution ${id}`, {
		description: `No more tasks were created here: both executions would order the same tasks. If ${which} has failed, retry ${which}. When n8n has just started, it lists some runs as crashed that it wakes by itself: wait a minute before you retry them.`,
	});
}

/** Has the rows of the last turn removed when the end of the run is stored. */
export function clearAtEnd(context: IExecuteFunctions, journal: Journal): void {
	whenEndIsStored(
		context,
		() => journal.isEnded,
		async () => await clearRows(context, journal),
	);
}

async function clearRows(context: IExecuteFunctions, { state: { begun } }: Journal): Promise<void> {
	if (begun) await new TurnRow(context, begun.turn, begun.execution).clear(begun.windows);
}
