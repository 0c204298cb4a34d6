import type { IDataObject, IExecuteFunctions, NodeExecutionHint } from 'n8n-workflow';

import { isOutOfReach } from '../callback/callbackUrl';
import { knownCostUsd } from '../plan/budget';
import { createsIn, type CreatePlan, type TaskPlan } from '../plan/taskPlan';
import type { ItemResult } from '../report/outcome';
import { roundUsd } from '../service/prices';
import { ItemError } from '../shared/itemError';

type Plans = ReadonlyArray<TaskPlan | ItemError>;
type Results = ReadonlyArray<ItemResult | undefined>;

export const hint = (
	message: string,
	type: NodeExecutionHint['type'] = 'info',
): NodeExecutionHint => ({ message, type, location: 'outputPane' });

/**
 * Sums a run up for the output panel: what failed, and what the tasks cost by the published prices.
 *
 * @param items the plan for each input item
 * @param results what became of each, in the same order; undefined where nothing was begun
 * @returns no hint where nothing was created and nothing failed
 */
export function summaryHint(items: Plans, results: Results): NodeExecutionHint | undefined {
	const ends = items.map((item, index) => endOf(item, results[index]));
	const failed = ends.filter(({ isFailed }) => isFailed);
	const late = ends.filter(({ isLate }) => isLate);
	const created = ends.filter(({ isCreated }) => isCreated);
	if (failed.length + late.length + created.length === 0) return undefined;
	const isTrouble = failed.length + late.length > 0;
	const again = ends.flatMap(({ json }) => json.failedTaskIds ?? []).length;
	const sentences = [
		!isTrouble && `${count(created.length, 'task')} created.`,
		failures(items.length, failed),
		late.length > 0 && `${count(late.length, 'task')} not finished in time.`,
		again > 0 && `${count(again, 'failed task')} created again; failed tasks are usually free.`,
		...priceOf(createsIn(created.map(({ item }) => item)), (usd) => `Estimated price: ${usd} USD.`),
		charged(created),
		failed.length > 0 && items.length > 1 && HOW_TO_GO_ON,
	];
	return hint(sentences.filter(Boolean).join(' '), isTrouble ? 'warning' : 'info');
}

const HOW_TO_GO_ON =
	"Run only the failed items again: you would pay for the others twice. To collect failed items: Settings → On Error → 'Continue (using error output)'.";

/** What became of an item. */
interface End {
	item: TaskPlan | ItemError;
	/** The fields of its first output item. */
	json: IDataObject;
	isFailed: boolean;
	/** Whether the wait for the task ended before the task. */
	isLate: boolean;
	/** Whether there is a task of this run that is or may yet be billed. */
	isCreated: boolean;
}

function endOf(item: TaskPlan | ItemError, result: ItemResult | undefined): End {
	const isError = result instanceof ItemError;
	const json = isError ? { ...result.task, error: result.message } : (result?.[0]?.json ?? {});
	const isLate = isError && json.timedOut === true;
	const isCreate = 'kind' in item && item.kind === 'create';
	return {
		item,
		json,
		isFailed: !isLate && json.error !== undefined,
		isLate,
		isCreated: isCreate && json.taskId !== undefined && json.state !== 'FAILURE',
	};
}

const MAX_REASON = 160;

/** How many failed, and why the first of them did. */
function failures(items: number, failed: readonly End[]): string {
	const [first] = failed;
	if (first === undefined) return '';
	const noun = failed.every(({ json }) => json.taskId !== undefined) ? 'task' : 'item';
	const error = String(first.json.error);
	const reason = error.length > MAX_REASON ? `${error.slice(0, MAX_REASON)}…` : error;
	return `${failed.length} of ${count(items, noun)} failed: ${reason.replace(/(?<![.\s])[.\s]+$/, '')}.`;
}

/**
 * What tasks cost, as far as it is known, and which field makes a price known.
 *
 * @param say makes a sentence of US dollars
 */
export function priceOf(creates: readonly CreatePlan[], say: (usd: number) => string): string[] {
	const unknown = creates.filter((item) => item.estimatedCostUsd === undefined).length;
	const isNotKnown = `The price of ${count(unknown, 'task')} is not known: enter it in 'Price per Task (USD)'.`;
	return [
		...(unknown < creates.length ? [say(knownCostUsd(creates))] : []),
		...(unknown > 0 ? [isNotKnown] : []),
	];
}

/** What the service says that it has charged: at the end of a task, and of some services never. */
function charged(created: readonly End[]): string {
	const credits = created.flatMap(({ json }) =>
		typeof json.creditsConsumed === 'number' ? json.creditsConsumed : [],
	);
	if (credits.length === 0) return '';
	const total = roundUsd(credits.reduce((sum, amount) => sum + amount, 0));
	const of = credits.length < created.length ? ` for ${count(credits.length, 'task')}` : '';
	return `The service charged ${count(total, 'credit')}${of}.`;
}

/** n8n itself says "Waiting for input" of a suspended execution. */
export const WAITING_HINT = hint(
	'n8n waits for the tasks and checks on them. You do not need to enter anything.',
);

/** Says how to see results that were not downloaded, before somebody orders them again for it. */
export function seeHint(items: Plans, results: Results): NodeExecutionHint | undefined {
	const isThere = items.some((item, index) => {
		const result = results[index];
		const isCreate = 'kind' in item && item.kind === 'create' && !item.output.download;
		return isCreate && Array.isArray(result) && result[0]?.json.state === 'SUCCESS';
	});
	if (!isThere) return undefined;
	return hint(
		"Pin this output before you build the next steps; then nothing is ordered again. To see these results: Task → Get with 'Download Results', and 'taskId' as 'Task ID'.",
	);
}

/**
 * Says where callbacks cannot arrive, and what comes in their place.
 *
 * @param baseUrl the address of the service
 */
export function callbackHint(items: Plans, baseUrl: string): NodeExecutionHint | undefined {
	const address = createsIn(items)
		.map(({ webhookUrl }) => webhookUrl)
		.find((url) => url !== undefined && isOutOfReach(url, baseUrl));
	if (address === undefined) return undefined;
	return hint(
		`The service at ${new URL(baseUrl).host} cannot call ${new URL(address).origin}, which is an address of this machine or its network. n8n checks after one minute, then less and less often (at most 15 minutes apart). For results at once, set n8n's environment variable N8N_WEBHOOK_URL to a public address, such as a tunnel's.`,
	);
}

/** Says where the results of tasks appear that leave this node while they are pending. */
export function triggerHint(items: Plans, results: Results): NodeExecutionHint | undefined {
	const triggers = items.flatMap((item, index) => {
		const isOut = Array.isArray(results[index]) && 'kind' in item && item.kind === 'create';
		if (!isOut || item.completion !== 'trigger' || item.webhookUrl === undefined) return [];
		// Without the token.
		const { origin, pathname } = new URL(item.webhookUrl);
		return [origin + pathname];
	});
	if (triggers.length === 0) return undefined;
	return hint(
		`The tasks stay PENDING here. Each result appears with the Media Generation Trigger at ${[...new Set(triggers)].join(' and ')}, as an execution of its own in the list of executions of that workflow.`,
	);
}

/** Says something in the log, and in the output panel of the run. */
export function showWarnings(context: IExecuteFunctions, messages: readonly string[]): void {
	for (const message of messages) {
		context.logger.warn(`${context.getNode().name}: ${message}`);
		showHints(context, hint(message, 'warning'));
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

export const count = (number: number, noun: string) =>
	`${number} ${noun}${number === 1 ? '' : 's'}`;
