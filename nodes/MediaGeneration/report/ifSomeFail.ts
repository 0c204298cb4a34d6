import type { INode } from 'n8n-workflow';

import { ItemError, shortened } from '../shared/itemError';
import { isRecord } from '../shared/json';
import type { ItemResult } from './taskItems';

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
 * others, unless what has failed ends the whole batch. But while n8n has tries left, the node stops: otherwise n8n would try again only if the very first item has an
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
	// n8n retries no execution that has succeeded, and the retry orders exactly what is left.
	const ending = results.findIndex((result) => result instanceof ItemError && result.endsBatch);
	if (ending !== -1) return ending;
	return ifSomeFail === 'keep' && !triesLeft && results.some(isSuccess) ? undefined : failed;
}

const isSuccess = (result: ItemResult) =>
	!(result instanceof ItemError) && result.some(({ json }) => json.error === undefined);

const ONLY_LEFT =
	"Then use 'Retry execution' in the list of executions: it orders exactly what is left.";

const ONLY_FAILED =
	"'Retry execution' in the list of executions orders only what failed: a full run would pay for the others twice.";

/**
 * The description of the error that stops the node: which item it was, and what to do.
 *
 * @param ordered what the run has ordered
 */
export function describeStop(error: ItemError, ordered: Ordered): string | undefined {
	const { input, state } = error.task;
	const prompt = isRecord(input) ? input.prompt : undefined;
	const parts = [
		typeof prompt === 'string' && prompt && `The prompt of this item: “${shortened(prompt, 200)}”.`,
		error.description,
		error.endsBatch && ONLY_LEFT,
		state === 'FAILURE' && isLeft(ordered) && ONLY_FAILED,
		describePaidTasks(ordered),
	];
	return parts.filter(Boolean).join('\n\n') || undefined;
}

/** n8n's default for *Max. Tries*. */
const DEFAULT_TRIES = 3;
const MIN_TRIES = 2;
const MAX_TRIES = 5;

/** How often n8n tries the node if it stops (*Retry On Fail*). */
export const triesOf = ({ retryOnFail, maxTries }: INode): number =>
	retryOnFail === true ? Math.min(MAX_TRIES, Math.max(MIN_TRIES, maxTries || DEFAULT_TRIES)) : 1;

/** What the message says about one task or many tasks of a state: what they cost, and how to get the results. */
const MEANINGS: Array<[state: string, one: string, many: string, operation?: string]> = [
	['SUCCESS', 'succeeded and is paid for', 'succeeded and are paid for', 'Get Task'],
	[
		'PENDING',
		'is not finished, and is billed if it succeeds',
		'are not finished, and are billed if they succeed',
		'Wait for Task',
	],
	[
		'not read again',
		'was created in an earlier try',
		'were created in an earlier try',
		'Wait for Task',
	],
	[
		'CHARGED',
		'failed, and the service says that it charged for it',
		'failed, and the service says that it charged for them',
	],
	['FAILURE', 'failed, which is usually free', 'failed, which is usually free'],
];

/** A task that a run has created. */
export interface PaidTask {
	taskId: string;
	/** Its state; undefined if this try knows no more of it. */
	state?: string | undefined;
	/** The credits that the service says it charged. */
	credits?: number | null | undefined;
}

const priceStateOf = ({ state, credits }: PaidTask): string =>
	state === 'FAILURE' && (credits ?? 0) > 0 ? 'CHARGED' : (state ?? 'not read again');

/** What a run has ordered. */
export interface Ordered {
	/** In the order of creation. */
	tasks: readonly PaidTask[];
	/** The input items whose create was sent, and whose answer was lost. */
	unanswered?: readonly number[];
}

/** Whether another task is paid for, or may be. A failed task that was charged for is not ordered again either. */
const isLeft = ({ tasks, unanswered = [] }: Ordered): boolean =>
	unanswered.length > 0 || tasks.some(({ state }) => state !== 'FAILURE');

/**
 * The tasks that a run has created. Whatever ends the run, its message names them.
 *
 * @returns all ids by what they cost, and how to fetch them; then what may have to be paid; undefined if nothing
 */
export function describePaidTasks({ tasks, unanswered = [] }: Ordered): string | undefined {
	const known = MEANINGS.flatMap(([meant, one, many, operation]) => {
		const ids = tasks.filter((task) => priceStateOf(task) === meant).map(({ taskId }) => taskId);
		if (ids.length === 0) return [];
		const what = ids.length === 1 ? `1 task ${one}` : `${ids.length} tasks ${many}`;
		const next = operation ? `. ${operation} fetches the results without paying again` : '';
		return [`${what}${next}: ${ids.join(', ')}.`];
	});
	const items = unanswered.map((item) => item + 1).join(', ');
	const theirs = unanswered.length === 1 ? 'Its task' : 'Their tasks';
	const lost = `Sent, but the answer was lost: item ${items}. ${theirs} may exist and may be billed once.`;
	return [...known, ...(items ? [lost] : [])].join(' ') || undefined;
}
