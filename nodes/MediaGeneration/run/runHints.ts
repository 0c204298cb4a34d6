import type { IDataObject, IExecuteFunctions, NodeExecutionHint } from 'n8n-workflow';

import { isTestAddress } from '../callback/callbackAddress';
import { ENTER_DURATION, ENTER_PRICE, knownCostUsd, type RunPlan } from '../plan/planRun';
import { type CreatePlan, createsIn, type ItemPlan } from '../plan/planTypes';
import { isWithoutResult, NOT_KNOWN, withoutResult } from '../report/taskErrors';
import type { ItemResult } from '../report/taskItems';
import { roundUsd } from '../service/money';
import { isOutOfReach } from '../shared/addresses';
import { count, ItemError, shortened, withoutStop, writeLog } from '../shared/itemError';

interface End {
	plan: ItemPlan;
	/** The fields of the first output item; empty if nothing leaves. */
	json: IDataObject;
	isFailed: boolean;
	/** Whether the wait for the task ended before the task. */
	isLate: boolean;
	/** Whether the item has a task of this run that costs credits, or may cost credits. */
	isCreated: boolean;
}

/**
 * The hint of the output panel at the end of a run: what failed, what it cost, and what to do next.
 *
 * @param results the result of each item, in the order of the plan
 * @param more.hasErrorOutput whether failed items leave by the error output
 * @param more.isByHand whether somebody has started the run in the editor
 * @param more.isTool whether an AI agent has started it: nobody builds a workflow then
 * @returns one hint at most
 */
export function endHints(
	{ items }: Pick<RunPlan, 'items'>,
	results: readonly ItemResult[],
	baseUrl: string,
	{ hasErrorOutput = false, isByHand = false, isTool = false } = {},
): NodeExecutionHint[] {
	const ends = items.map((plan, index) => endOf(plan, results[index] ?? []));
	const left = createsIn(ends.flatMap(({ plan, isFailed }) => (isFailed ? [] : plan)));
	const empty = withoutResult(ends.map(({ json }) => json).filter(isWithoutResult));
	const isTrouble = ends.some(({ isFailed, isLate }) => isFailed || isLate) || empty !== undefined;
	const isBuilt = isByHand && !isTool && ends.some(isShown);
	const sentences = [
		costOf(ends),
		...troubles(ends),
		empty !== undefined && `${withoutStop(empty)}.`,
		...(isTool ? [] : adviceOf(ends, hasErrorOutput)),
		isBuilt && !isTrouble && nextStepsOf(ends),
		unreached(left, baseUrl) ?? triggersTold(left),
	];
	const message = sentences.filter(Boolean).join(' ');
	return message === '' ? [] : [hint(message, isTrouble ? 'warning' : 'info')];
}

/** How to build the next steps without paying twice. n8n cannot pin an output that has files. */
function nextStepsOf(ends: readonly End[]): string {
	const again = `'Execute workflow' orders the ${ends.length === 1 ? 'task' : 'tasks'} again`;
	return ends.some(({ plan }) => plan.kind === 'create' && plan.output.download)
		? `${again}: to build the next steps, press 'Execute step' in the next nodes, not here.`
		: `${again}: pin this output before you build the next steps.`;
}

const RUN_FAILED = 'Run only the failed items again: a full run would pay for the others twice.';

const LOOK_FIRST =
	"Before you run a failed item again, look at its 'taskId' and 'state': a task may be paid for. Wait for Task fetches the result of a task that has not failed.";

const COLLECT_FAILED =
	"To collect failed items: Settings → On Error → 'Continue (using error output)'.";

function endOf(plan: ItemPlan, result: ItemResult): End {
	const isError = result instanceof ItemError;
	const json = isError ? { ...result.task, error: result.message } : (result[0]?.json ?? {});
	const isTimedOut = json.timedOut === true;
	return {
		plan,
		json,
		isFailed: !isTimedOut && json.error !== undefined,
		isLate: isError && isTimedOut,
		isCreated: plan.kind !== 'read' && json.taskId !== undefined && json.state !== 'FAILURE',
	};
}

/** What the tasks cost; nothing if nothing was created. n8n cuts a long hint, so the money comes first. */
function costOf(ends: readonly End[]): string {
	const created = ends.filter(({ isCreated }) => isCreated);
	const creates = createsIn(created.map(({ plan }) => plan));
	const tasks = count(ends.length, 'task');
	const cost = [
		created.length > 0 && (created.length < ends.length ? `${created.length} of ${tasks}` : tasks),
		creates.some(isPriced) && `about ${knownCostUsd(creates)} USD`,
		charged(ends.filter(isPaid)),
	].filter(Boolean);
	return cost.length > 0 ? `${cost.join(', ')}.` : '';
}

function troubles(ends: readonly End[]): string[] {
	const failed = ends.filter(({ isFailed }) => isFailed);
	const late = ends.filter(({ isLate }) => isLate);
	const creates = createsIn(ends.flatMap(({ plan, isCreated }) => (isCreated ? plan : [])));
	// An item without a task has failed with its last create, so the last of these tasks was not created again.
	const again = ends.flatMap(({ json: { failedTaskIds = [], taskId } }) =>
		[failedTaskIds].flat().slice(taskId === undefined ? 1 : 0),
	).length;
	return [
		failures(ends.length, failed),
		late.length > 0 ? `${count(late.length, 'task')} not finished in time.` : '',
		again > 0 ? `${count(again, 'failed task')} created again; failed tasks are usually free.` : '',
		...unpriced(creates),
	];
}

