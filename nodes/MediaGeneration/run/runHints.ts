import type { IExecuteFunctions, NodeExecutionHint } from 'n8n-workflow';

import { isOutOfReach } from '../callback/reachability';
import { sentLength } from '../create/requestInput';
import { roundUsd } from '../service/prices';
import { ItemError } from '../shared/itemError';
import type { ItemResult } from '../report/outcome';
import { createsIn, type ItemPlan } from '../plan/itemPlan';

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
	items: ReadonlyArray<ItemPlan | ItemError>,
	results: ReadonlyArray<ItemResult | undefined>,
): NodeExecutionHint | undefined {
	const ends = items.map((item, index) => endOf(item, results[index]));
	const failed = ends.filter(({ isFailed }) => isFailed);
	const late = ends.filter(({ isLate }) => isLate);
	const created = ends.filter(({ isCreated }) => isCreated);
	if (failed.length + late.length + created.length === 0) return undefined;
	const noun = failed.every(({ hasTask }) => hasTask) ? 'task' : 'item';
	const trouble = [
		...(failed.length > 0 ? [`${failed.length} of ${count(items.length, noun)} failed`] : []),
		...(late.length > 0 ? [`${count(late.length, 'task')} not finished in time`] : []),
	];
	const what = trouble.length > 0 ? trouble : [`${count(created.length, 'task')} created`];
	const anew = ends.reduce((sum, { failedBefore }) => sum + failedBefore, 0);
	const before = anew > 0 ? [`${count(anew, 'failed task')} created anew, at no cost`] : [];
	const next =
		failed.length > 0
			? ". A failed item says why in 'error'. Run only those again: all others would be paid for twice."
			: '';
	return {
		message: `${[...what, ...before, ...costOf(created)].join('; ')}${next}`,
		type: trouble.length > 0 ? 'warning' : 'info',
		location: 'outputPane',
	};
}

/**
 * Says where callbacks cannot arrive, and what comes in their place.
 *
 * @param baseUrl the address of the service
 */
export function callbackHint(
	items: ReadonlyArray<ItemPlan | ItemError>,
	baseUrl: string,
): NodeExecutionHint | undefined {
	const address = createsIn(items)
		.map(({ webhookUrl }) => webhookUrl)
		.find((url) => url !== undefined && isOutOfReach(url, baseUrl));
	if (address === undefined) return undefined;
	return {
		message: `The service at ${new URL(baseUrl).host} cannot call ${new URL(address).origin}, which is an address of this machine or its network. n8n looks for the results by itself, after a minute and then ever less often. For results at once, set n8n's environment variable WEBHOOK_URL to a public address, such as a tunnel's.`,
		type: 'info',
		location: 'outputPane',
	};
}

/** Says where the results of tasks appear that leave this node while they are pending. */
export function triggerHint(
	items: ReadonlyArray<ItemPlan | ItemError>,
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
	items: ReadonlyArray<ItemPlan | ItemError>,
): NodeExecutionHint | undefined {
	const large = createsIn(items).filter((item) => sentLength(item) > LARGE_BODY_BYTES);
	const [first] = large;
	if (first === undefined) return undefined;
	const size = Math.ceil(sentLength(first) / 2 ** 20);
	const others = large.length > 1 ? ` (and ${count(large.length - 1, 'other item')})` : '';
	return {
		message: `The request of item ${first.itemIndex}${others} has about ${size} MiB, since a file grows by a third on its way. The service may refuse more than ${LARGE_BODY_BYTES / 2 ** 20} MiB: send smaller files, or the address of the file.`,
		type: 'warning',
		location: 'outputPane',
	};
}

/** Warns of large requests, in the log before the tasks are paid for. @returns the same for the output panel */
export function warnOfSize(
	context: IExecuteFunctions,
	items: ReadonlyArray<ItemPlan | ItemError>,
): NodeExecutionHint | undefined {
	const warning = sizeWarning(items);
	if (warning) context.logger.warn(`${context.getNode().name}: ${warning.message}`);
	return warning;
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
	/** What the service has billed, where it says so. */
	credits: number | undefined;
}

function endOf(item: ItemPlan | ItemError, result: ItemResult | undefined): End {
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
	};
}

function costOf(created: readonly End[]): string[] {
	if (created.length === 0) return [];
	const known = created.flatMap(({ costUsd }) => costUsd ?? []);
	const unknown = created.length - known.length;
	const total = roundUsd(known.reduce((sum, cost) => sum + cost, 0));
	return [
		...(known.length > 0 ? [`${total} USD estimated`] : []),
		...(unknown > 0 ? [`the price of ${count(unknown, 'task')} is not known`] : []),
		...billed(created),
	];
}

/** What the service says that it has billed: at the end of a task, and of some services never. */
function billed(created: readonly End[]): string[] {
	const credits = created.flatMap((end) => end.credits ?? []);
	if (credits.length === 0) return [];
	const total = roundUsd(credits.reduce((sum, amount) => sum + amount, 0));
	const of = credits.length < created.length ? ` for ${count(credits.length, 'task')}` : '';
	return [`${count(total, 'credit')} billed${of}`];
}

export const count = (number: number, noun: string) =>
	`${number} ${noun}${number === 1 ? '' : 's'}`;
