import type { IExecuteFunctions, NodeTypeAndVersion } from 'n8n-workflow';
import * as n8nWorkflow from 'n8n-workflow';

import type { Account } from '../service/connect';
import { ItemError } from '../shared/itemError';
import { isRecord } from '../shared/json';
import {
	handsOnResults,
	hangsUp,
	inExpression,
	internalsOf,
	isEngineV2,
	isTool,
	settingsOf,
} from '../n8n/internals';
import type { ItemParameters } from '../shared/parameters';
import { resumeCallbackUrl } from '../suspend/resumeWebhook';
import { createsIn, isAwaited, type ItemPlan } from './planTypes';

const MINUTE_MS = 60_000;

/** The default of *Timeout* for a run that may be suspended: a suspended wait holds no memory. */
export const DAY_SECONDS = 86_400;
const HELD_SECONDS = 600;

/** For each callback n8n reads the whole execution anew: for 2,000 tasks in minutes. The checks take seconds. */
const MOST_CALLED_BACK = 1_000;

/** n8n's and most other MCP clients wait a minute for a tool. The rest is for the answer. */
const MCP_PATIENCE_SECONDS = 50;

export interface WaitPlan {
	/** The default of *Timeout*, seconds. */
	seconds: number;
	/** Milliseconds from the last create to the suspension; Infinity if the run is held to its end. */
	suspendAfterMs: number;
	/** The callback URL of a run that is suspended at once. */
	webhookUrl?: string | undefined;
	/** Warnings about the wait for the user. */
	warnings: string[];
}

/**
 * Decides whether and when a run is suspended.
 *
 * @param inputs the number of input items
 * @param first the parameters of the first item, which hold for the whole run
 * @throws ItemError if the user chose to suspend at once, and n8n cannot resume the execution
 */
export function planWait(
	items: readonly ItemPlan[],
	inputs: number,
	first: ItemParameters,
	account: Account,
): WaitPlan {
	const { context } = first;
	const held = { seconds: DAY_SECONDS, suspendAfterMs: Infinity, warnings: [] };
	if (!items.some(isAwaited)) return held;
	const minutes = first.number('suspendAfter');
	const isAtOnce = minutes === 0;
	const obstacle = obstacleOf(context, isOneToOne(items, inputs));
	if (obstacle && !(isAtOnce && obstacle.ifChosen === 'suspend')) {
		const { why, ifChosen } = obstacle;
		if (isAtOnce && ifChosen === 'refuse') {
			throw new ItemError(`This execution cannot be suspended at once: ${why}`, {
				description:
					"Remove the option 'Suspend After', so that the node waits without suspending. No task was created.",
			});
		}
		const told = `This execution is not suspended, although 'Suspend After' is 0: ${why}.`;
		return { ...held, seconds: heldSeconds(context), warnings: isAtOnce ? [told] : [] };
	}
	const wait = { ...held, suspendAfterMs: minutes * MINUTE_MS };
	if (!isAtOnce) return wait;
	const told = `This execution is suspended, since 'Suspend After' is 0. But ${obstacle?.why}.`;
	const warnings = [...(obstacle ? [told] : []), ...suspensionWarnings(context)];
	const isCalledBack = createsIn(items).length <= MOST_CALLED_BACK;
	const webhookUrl = isCalledBack ? resumeCallbackUrl(context, account) : undefined;
	return { ...wait, webhookUrl, warnings };
}

/** n8n links the output of a suspended node to the input by position, so each input item must have one output item. */
const isOneToOne = (items: readonly ItemPlan[], inputs: number) =>
	items.length === inputs && items.every((item) => item.kind === 'refused' || !item.output.split);

/** The default of *Timeout* for a run that can only be held, seconds. */
export const heldSeconds = (context: IExecuteFunctions): number =>
	hangsUp(context) ? MCP_PATIENCE_SECONDS : HELD_SECONDS;

/** Only n8n 2.41 and the last 2.39 have this name. They resume an execution if the end of its sub-execution was lost. */
const SINCE_N8N_SWEEPS = 'WAIT_FOR_SUB_EXECUTION';

/** Why a run is held to its end. */
interface Obstacle {
	/** As the end of a sentence: "This execution cannot be suspended: …". */
	why: string;
	/** What to do if the user chose to suspend at once: refuse, suspend anyway, or hold. */
	ifChosen: 'refuse' | 'suspend' | 'hold';
}