function adviceOf(ends: readonly End[], hasErrorOutput: boolean): string[] {
	const failed = ends.filter(({ isFailed }) => isFailed);
	const hasOthers = failed.length > 0 && ends.length > 1;
	const isPaidFor = ends.some(({ isCreated }) => isCreated);
	if (failed.some(mayBePaid))
		return [LOOK_FIRST, ...(hasOthers && !hasErrorOutput ? [COLLECT_FAILED] : [])];
	if (!hasOthers) return [];
	return [...(isPaidFor ? [RUN_FAILED] : []), ...(hasErrorOutput ? [] : [COLLECT_FAILED])];
}

/** A service may charge for a failed task, too. */
const isPaid = ({ plan, json, isCreated }: End) =>
	isCreated || (plan.kind === 'create' && Number(json.creditsConsumed) > 0);

/** Whether a second run of the failed item may pay twice. */
const mayBePaid = ({ json, isCreated }: End) =>
	isCreated || String(json.error).startsWith(NOT_KNOWN);

function failures(items: number, failed: readonly End[]): string {
	const [first] = failed;
	if (first === undefined) return '';
	const noun = failed.every(({ json }) => json.taskId !== undefined) ? 'task' : 'item';
	const reason = shortened(String(first.json.error), 160);
	const named = items > 1 ? ` (${numbersOf(failed)})` : '';
	return `${failed.length} of ${count(items, noun)} failed${named}: ${withoutStop(reason)}.`;
}

/** So many numbers can be read in a hint. */
const FEW = 5;

/** The numbers of items, which count from 1. */
function numbersOf(ends: readonly End[]): string {
	const numbers = [...new Set(ends.map(({ plan }) => plan.itemIndex + 1))];
	const named = numbers.slice(0, FEW).join(', ');
	return `${numbers.length > 1 ? 'items' : 'item'} ${named}${numbers.length > FEW ? ', …' : ''}`;
}

const isPriced = ({ estimatedCostUsd }: CreatePlan) => estimatedCostUsd !== undefined;

function unpriced(creates: readonly CreatePlan[]): string[] {
	const unknown = creates.filter((create) => !isPriced(create));
	const short = unknown.filter(({ lacksDuration }) => lacksDuration).length;
	const rest = unknown.length - short;
	return [
		short > 0 &&
			`The price of ${count(short, 'task')} is by the second, and not known without a duration: ${ENTER_DURATION}.`,
		rest > 0 && `The price of ${count(rest, 'task')} is not known: ${ENTER_PRICE}.`,
	].filter((sentence) => sentence !== false);
}

/** The hint of the output panel after a dry run. */
export function dryRunHint(creates: readonly CreatePlan[]): string {
	const known = creates.filter(isPriced).length;
	const retries = creates.reduce((most, { retryFailed }) => Math.max(most, retryFailed), 0);
	const again = `A failed task would be created again up to ${count(retries, 'time')}. Failed tasks are usually free.`;
	return [
		'Nothing was sent.',
		...(known > 0 ? [`${count(known, 'task')} would cost ${knownCostUsd(creates)} USD.`] : []),
		...unpriced(creates),
		...(retries > 0 ? [again] : []),
		"A real run fills in 'taskId', 'state' and 'resultUrls': the first result is resultUrls[0].",
	].join(' ');
}

/** The credits that the service says it has charged; some services never say so. */
function charged(paid: readonly End[]): string {
	const credits = paid.flatMap(({ json }) =>
		typeof json.creditsConsumed === 'number' ? json.creditsConsumed : [],
	);
	if (credits.length === 0) return '';
	const total = roundUsd(credits.reduce((sum, amount) => sum + amount, 0));
	const of = credits.length < paid.length ? ` for ${count(credits.length, 'task')}` : '';
	return `${count(total, 'credit')}${of}`;
}

/** Whether the item has results that were made now. */
const isShown = ({ plan, json, isFailed, isCreated }: End) =>
	isCreated && !isFailed && plan.kind === 'create' && [json.resultUrls].flat().length > 0;

/** Says which addresses were not sent, since no callback can arrive, and what the node does instead. */
function unreached(creates: readonly CreatePlan[], baseUrl: string): string | undefined {
	const addresses = creates.flatMap(({ webhookUrl }) => webhookUrl ?? []);
	const address = addresses.find((url) => isOutOfReach(url, baseUrl));
	if (address === undefined) return undefined;
	const checks = isTestAddress(address)
		? "At a test URL n8n does not check: use the trigger's production URL"
		: 'n8n checks after one minute, then less and less often (at most 15 minutes apart)';
	return `The service at ${new URL(baseUrl).host} cannot call ${new URL(address).origin}, which is an address of this machine or its network, so the order names no callback address. ${checks}. For results at once, set N8N_WEBHOOK_URL to a public address.`;
}

/** Says where the results appear if the items leave while their tasks are pending. */
function triggersTold(creates: readonly CreatePlan[]): string | undefined {
	const triggers = creates.flatMap(({ completion, webhookUrl }) => {
		// A test URL takes one callback, which the editor shows.
		if (completion !== 'trigger' || !webhookUrl || isTestAddress(webhookUrl)) return [];
		// Without the token.
		const { origin, pathname } = new URL(webhookUrl);
		return [origin + pathname];
	});
	if (triggers.length === 0) return undefined;
	return `The tasks stay PENDING here. Each result starts the workflow of the Media Generation Trigger at ${[...new Set(triggers)].join(' and ')}: look in the list of executions of that workflow.`;
}

/** Shows warnings in the log and in the output panel. */
export function showWarnings(context: IExecuteFunctions, messages: readonly string[]): void {
	for (const message of messages) {
		writeLog(context, 'warn', message);
		context.addExecutionHints(hint(message, 'warning'));
	}
}

/** A hint for the output panel. */
export const hint = (
	message: string,
	type: NodeExecutionHint['type'] = 'info',
): NodeExecutionHint => ({ message, type, location: 'outputPane' });
