import { type IExecuteFunctions, UserError } from 'n8n-workflow';

import { internalsOf } from './internals';
import { LedgerRow } from './ledgerRow';

/** The row that the first retry of a run writes. */
const claimRow = (context: IExecuteFunctions, execution: string): LedgerRow =>
	new LedgerRow(context, `retry of ${execution}.${internalsOf(context).runIndex ?? 0}`);

/**
 * Of all retries of an execution only the first one may create tasks: a second retry knows nothing of what the first one
 * has created, and would order the same tasks. The retry of that retry goes on.
 *
 * The claim comes before the question whether a turn of the other execution had begun, and `refuseIfRetried` comes after the
 * beginning of a turn. So of an execution and its retry, which n8n may run at the same time, one at least sees the other.
 *
 * @throws UserError if another retry of the same execution may create tasks
 */
export async function claimRetry(context: IExecuteFunctions): Promise<void> {
	const execution = internalsOf(context).additionalData?.hooks?.retryOf;
	if (typeof execution !== 'string') return;
	if (await claimRow(context, execution).insert([])) return;
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
	if ((await claimRow(context, context.getExecutionId()).size()) === 0) return;
	throw new UserError('A retry of this execution goes on with its tasks', {
		description: NOTHING_CREATED,
	});
}

const NOTHING_CREATED =
	'No more tasks were created here: both executions would order the same tasks. Look for the retry in the list of executions, and retry that execution if it has failed.';
