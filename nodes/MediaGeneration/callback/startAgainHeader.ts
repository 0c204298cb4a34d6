import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { digest } from '../shared/json';
import { isSame, sign } from './callbackToken';

/** The header with which a request asks a trigger to start for a task although it has started for it before. */
export const START_AGAIN_HEADER = 'x-media-generation-start-again';

/** Raised when what is signed changes: the two sides may be of different versions of this package. */
const VERSION = 1;

/** For how long a request is good, and how far the clocks of two hosts may be apart. */
const MAX_AGE_MS = 5 * 60_000;

/** The place in the node's context that n8n stores with the execution. */
const KEY = 'startAgainExecution';

interface Subject {
	/** The path of the trigger's URL. */
	path: string;
	taskId: string;
	apiKey: string;
}

/**
 * Names the run of a node that asks to start again: each starts a task once. A second try of the same run has the
 * same name, by *Retry On Fail* or from the list of executions; and there is one name for all items of a run.
 */
export function startAgainRun(context: IExecuteFunctions): string {
	const store: IDataObject = context.getContext('node');
	const execution = (store[KEY] ??= context.getExecutionId());
	const { $runIndex } = context.getWorkflowDataProxy(0);
	return digest([context.getWorkflow().id, context.getNode().id, execution, $runIndex ?? 0]);
}

/**
 * The header that makes a trigger start again. It is signed with the API key, over more than a callback address
 * holds, so that whoever got hold of an address cannot do it; and it is good for minutes, so that it is of no use in
 * a log.
 *
 * @param run names who asks: `startAgainRun`
 * @param now milliseconds since 1970, by the clock on the wall, since another host compares it with its own
 */
export function startAgainHeader(
	subject: Subject,
	run: string,
	now = Date.now(),
): Record<string, string> {
	return { [START_AGAIN_HEADER]: `${VERSION}.${now}.${run}.${signature(subject, now, run)}` };
}

/**
 * Checks such a header.
 *
 * @param header as it was received
 * @returns who asks, or undefined where the header is not good for the task, the path and the moment
 */
export function checkStartAgain(
	header: unknown,
	subject: Subject,
	now = Date.now(),
): string | undefined {
	const [, version, at = '', run = '', sent] =
		/^(\d{1,3})\.(\d{1,15})\.([0-9a-f]{32})\.([0-9a-f]{64})$/.exec(String(header)) ?? [];
	const isGood =
		Number(version) === VERSION &&
		Math.abs(now - Number(at)) <= MAX_AGE_MS &&
		isSame(sent, signature(subject, Number(at), run));
	return isGood ? run : undefined;
}

/** A path begins with a slash, so this is nobody's callback token. */
function signature({ path, taskId, apiKey }: Subject, at: number, run: string): string {
	return sign(['start again', path, at, run, taskId].join('\n'), apiKey);
}
