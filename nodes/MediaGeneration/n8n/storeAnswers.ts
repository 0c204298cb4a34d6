import type { IExecuteFunctions } from 'n8n-workflow';

import { clock, Stopped, withTimeLimit } from '../shared/clock';
import { settled } from '../shared/promises';
import { executionIdOf } from './internals';
import { LedgerRow } from './ledgerRow';

/** n8n's database answers such a question within milliseconds. */
const ANSWER_MS = 2_000;

/**
 * Whether n8n's database answers at present. An execution that n8n cannot store when it goes to sleep is never woken: it
 * stays *running* in the list of executions (n8n 2.41). So a run asks before it sleeps.
 */
export async function storeAnswers(context: IExecuteFunctions): Promise<boolean> {
	if (executionIdOf(context) === undefined || !context.getWorkflow().id) return true;
	const counted = settled(new LedgerRow(context, 'before a sleep').size());
	const answer = await withTimeLimit(counted, ANSWER_MS);
	return answer !== undefined && 'value' in answer;
}

/**
 * Asks n8n's store until it answers.
 *
 * @param question itself asks for a while
 * @throws Stopped if the execution was stopped
 */
export async function askUntilAnswered<T>(question: () => Promise<T>): Promise<T> {
	for (;;) {
		const asked = await settled(question());
		if ('value' in asked) return asked.value;
		if (asked.error instanceof Stopped) throw asked.error;
		await clock.sleep(ANSWER_MS, undefined);
	}
}