/**
 * @param isOneToOne whether each input item has one output item
 * @returns what prevents the suspension, if anything: a final obstacle before one that the user may ignore
 */
export function obstacleOf(context: IExecuteFunctions, isOneToOne: boolean): Obstacle | undefined {
	const obstacle = (ifChosen: Obstacle['ifChosen'], why: string): Obstacle => ({ ifChosen, why });
	if (isTool(context))
		return obstacle('refuse', 'an AI agent needs the answer of its tool at once');
	if (!handsOnResults) return obstacle('refuse', 'that needs n8n 2 or later');
	if (isEngineV2(context)) return obstacle('refuse', "n8n's engine v2 resumes no execution");
	if (!isOneToOne) {
		const why = 'n8n would link the items wrongly where an input item has several output items';
		return obstacle('hold', why);
	}
	const { saveDataSuccessExecution } = settingsOf(context);
	if (!(SINCE_N8N_SWEEPS in n8nWorkflow) && saveDataSuccessExecution === 'none') {
		const why =
			"this workflow saves no successful executions, and before 2.41 n8n in queue mode may delete them while they wait. Update n8n, or choose 'Save' in the workflow's settings";
		return obstacle('hold', why);
	}
	if (context.getMode() === 'evaluation')
		return obstacle('hold', 'n8n would end the evaluation at the suspension');
	const caller = waitingCaller(context);
	if (caller !== undefined)
		return obstacle('hold', `the caller of '${caller}' waits for the answer`);
	if (context.getMode() === 'integrated') {
		const why =
			"a sub-workflow that runs once for each item would give back the first result only. In the calling node, choose 'Run once with all items'";
		return obstacle('suspend', why);
	}
	return undefined;
}

/** @returns the trigger of this execution if its caller waits: n8n answers, or ends the stream, at the suspension */
function waitingCaller(context: IExecuteFunctions): string | undefined {
	const callers = context.getParentNodes(context.getNode().name, { includeNodeParameters: true });
	const hasRun = ({ name }: { name: string }) =>
		context.evaluateExpression(`{{ $(${inExpression(name)}).isExecuted }}`, 0) === true;
	const isWaiting = (caller: NodeTypeAndVersion) => {
		const mode = String(responseModeOf(caller));
		if (mode !== 'responseNode') return ['lastNode', 'streaming'].includes(mode);
		const nodes = Object.values(internalsOf(context).workflow?.nodes ?? {});
		return !nodes.some((node) => node.type.endsWith('.respondToWebhook') && hasRun(node));
	};
	return callers.find((caller) => !caller.disabled && isWaiting(caller) && hasRun(caller))?.name;
}

/** In a Webhook and a Form the mode is a parameter. In a chat it is an option, and has a default. */
function responseModeOf({ type, parameters }: NodeTypeAndVersion): unknown {
	const mode = (place: unknown) => (isRecord(place) ? place.responseMode : undefined);
	const fallback = type.endsWith('.chatTrigger') ? 'lastNode' : undefined;
	return mode(parameters) ?? mode(parameters?.options) ?? fallback;
}

/** The risks of a suspended execution on this n8n, as sentences for the log and the output panel. */
export function suspensionWarnings(context: IExecuteFunctions): string[] {
	const limit = timeLimitOf(context);
	const ofLimit = `This workflow has a time limit of ${limit} s, and n8n counts the wait: n8n cancels the execution if the tasks take longer. Raise the limit in the settings of the workflow. If n8n itself sets the limit: raise EXECUTIONS_TIMEOUT and EXECUTIONS_TIMEOUT_MAX.`;
	const ofRestart =
		"Before 2.41, a restart of n8n during the wait may let the items out early, with 'timedOut' and their task ids. Update n8n, or send such ids to Task → Wait.";
	return [
		...(limit < Infinity ? [ofLimit] : []),
		...(SINCE_N8N_SWEEPS in n8nWorkflow ? [] : [ofRestart]),
	];
}

/** The time limit of the workflow or of n8n, seconds; Infinity if there is none, or n8n does not tell. */
function timeLimitOf(context: IExecuteFunctions): number {
	const ofWorkflow = Number(settingsOf(context).executionTimeout ?? 0);
	const endsAt = internalsOf(context).additionalData?.executionTimeoutTimestamp;
	const ofN8n = typeof endsAt === 'number' ? Math.ceil((endsAt - Date.now()) / 1000) : Infinity;
	return Math.min(ofWorkflow > 0 ? ofWorkflow : Infinity, ofN8n);
}
