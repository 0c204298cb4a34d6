import { isRecord, plainFields } from '../shared/json';

/** What may go wrong at the service, and whether the same read may succeed a little later. */
const IS_TRANSIENT = {
	/** The service refused the API key (401, 403). */
	unauthorized: false,
	/** The account has no credits left (402). */
	noCredits: false,
	/** The service knows no such task for this account (404, 410). */
	notFound: false,
	/** The account has too many unfinished tasks, or asks too often (429). */
	tooManyRequests: true,
	/** The service did not accept the request as it is (other 4xx). */
	rejected: false,
	/** The service, or a gateway before it, points at another address (3xx). */
	redirected: false,
	/** The service, or a gateway before it, answered with a 5xx. */
	serviceDown: true,
	/** There was no connection, so the request certainly did not reach the service. */
	unreachable: true,
	/** The request left, and no complete answer came back. */
	noAnswer: true,
	/** The answer is not as the specification says: a page of a gateway, or a body that was cut off. */
	unexpectedAnswer: true,
	/** The answer is JSON, but no task record with a state. */
	unusableRecord: true,
};

export type ServiceErrorKind = keyof typeof IS_TRANSIENT;

/** A request that failed. `message` says what happened, `description` says what to do. Neither contains the API key. */
export class ServiceError extends Error {
	override readonly name = 'ServiceError';
	readonly description?: string;
	readonly statusCode?: number;

	/** How long the service asked to wait before the next request, milliseconds. */
	readonly retryAfterMs?: number | undefined;

	/** Whether the answer comes from something in front of the API: a firewall, a gateway, a login page. */
	readonly isForeign: boolean = false;

	constructor(
		readonly kind: ServiceErrorKind,
		message: string,
		details: Pick<
			Partial<ServiceError>,
			'description' | 'statusCode' | 'retryAfterMs' | 'isForeign'
		> = {},
	) {
		super(message);
		Object.assign(this, details);
	}

	get isNoSuchTask(): boolean {
		return this.kind === 'notFound' && !this.isForeign;
	}
	get isNotYet(): boolean {
		return this.kind === 'unusableRecord';
	}
	get asksToSlowDown(): boolean {
		return (
			this.kind === 'tooManyRequests' ||
			(this.statusCode === 503 && this.retryAfterMs !== undefined)
		);
	}

	get isTransient(): boolean {
		return this.isForeign || IS_TRANSIENT[this.kind];
	}

	/** Whether the error concerns the task that was read, and not the service: other tasks can be read. */
	get isOfOneTask(): boolean {
		return this.kind === 'unusableRecord' || (this.kind === 'notFound' && !this.isForeign);
	}
}

type Explanation = [kind: ServiceErrorKind, what: string, next: string];

const CHECK_TASK =
	'Check the task id, and that the credential belongs to the account that created the task.';

/** The specification does not show status codes (section 7). These are the meanings in HTTP. */
export function explainStatus(statusCode: number, taskId: string | undefined): Explanation {
	if (statusCode >= 300 && statusCode < 400) {
		return [
			'redirected',
			`The service redirects to another address (HTTP ${statusCode})`,
			"Enter the final address as the 'Base URL' of the credential. Redirects are not followed, so that the API key goes nowhere else.",
		];
	}
	if (statusCode >= 500 || statusCode === 408) {
		return [
			'serviceDown',
			`The service is not working at the moment (HTTP ${statusCode})`,
			'The service may work again later. A task that was created goes on: fetch it with the operation Task → Wait.',
		];
	}
	switch (statusCode) {
		case 401:
		case 403:
			return [
				'unauthorized',
				`The service refused the API key (HTTP ${statusCode})`,
				"Open the Media Generation credential and paste the API key of your account again. Live keys begin with sk-live-. Check that the 'Base URL' belongs to the same account.",
			];
		case 402:
			return [
				'noCredits',
				'The account has not enough credits for this task (HTTP 402)',
				'Buy credits at the service, then run the items that are left again. The Media Generation Credits node shows the balance.',
			];
		case 404:
		case 410:
			if (taskId === undefined) {
				return [
					'notFound',
					`The service has no such address (HTTP ${statusCode})`,
					"Check the 'Base URL' of the credential: it must be the part before /api/generate.",
				];
			}
			return [
				'notFound',
				`The service knows no task ${taskId} for this account (HTTP ${statusCode})`,
				CHECK_TASK,
			];
		case 429:
			return [
				'tooManyRequests',
				'The account has too many tasks or requests under way (HTTP 429)',
				'Wait until other tasks of the account are finished, or run fewer of them at the same time.',
			];
		default:
			return [
				'rejected',
				`The service did not accept the request (HTTP ${statusCode})`,
				taskId === undefined
					? 'Check the model and the input fields of this item against what the service offers.'
					: CHECK_TASK,
			];
	}
}

/** Longer than any wait for a task. A longer time may not be a valid date. */
const LONGEST_PAUSE_MS = 30 * 86_400_000;

/**
 * Reads a `Retry-After` header: seconds, or a date by the sender's clock, which the `Date` header tells.
 *
 * @param now milliseconds since 1970
 * @returns milliseconds to wait, or undefined if the header is missing or makes no sense
 */
export function retryAfterMs(
	{ 'retry-after': header, date: sentAt }: Record<string, unknown>,
	now: number,
): number | undefined {
	if (typeof header !== 'string' || header.trim() === '') return undefined;
	const isNumber = /^\s*\d+(\.\d+)?\s*$/.test(header);
	// A date in a header names its day or month; `-5` would pass for a date otherwise.
	const date = /[a-z]{3}/i.test(header) ? Date.parse(header) : NaN;
	const ms = isNumber ? Number(header) * 1000 : date - (Date.parse(String(sentAt)) || now);
	return Number.isNaN(ms) ? undefined : Math.min(LONGEST_PAUSE_MS, Math.max(0, ms));
}

/** The fields of a failed task's record that may hold the reason, as `plainFields` writes them. */
export const WHY_FIELDS = ['message', 'error', 'errormessage', 'detail', 'reason', 'failurereason'];

/** The same for other answers. In a task record these fields repeat what the user sent. */
const FURTHER_FIELDS = ['msg', 'details', 'description', 'title', 'errors', 'data'];

const MAX_DEPTH = 4;
const MAX_LENGTH = 500;

/**
 * Finds the message in an answer whose shape is not known.
 *
 * @param fields the fields of an object to look in, as `plainFields` writes them
 * @returns one line of at most 500 characters, or undefined if there is no message
 */
export function findServiceMessage(
	body: unknown,
	fields = [...WHY_FIELDS, ...FURTHER_FIELDS],
	depth = 0,
): string | undefined {
	if (typeof body === 'string') {
		return body.replace(/\s+/g, ' ').trim().slice(0, MAX_LENGTH) || undefined;
	}
	if (depth >= MAX_DEPTH) return undefined;
	const named = isRecord(body) ? plainFields(body) : undefined;
	const places = named ? fields.map((field) => named.get(field)) : Array.isArray(body) ? body : [];
	for (const place of places) {
		const message = findServiceMessage(place, undefined, depth + 1);
		if (message !== undefined) return message;
	}
	return undefined;
}
