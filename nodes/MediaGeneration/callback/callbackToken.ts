import { createHmac, randomUUID, timingSafeEqual } from 'crypto';
import { type IExecuteFunctions, UserError } from 'n8n-workflow';

import { digest } from '../shared/json';
import { nodeContext } from '../n8n/internals';

/** The query parameter of a callback address that carries the token. */
export const TOKEN_PARAMETER = 'token';

/** The query parameter of a callback address that carries the user's reference, which comes back with the result. */
export const REFERENCE_PARAMETER = 'reference';

/**
 * The address to give to the service as `webhook_url`.
 *
 * @param url the URL of a Media Generation Trigger, with or without a token
 * @param reference comes back with the callback, and is signed by the token; if left out, the URL keeps its reference
 * @returns the URL with its token
 * @throws UserError if the URL is not an http or https address
 */
export function callbackAddress(url: string, apiKey: string, reference?: string): string {
	const given = url.trim();
	if (!/^https?:/i.test(given) || !URL.canParse(given)) {
		throw new UserError(
			`The parameter 'Callback URL' is not a valid address: '${url.split('?', 1)[0]}'`,
			{
				description:
					'Copy the production URL from the Media Generation Trigger, which starts with https:// or http://.',
			},
		);
	}
	const address = new URL(given);
	const { pathname, searchParams } = address;
	// A URL cannot hold half of a surrogate pair.
	const carried = (reference ?? searchParams.get(REFERENCE_PARAMETER))?.toWellFormed();
	searchParams.delete(REFERENCE_PARAMETER);
	searchParams.set(TOKEN_PARAMETER, callbackToken(pathname, apiKey, carried));
	// The reference comes last: in a decoded address nobody can tell where a reference ends.
	if (carried !== undefined) searchParams.set(REFERENCE_PARAMETER, carried);
	return address.href;
}

/**
 * The token that proves that the holder of the API key gave out this callback address. The specification shows no
 * signature on callbacks (section 6), so the address itself carries the proof.
 *
 * @param path the path of the callback URL, e.g. `/webhook/…/callback`
 * @param reference the reference in the address, if any. A line break separates path and reference: a path has none.
 * @returns hex HMAC-SHA-256 of the path and the reference, keyed with the API key
 */
export function callbackToken(path: string, apiKey: string, reference?: string): string {
	return sign(reference === undefined ? path : `${path}\n${reference}`, apiKey);
}

/** Whether a callback address has a valid token. n8n parses a repeated query parameter to a list. */
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
	// The comparison takes constant time, so that nobody guesses a signature byte by byte.
	return given.length === right.length && timingSafeEqual(given, right);
}

/** The header that asks a trigger to start its workflow again for a task that has started the workflow before. */
export const START_AGAIN_HEADER = 'x-media-generation-start-again';

/** To be raised when the signed text changes: sender and receiver may run different versions of this package. */
const VERSION = 1;

/** How old a request may be; the clocks of two hosts may differ by as much. */
const MAX_AGE_MS = 5 * 60_000;

/** The key in the node's context, which n8n stores with the execution. */
const KEY = 'startAgainExecution';

/** What is to start again. */
interface Subject {
	/** The path of the trigger's URL. */
	path: string;
	taskId: string;
	apiKey: string;
}

/**
 * Names the run of the node that asks to start again, in all its tries. Each run starts the workflow once for a task.
 */
export function startAgainRun(context: IExecuteFunctions): string {
	const store = nodeContext(context);
	// n8n's Agents have no executions, so each call of an Agent is a run.
	const execution = (store[KEY] ??= context.getExecutionId() ?? randomUUID());
	const { $runIndex } = context.getWorkflowDataProxy(0);
	return digest([context.getWorkflow().id, context.getNode().id, execution, $runIndex ?? 0]);
}

/**
 * The header that makes a trigger start again. The signature covers more than a callback address holds, so the
 * address alone does not allow to start again. The header is valid for minutes, so it is of no use in a log.
 *
 * @param run `startAgainRun`
 * @param now the time of day, milliseconds since 1970: the receiver compares it with its own clock
 */
export function startAgainHeader(
	subject: Subject,
	run: string,
	now = Date.now(),
): Record<string, string> {
	return { [START_AGAIN_HEADER]: `${VERSION}.${now}.${run}.${signature(subject, now, run)}` };
}

/** @returns the run that asks; undefined if the header is not valid for the task, the path and the time */
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

/** A path begins with a slash, so this signature is never a callback token. */
function signature({ path, taskId, apiKey }: Subject, at: number, run: string): string {
	return sign(['start again', path, at, run, taskId].join('\n'), apiKey);
}
