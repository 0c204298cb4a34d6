import type { IExecuteFunctions } from 'n8n-workflow';

import { internalsOf } from './internals';
import { LedgerRow } from './ledgerRow';

/**
 * Marks the beginning of a turn in n8n's database. n8n may wake an execution again that was killed in a turn: from what
 * was stored before that turn, under the same id (shown on n8n 2.41 by test/e2e/overnight.test.ts). Only the mark tells
 * that tasks may have been created since.
 *
 * @param turn the number of the turn; undefined if the turn creates nothing
 * @returns whether the turn had begun before
 */
export async function hadBegun(
	context: IExecuteFunctions,
	turn: number | undefined,
): Promise<boolean> {
	if (turn === undefined) return false;
	const run = `${context.getExecutionId()}.${internalsOf(context).runIndex ?? 0}`;
	return await new LedgerRow(context, `turns of ${run}`).add(String(turn));
}
