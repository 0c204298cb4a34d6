import type { IExecuteFunctions, NodeExecutionHint } from 'n8n-workflow';

import { isOutOfReach } from '../callback/callbackUrl';
import { sentLength } from '../create/requestInput';
import { roundUsd } from '../service/prices';
import { ItemError } from '../shared/itemError';
import type { ItemResult } from '../report/outcome';
import { createsIn, type TaskPlan } from '../plan/taskPlan';

/** A body of this size is refused by many servers. */
const LARGE_BODY_BYTES = 20 * 2 ** 20;

/**
 * Sums a run up for the output panel: what failed, and what the tasks cost by the published prices.
 *
 * @param items the plan for each input item
 * @param results what became of each, in the same order; undefined where nothing was begun
 * @returns no hint where nothing was created and nothing failed
 */
export function summaryHint(
	items: ReadonlyArray<TaskPlan | ItemError>,
	results: ReadonlyArray<ItemResult | undefined>,
): NodeExecutionHint | undefined {
	const ends = items.map((item, index) => endOf(item, results[index]));
	const failed = ends.filter(({ isFailed }) => isFailed);
	const late = ends.filter(({ isLate }) => isLate);
	const created = ends.filter(({ isCreated }) => isCreated);
	if (failed.length + late.length + created.length === 0) return undefined;
	const isTrouble = failed.length + late.length > 0;
	const again = ends.reduce((sum, { failedBefore }) => sum + failedBefore, 0);
	const sentences = [
		...(isTrouble ? [] : [`${count(created.length, 'task')} created.`]),
		...failures(items.length, failed),
		...(late.length > 0 ? [`${count(late.length, 'task')} not finished in time.`] : []),
		...(again > 0
			? [`${count(again, 'failed task')} created again; failed tasks are usually free.`]
			: []),
		...costOf(created),
		...(failed.length > 0 && items.length > 1 ? [HOW_TO_GO_ON] : []),
	];
	return {
		message: sentences.join(' '),
		type: isTrouble ? 'warning' : 'info',
		location: 'outputPane',
	};
}

const HOW_TO_GO_ON =
	"Run only the failed items again: you would pay for the others twice. To collect failed items: Settings → On Error → 'Continue (using error output)'.";

/** How many failed, and why the first of them did. */
function failures(items: number, failed: readonly End[]): string[] {
	const [first] = failed;
	if (first === undefined) return [];
	const noun = failed.every(({ hasTask }) => hasTask) ? 'task' : 'item';
	const reason =
		first.reason === undefined ? '' : `: ${first.reason.replace(/(?<![.\s])[.\s]+$/, '')}`;
	return [`${failed.length} of ${count(items, noun)} failed${reason}.`];
}

/** n8n itself says "Waiting for input" of a suspended execution. */
export const WAITING_HINT: NodeExecutionHint = {
	message: 'n8n waits for the tasks and checks on them. You do not need to enter anything.',
	type: 'info',
	location: 'outputPane',
};

/**
 * Says where callbacks cannot arrive, and what comes in their place.
 *
 * @param baseUrl the address of the service
 */
export function callbackHint(
	items: ReadonlyArray<TaskPlan | ItemError>,
	baseUrl: string,
): NodeExecutionHint | undefined {
	const address = createsIn(items)
		.map(({ webhookUrl }) => webhookUrl)
		.find((url) => url !== undefined && isOutOfReach(url, baseUrl));
	if (address === undefined) return undefined;
	return {
		message: `The service at ${new URL(baseUrl).host} cannot call ${new URL(address).origin}, which is an address of this machine or its network. n8n checks after one minute, then less and less often (at most 15 minutes apart). For results at once, set n8n's environment variable N8N_WEBHOOK_URL to a public address, such as a tunnel's.`,
		type: 'info',
		location: 'outputPane',
	};
}

/** Says where the results of tasks appear that leave this node while they are pending. */
export function triggerHint(
	items: ReadonlyArray<TaskPlan | ItemError>,
	results: ReadonlyArray<ItemResult | undefined>,
): NodeExecutionHint | undefined {
	const triggers = items.flatMap((item, index) => {
		const isOut = Array.isArray(results[index]) && 'kind' in item && item.kind === 'create';
		if (!isOut || item.completion !== 'trigger' || item.webhookUrl === undefined) return [];
		// Without the token.
		const { origin, pathname } = new URL(item.webhookUrl);
		return [origin + pathname];
	});
	if (triggers.length === 0) return undefined;
	return {
		message: `The tasks stay PENDING here. Each result appears with the Media Generation Trigger at ${[...new Set(triggers)].join(' and ')}, as an execution of its own in the list of executions of that workflow.`,
		type: 'info',
		location: 'outputPane',
	};
}

