import { type IExecuteFunctions, UserError } from 'n8n-workflow';

import { internalsOf } from './internals';
import { LedgerRow } from './ledgerRow';

/** The row with the turns of a run in which tasks may have been created. */
function turnsOf(context: IExecuteFunctions, execution: string): LedgerRow {
	const run = `${execution}.${internalsOf(context).runIndex ?? 0}`;
	return new LedgerRow(context, `turns of ${run}`);
}

/**
 * Marks in n8n's database that a turn begins that may create tasks. Nothing else tells that a turn had begun, and that tasks may have been
 * created: n8n stores nothing of a turn that is killed or stopped. n8n may even wake an execution again that was killed in a
 * turn: from what was stored before that turn, under the same id (shown on n8n 2.41 by test/e2e/overnight.test.ts).
 *
 * @param turn the number of the turn
 * @returns whether the turn had begun before
 */
export const markTurn = async (context: IExecuteFunctions, turn: number): Promise<boolean> =>
	await turnsOf(context, context.getExecutionId()).add(String(turn));

/**
 * Whether a turn of another execution had begun, which was killed or stopped.
 *
 * @param turn the number of the turn; undefined if the turn creates nothing
 */
export const hadBegun = async (
	context: IExecuteFunctions,
	execution: string,
	turn: number | undefined,
): Promise<boolean> => turn !== undefined && (await turnsOf(context, execution).has(String(turn)));

/** The row that the first retry of a run writes. */
const retryOf = (context: IExecuteFunctions, execution: string): LedgerRow =>
	new LedgerRow(context, `retry of ${execution}.${internalsOf(context).runIndex ?? 0}`);

/**
 * Of all retries of an execution only the first one may create tasks: a second retry knows nothing of what the first one
 * has created, and would order the same tasks. The retry of that retry goes on.
 *
 * To be called before `hadBegun`; `refuseIfRetried` comes after `markTurn`. So of an execution and its retry, which n8n may run
 * at the same time, one at least sees the other.
 *
 * @throws UserError if another retry of the same execution may create tasks
 */
export async function claimRetry(context: IExecuteFunctions): Promise<void> {
	const execution = internalsOf(context).additionalData?.hooks?.retryOf;
	if (typeof execution !== 'string') return;
	if (await retryOf(context, execution).insert([])) return;
	throw new UserError(`Another retry of execution ${execution} goes on with its tasks`, {
		description: NOTHING_CREATED,
	});
}

/**
 * n8n retries executions that sleep, too, and goes on waking them.
 *
 * @throws UserError if a retry of this execution may create tasks
 */
export async function refuseIfRetried(context: IExecuteFunctions): Promise<void> {
	if ((await retryOf(context, context.getExecutionId()).size()) === 0) return;
	throw new UserError('A retry of this execution goes on with its tasks', {
		description: NOTHING_CREATED,
	});
}

const NOTHING_CREATED =
	'No more tasks were created here: both executions would order the same tasks. Look for the retry in the list of executions, and retry that execution if it has failed.';
