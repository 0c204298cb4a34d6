import type { IDataObject, INode } from 'n8n-workflow';

import { isRecord } from '../shared/json';
import { ItemError } from '../shared/itemError';
import { describePaidTasks } from './paidTaskList';
import type { ItemResult } from './taskItems';

/** The option *If Some Items Fail*. */
export type IfSomeFail = 'keep' | 'stop';

/** The user's choice for failed items. */
export interface FailureRule {
	ifSomeFail: IfSomeFail;
	/** Whether failed items leave in any case, by n8n's *On Error*, on either output. */
	continues: boolean;
	/** Whether n8n tries the node again if it stops (*Retry On Fail*). */
	triesLeft: boolean;
}

/**
 * Decides what becomes of a run with failed items, when all results are known. With `keep` failed items leave beside the
 * others. But while n8n has tries left, the node stops: otherwise n8n would try again only if the very first item has an
 * `error`. The next try takes up the tasks of this try.
 *
 * @param results the result of each input item; no output items if the item was not begun
 * @returns the index of the item whose error stops the node; undefined if all items leave
 */
export function stoppingItem(
	results: readonly ItemResult[],
	{ ifSomeFail, continues, triesLeft }: FailureRule,
): number | undefined {
	const failed = results.findIndex((result) => result instanceof ItemError);
	if (failed === -1 || continues) return undefined;
	return ifSomeFail === 'keep' && !triesLeft && results.some(isSuccess) ? undefined : failed;
}

const isSuccess = (result: ItemResult) =>
	!(result instanceof ItemError) && result.some(({ json }) => json.error === undefined);

const ALONE = 'Run this item alone: a full run would pay for the others twice.';

/**
 * The description of the error that stops the node: which item it was, and what to do.
 *
 * @param paid the created tasks, as `describePaidTasks` describes them
 */
export function describeStop(error: ItemError, paid: string | undefined): string | undefined {
	const prompt = quotePrompt(error.task, 200);
	const { taskId, state, creditsConsumed } = error.task;
	// The message names the task of the item already.
	const own = describePaidTasks([
		{ taskId: String(taskId), state: String(state), credits: Number(creditsConsumed) },
	]);
	const parts = [
		prompt && `The prompt of this item: ${prompt}.`,
		error.description,
		...(paid === own ? [] : [state === 'FAILURE' && paid && ALONE, paid]),
	];
	return parts.filter(Boolean).join('\n\n') || undefined;
}

/** The beginning of an item's prompt in quotation marks, at most so many characters; undefined without a prompt. */
export function quotePrompt({ input }: IDataObject, most: number): string | undefined {
	const prompt = isRecord(input) ? input.prompt : undefined;
	return typeof prompt === 'string' && prompt !== '' ? `“${shortened(prompt, most)}”` : undefined;
}

/** A text of at most `most` characters, and an ellipsis if it is cut. */
export const shortened = (text: string, most: number): string =>
	text.length > most ? `${text.slice(0, most)}…` : text;

/** n8n's default for *Max. Tries*. */
const DEFAULT_TRIES = 3;
const MIN_TRIES = 2;
const MAX_TRIES = 5;

/** How often n8n tries the node if it stops (*Retry On Fail*). */
export const triesOf = ({ retryOnFail, maxTries }: INode): number =>
	retryOnFail === true ? Math.min(MAX_TRIES, Math.max(MIN_TRIES, maxTries || DEFAULT_TRIES)) : 1;