/** Warns of requests that are larger than services usually take. It is not refused: where the limit is, nobody has said. */
export function sizeWarning(
	items: ReadonlyArray<TaskPlan | ItemError>,
): NodeExecutionHint | undefined {
	const large = createsIn(items).filter((item) => sentLength(item) > LARGE_BODY_BYTES);
	const [first] = large;
	if (first === undefined) return undefined;
	const size = Math.ceil(sentLength(first) / 2 ** 20);
	const others = large.length > 1 ? ` (and ${count(large.length - 1, 'other item')})` : '';
	return {
		message: `The request of item ${first.itemIndex + 1}${others} has about ${size} MiB, since a file grows by a third on its way. The service may refuse more than ${LARGE_BODY_BYTES / 2 ** 20} MiB: send smaller files, or the address of the file.`,
		type: 'warning',
		location: 'outputPane',
	};
}

/** Warns of large requests, in the log before the tasks are paid for. @returns the same for the output panel */
export function warnOfSize(
	context: IExecuteFunctions,
	items: ReadonlyArray<TaskPlan | ItemError>,
): NodeExecutionHint | undefined {
	const warning = sizeWarning(items);
	if (warning) context.logger.warn(`${context.getNode().name}: ${warning.message}`);
	return warning;
}

/** Says something in the log, and in the output panel of the run. */
export function showWarnings(context: IExecuteFunctions, messages: readonly string[]): void {
	for (const message of messages) {
		context.logger.warn(`${context.getNode().name}: ${message}`);
		showHints(context, { message, type: 'warning', location: 'outputPane' });
	}
}

/** Shows hints in the output panel of the run. */
export function showHints(
	context: IExecuteFunctions,
	...hints: Array<NodeExecutionHint | undefined>
): void {
	// Some versions of n8n lack it.
	if (typeof context.addExecutionHints !== 'function') return;
	context.addExecutionHints(...hints.filter((hint) => hint !== undefined));
}

interface End {
	hasTask: boolean;
	isFailed: boolean;
	/** Whether the wait for the task ended before the task. */
	isLate: boolean;
	/** Whether there is a task of this run that is or may yet be billed. */
	isCreated: boolean;
	/** How many tasks of the item failed before its present one. */
	failedBefore: number;
	/** US dollars, where the price is known. */
	costUsd: number | undefined;
	/** What the service has charged, where it says so. */
	credits: number | undefined;
	/** Why it failed. */
	reason: string | undefined;
}

function endOf(item: TaskPlan | ItemError, result: ItemResult | undefined): End {
	const json = result instanceof ItemError ? result.task : (result?.[0]?.json ?? {});
	const hasTask = typeof json.taskId === 'string';
	const isLate = result instanceof ItemError && json.timedOut === true;
	const isCreate = 'kind' in item && item.kind === 'create';
	return {
		hasTask,
		isFailed: !isLate && (result instanceof ItemError || json.error !== undefined),
		isLate,
		isCreated: isCreate && hasTask && json.state !== 'FAILURE',
		failedBefore: Array.isArray(json.failedTaskIds) ? json.failedTaskIds.length : 0,
		costUsd: isCreate ? item.estimatedCostUsd : undefined,
		credits: typeof json.creditsConsumed === 'number' ? json.creditsConsumed : undefined,
		reason: reasonOf(result),
	};
}

const MAX_REASON = 160;

function reasonOf(result: ItemResult | undefined): string | undefined {
	const error = result instanceof ItemError ? result.message : result?.[0]?.json.error;
	if (typeof error !== 'string') return undefined;
	return error.length > MAX_REASON ? `${error.slice(0, MAX_REASON)}…` : error;
}

function costOf(created: readonly End[]): string[] {
	if (created.length === 0) return [];
	const known = created.flatMap(({ costUsd }) => costUsd ?? []);
	const unknown = created.length - known.length;
	const total = roundUsd(known.reduce((sum, cost) => sum + cost, 0));
	return [
		...(known.length > 0 ? [`Estimated price: ${total} USD.`] : []),
		...(unknown > 0 ? [priceNotKnown(unknown)] : []),
		...charged(created),
	];
}

/** Says which field makes a price known. */
export const priceNotKnown = (tasks: number): string =>
	`The price of ${count(tasks, 'task')} is not known: enter it in 'Price per Task (USD)'.`;

/** What the service says that it has charged: at the end of a task, and of some services never. */
function charged(created: readonly End[]): string[] {
	const credits = created.flatMap((end) => end.credits ?? []);
	if (credits.length === 0) return [];
	const total = roundUsd(credits.reduce((sum, amount) => sum + amount, 0));
	const of = credits.length < created.length ? ` for ${count(credits.length, 'task')}` : '';
	return [`The service charged ${count(total, 'credit')}${of}.`];
}

export const count = (number: number, noun: string) =>
	`${number} ${noun}${number === 1 ? '' : 's'}`;
