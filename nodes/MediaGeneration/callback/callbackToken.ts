import { createHmac, randomUUID, timingSafeEqual } from 'crypto';
import { type IExecuteFunctions, UserError } from 'n8n-workflow';

import { digest } from '../shared/json';
import { nodeContext } from '../shared/n8nInternals';

/** The query parameter of a callback address that carries the token. */
export const TOKEN_PARAMETER = 'token';

/** The query parameter of a callback address that carries what the user wants to get back with the result. */
export const REFERENCE_PARAMETER = 'reference';

/**
 * The address to give to the service as `webhook_url`.
 *
 * @param url the URL of a Media Generation Trigger, with or without a token
 * @param reference comes back with the callback, under the token; where left out, the URL keeps what it has
 * @returns the URL with its token
 * @throws UserError where it is no http or https address
 */
export function callbackAddress(url: string, apiKey: string, reference?: string): string {
	if (!/^https?:/i.test(url.trim()) || !URL.canParse(url.trim())) {
		throw new UserError(
			`The parameter 'Callback URL' is not a valid address: '${url.split('?', 1)[0]}'`,
			{
				description:
					'Copy the production URL from the Media Generation Trigger, which starts with https:// or http://.',
			},
		);
	}
	const address = new URL(url.trim());
	const { pathname, searchParams } = address;
	const kept = reference ?? searchParams.get(REFERENCE_PARAMETER) ?? undefined;
	// Half of a character cannot travel.
	const carried = kept?.toWellFormed();
	searchParams.delete(REFERENCE_PARAMETER);
	searchParams.set(TOKEN_PARAMETER, callbackToken(pathname, apiKey, carried));
	// Last: where somebody shows the address decoded, nobody sees where the reference ends, and the token must be found.
	if (carried !== undefined) searchParams.set(REFERENCE_PARAMETER, carried);
	return address.href;
}

/**
 * The token that proves that a callback address was given out by somebody who has the API key. The specification
 * shows no signature on callbacks (section 6), so the address itself carries the proof.
 *
 * @param path the path of the callback URL, e.g. `/webhook/…/callback`
 * @param reference the address's reference, if it carries one. A line break sets it apart: a path has none.
 * @returns hex HMAC-SHA-256 of the path, and of the reference behind it, keyed with the API key
 */
export function callbackToken(path: string, apiKey: string, reference?: string): string {
	return sign(reference === undefined ? path : `${path}\n${reference}`, apiKey);
}

/**
 * Whether a callback came to an address that was given out with its token. n8n parses a query parameter to a list where
 * it is there more than once.
 */
export function isTokenValid(
	token: unknown,
	path: string,
	apiKey: string,
	reference?: unknown,
): boolean {
	if (reference !== undefined && typeof reference !== 'string') return false;
	return isSame(token, callbackToken(path, apiKey, reference));
}

function sign(text: string, apiKey: string): string {
	return createHmac('sha256', apiKey).update(text).digest('hex');
}

function isSame(sent: unknown, expected: string): boolean {
	if (typeof sent !== 'string') return false;
	const [given, right] = [Buffer.from(sent), Buffer.from(expected)];
	// Constant time, so that a signature cannot be guessed byte by byte.
	return given.length === right.length && timingSafeEqual(given, right);
}

/** The header with which a request asks a trigger to start for a task although it has started for it before. */
export const START_AGAIN_HEADER = 'x-media-generation-start-again';

/** Raised when what is signed changes: the two sides may be of different versions of this package. */
const VERSION = 1;

/** For how long a request is good, and how far the clocks of two hosts may be apart. */
const MAX_AGE_MS = 5 * 60_000;

/** The place in the node's context that n8n stores with the execution. */
const KEY = 'startAgainExecution';

/** What is to start again: the path of the trigger's URL, and the task. */
interface Subject {
	path: string;
	taskId: string;
	apiKey: string;
}

/**
 * Names the run of a node that asks to start again: each starts a task once. A second try of the same run has the
 * same name, by *Retry On Fail* or from the list of executions; and there is one name for all items of a run.
 */
export function startAgainRun(context: IExecuteFunctions): string {
	const store = nodeContext(context);
	// n8n's Agents have no executions, so each of their calls is a run.
	const execution = (store[KEY] ??= context.getExecutionId() ?? randomUUID());
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

/** @returns who asks, or undefined where the header is not good for the task, the path and the moment */
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
