import type { IExecuteFunctions, NodeTypeAndVersion } from 'n8n-workflow';

import {
	executionIdOf,
	hangsUp,
	inExpression,
	internalsOf,
	isCalled,
	isEngineV2,
	isTool,
	modeOf,
} from '../n8n/internals';
import { stretchOf } from '../n8n/stretch';
import { BEFORE_LIMIT_MS } from '../read/readWindow';
import { clock, MINUTE_MS } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isRecord } from '../shared/json';
import type { ItemParameters } from '../shared/parameters';
import { isAwaited, type ItemPlan } from './planTypes';

/** The default of *Timeout* for a run that may sleep: it holds no memory. */
export const DAY_SECONDS = 86_400;
/** The same for a run that can only be held: so long a person waits, and the agent of a chat. */
const HELD_SECONDS = 600;

/** n8n's and most other MCP clients wait a minute for a tool. The rest is for the answer. */
const MCP_SECONDS = 50;

/**
 * So long before the limit the wait ends, so that the items leave: the last reads stand in line, and take some seconds. Of a
 * limit of some seconds the wait has half.
 */
const LAST_MS = 10_000;

/** What is left must be worth a sleep, milliseconds. */
const WORTH_A_SLEEP_MS = 60_000;

/** How long a run waits, and whether and when it sleeps. */
export interface WaitPlan {
	/** The default of *Timeout*, seconds. */
	seconds: number;
	/** Milliseconds from the start of the run to its first sleep; Infinity if the run is held to its end. */
	suspendAfterMs: number;
	/** When n8n's time limit cancels the execution, and when the wait ends for it; milliseconds of the clock. */
	limitAt: number;
	endsAt: number;
	/** Warnings about the wait for the user. */
	warnings: string[];
}

/**
 * Decides whether and when a run goes to sleep.
 *
 * @param first the parameters of the first item, which hold for the whole run
 * @param limitAt when n8n's time limit cancels the execution, milliseconds of the clock
 * @throws ItemError if the user chose to sleep at once, and n8n cannot wake the execution
 */
export function planWait(
	items: readonly ItemPlan[],
	first: ItemParameters,
	limitAt: number,
): WaitPlan {
	const { context } = first;
	const { startedAt } = stretchOf(context);
	const lastMs = Math.min(LAST_MS, (limitAt - startedAt) / 2);
	const ends = { limitAt, endsAt: limitAt - lastMs };
	const held = { seconds: DAY_SECONDS, suspendAfterMs: Infinity, ...ends, warnings: [] };
	if (!items.some(isAwaited)) return held;
	const minutes = first.number('suspendAfter');
	const obstacle = obstacleOf(context);
	if (obstacle === undefined) {
		return isNearLimit(limitAt) ? held : { ...held, suspendAfterMs: minutes * MINUTE_MS };
	}
	const { why, isRefused, loss } = obstacle;
	if (loss !== undefined) {
		// The wait may take as long as the caller does.
		const isChosen = first.option('suspendAfter') !== undefined;
		if (!isChosen) return hangsUp(context) ? { ...held, seconds: MCP_SECONDS } : held;
		const warnings = [`This run may sleep, because 'Sleep After' is set, and ${why}. ${loss}`];
		return { ...held, suspendAfterMs: minutes * MINUTE_MS, warnings };
	}
	const seconds = heldSeconds(context);
	if (minutes > 0) return { ...held, seconds };
	if (!isRefused) {
		return { ...held, seconds, warnings: [`This run does not sleep, since ${why}.`] };
	}
	throw new ItemError(`This run cannot be stored before its first task is created: ${why}`, {
		description:
			"Remove the option 'Sleep After', so that the node waits without sleeping. No task was created.",
	});
}

/** Whether n8n's time limit comes so soon that a run must not sleep: n8n may wake it after the limit. */
export const isNearLimit = (limitAt: number): boolean =>
	limitAt - clock.now() < BEFORE_LIMIT_MS + WORTH_A_SLEEP_MS;

/** The default of *Timeout* for a run that can only be held, seconds. */
export const heldSeconds = (context: IExecuteFunctions): number =>
	hangsUp(context) ? MCP_SECONDS : HELD_SECONDS;

interface Obstacle {
	why: string;
	/** Whether the user's choice to sleep at once is refused; otherwise the run is held. */
	isRefused?: boolean;
	/** What n8n loses if the run sleeps all the same, because the user has set *Sleep After*. */
	loss?: string;
}

/** What n8n hands over when a sub-workflow has slept. */
const LOSS =
	'Of a workflow that has slept, n8n gives the waiting workflow the last run of the last node only, and its files cannot be read any more. Remove the option, so that the run is held.';

function obstacleOf(context: IExecuteFunctions): Obstacle | undefined {
	if (isTool(context)) {
		return { why: 'an AI agent needs the answer of its tool at once', isRefused: true };
	}
	if (isEngineV2(context)) return { why: "n8n's engine v2 wakes no execution", isRefused: true };
	if (modeOf(context) === 'evaluation') {
		return { why: 'n8n would end the evaluation when the run goes to sleep' };
	}
	if (executionIdOf(context) === undefined) {
		return { why: 'n8n has given it no execution that could be woken' };
	}
	if (isCalled(context)) {
		return { why: 'another workflow waits for the end of this workflow', loss: LOSS };
	}
	const caller = waitingCaller(context);
	return caller === undefined
		? undefined
		: { why: `the caller of '${caller}' waits for the answer` };
}

/** @returns the trigger of this execution if its caller waits: n8n answers, or ends the stream, when the run sleeps */
function waitingCaller(context: IExecuteFunctions): string | undefined {
	const { name } = context.getNode();
	const callers = internalsOf(context).getParentNodes?.(name, { includeNodeParameters: true });
	const hasRun = ({ name }: { name: string }) =>
		context.evaluateExpression(`{{ $(${inExpression(name)}).isExecuted }}`, 0) === true;
	const isWaiting = (caller: NodeTypeAndVersion) => {
		const mode = String(responseModeOf(caller));
		// Where an expression gives the mode, the run is held.
		if (mode !== 'responseNode') return /^(=|lastNode$|streaming$)/.test(mode);
		const nodes = Object.values(internalsOf(context).workflow?.nodes ?? {});
		return !nodes.some((node) => node.type.endsWith('.respondToWebhook') && hasRun(node));
	};
	return callers?.find((caller) => !caller.disabled && isWaiting(caller) && hasRun(caller))?.name;
}

/** In a Webhook and a Form the mode is a parameter. In a chat it is an option, and has a default. */
function responseModeOf({ type, parameters }: NodeTypeAndVersion): unknown {
	const mode = (fields: unknown) => (isRecord(fields) ? fields.responseMode : undefined);
	const fallback = type.endsWith('.chatTrigger') ? 'lastNode' : undefined;
	return mode(parameters) ?? mode(parameters?.options) ?? fallback;
}
