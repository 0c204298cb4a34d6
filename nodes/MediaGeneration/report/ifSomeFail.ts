import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { isRecord } from '../shared/json';
import { nodeContext } from '../n8n/internals';
import { ItemError } from '../shared/itemError';
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

/**
 * The description of the error that stops the node: which item it was, and what to do.
 *
 * @param paid the created tasks, as `PaidTaskList` describes them
 */
export function describeStop(error: ItemError, paid: string | undefined): string | undefined {
	const prompt = quotePrompt(error.task, 200);
	const parts = [prompt && `The prompt of this item: ${prompt}.`, error.description, paid];
	return parts.filter(Boolean).join('\n\n') || undefined;
}

/** The beginning of an item's prompt in quotation marks, at most so many characters; undefined without a prompt. */
export function quotePrompt({ input }: IDataObject, most: number): string | undefined {
	const prompt = isRecord(input) ? input.prompt : undefined;
	return typeof prompt === 'string' && prompt !== '' ? `“${shortened(prompt, most)}”` : undefined;
}

export const shortened = (text: string, most: number): string =>
	text.length > most ? `${text.slice(0, most)}…` : text;

/** The key in the node's context, which lasts from one try of *Retry On Fail* to the next. */
const KEY = 'tries';

/** n8n's default for *Max. Tries*. */
const DEFAULT_TRIES = 3;
const MIN_TRIES = 2;
const MAX_TRIES = 5;

/**
 * Counts n8n's tries of this run of the node.
 *
 * @param isWoken whether the run was asleep: n8n counts its tries anew then
 * @returns whether n8n tries again if this try stops: *Retry On Fail* is on, and this is not the last try
 */
export function hasTriesLeft(context: IExecuteFunctions, isWoken = false): boolean {
	const { retryOnFail, maxTries } = context.getNode();
	if (retryOnFail !== true) return false;
	const store = nodeContext(context);
	// A loop runs the node many times, and a retry from the list of executions gets the context of the first execution.
	const run = `${context.getExecutionId()}:${String(context.getWorkflowDataProxy(0).$runIndex ?? 0)}`;
	const stored = store[KEY];
	const before = isRecord(stored) && stored.run === run && !isWoken ? Number(stored.count) : 0;
	store[KEY] = { run, count: before + 1 };
	const allowed = Math.min(MAX_TRIES, Math.max(MIN_TRIES, maxTries || DEFAULT_TRIES));
	return before + 1 < allowed;
}
