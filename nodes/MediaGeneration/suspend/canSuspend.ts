import type { IExecuteFunctions, NodeTypeAndVersion } from 'n8n-workflow';
import * as n8nWorkflow from 'n8n-workflow';

import { isEngineV2, inExpression, internalsOf, isTool, settingsOf } from '../shared/n8nInternals';
import { isRecord } from '../shared/json';

/** Part of n8n 2, and not of n8n 1, which may resume a suspended execution more than once. */
const SINCE_N8N_2 = 'validateWorkflowHasTriggerLikeNode';

/** Part of the versions that look for executions whose sub-execution has ended: 2.41, and the last of 2.39. */
const SINCE_N8N_SWEEPS = 'WAIT_FOR_SUB_EXECUTION';

/** Why a run is held to its end. */
export interface Obstacle {
	/** As the end of a sentence: "This execution cannot be suspended: …". */
	why: string;
	/** What to do where the user chose to suspend at once: refuse, suspend all the same, or hold. */
	ifChosen: 'refuse' | 'suspend' | 'hold';
}

/**
 * Whether n8n or the caller of this execution keeps it from being suspended.
 *
 * @returns undefined where nothing does
 */
export function obstacleOf(context: IExecuteFunctions): Obstacle | undefined {
	if (isTool(context))
		return obstacle('refuse', 'an AI agent needs the answer of its tool at once');
	if (!(SINCE_N8N_2 in n8nWorkflow)) return obstacle('refuse', 'that needs n8n 2 or later');
	if (isEngineV2(context)) return obstacle('refuse', "n8n's engine v2 resumes no execution");
	if (context.getMode() === 'integrated') {
		return obstacle(
			'suspend',
			'a sub-workflow that runs once for each item would give back the first result only',
		);
	}
	const { saveDataSuccessExecution } = settingsOf(context);
	if (!(SINCE_N8N_SWEEPS in n8nWorkflow) && saveDataSuccessExecution === 'none') {
		return obstacle(
			'hold',
			"before 2.41, n8n in queue mode may delete it, since this workflow saves no successful executions. Update n8n, or choose 'Save' in the workflow's settings",
		);
	}
	const caller = waitingCaller(context);
	return caller === undefined
		? undefined
		: obstacle('hold', `'${caller}' answers its caller when the last node has ended`);
}

const obstacle = (ifChosen: Obstacle['ifChosen'], why: string): Obstacle => ({ ifChosen, why });

/** @returns the trigger of this execution, if its caller waits for the last node */
function waitingCaller(context: IExecuteFunctions): string | undefined {
	const callers = context.getParentNodes(context.getNode().name, { includeNodeParameters: true });
	const hasRun = (node: string) =>
		context.evaluateExpression(`{{ $(${inExpression(node)}).isExecuted }}`, 0) === true;
	return callers.find(
		(caller) => !caller.disabled && answersAtTheEnd(caller) && hasRun(caller.name),
	)?.name;
}

/** A Webhook and a Form have the choice among their parameters. A chat has it among its options, and does so by default. */
function answersAtTheEnd({ type, parameters }: NodeTypeAndVersion): boolean {
	const mode = (place: unknown) => (isRecord(place) ? place.responseMode : undefined);
	const fallback = type.endsWith('.chatTrigger') ? 'lastNode' : undefined;
	return (mode(parameters) ?? mode(parameters?.options) ?? fallback) === 'lastNode';
}

/**
 * What may go wrong with a suspended execution on this n8n.
 *
 * @returns sentences for the log and the output panel
 */
export function suspensionWarnings(context: IExecuteFunctions): string[] {
	const limit = timeLimitOf(context);
	const ofLimit = `This workflow has a time limit of ${limit} s, and n8n counts the wait: it cancels the execution if the tasks take longer. Raise the limit in the settings of the workflow. If n8n itself sets the limit: raise EXECUTIONS_TIMEOUT and EXECUTIONS_TIMEOUT_MAX.`;
	const ofRestart =
		"Before 2.41, a restart of n8n during the wait may let the items out early, with 'timedOut' and their task ids. Update n8n, or send such ids to Task → Wait.";
	return [
		...(limit < Infinity ? [ofLimit] : []),
		...(SINCE_N8N_SWEEPS in n8nWorkflow ? [] : [ofRestart]),
	];
}

/**
 * n8n's own limit holds for a workflow without one, and n8n may have a largest one for those that have.
 *
 * @returns seconds; Infinity where there is none, or some versions of n8n do not tell
 */
function timeLimitOf(context: IExecuteFunctions): number {
	const ofWorkflow = Number(settingsOf(context).executionTimeout ?? 0);
	const endsAt = internalsOf(context).additionalData?.executionTimeoutTimestamp;
	const ofN8n = typeof endsAt === 'number' ? Math.ceil((endsAt - Date.now()) / 1000) : Infinity;
	return Math.min(ofWorkflow > 0 ? ofWorkflow : Infinity, ofN8n);
}
