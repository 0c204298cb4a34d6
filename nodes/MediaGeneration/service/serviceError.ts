/** What went wrong between this package and the service, in the words a user can act on. */
export type ServiceErrorKind =
	/** The service refused the API key (401, 403). */
	| 'unauthorized'
	/** The account has no credits left (402). */
	| 'noCredits'
	/** The service knows no such task for this account (404, 410). */
	| 'notFound'
	/** The account has too much under way, or asks too often (429). */
	| 'tooManyRequests'
	/** The service did not accept the request as it is (other 4xx). */
	| 'rejected'
	/** The service, or a gateway before it, points at another address (3xx). */
	| 'redirected'
	/** The service, or a gateway before it, answered with a 5xx. */
	| 'serviceDown'
	/** It could not connect: the request certainly did not reach the service. */
	| 'unreachable'
	/** The request left, and no complete answer came back. */
	| 'noAnswer'
	/** Something answered that does not speak as the specification says. */
	| 'unexpectedAnswer'
	/** JSON came back, but no task record with a state. */
	| 'unusableRecord'
	/** The execution was stopped while the request was under way. */
	| 'cancelled';

export interface ServiceErrorDetails {
	/** The next step for the user. */
	description?: string;
	statusCode?: number;
	/** How long the service asked to wait before the next request, in milliseconds. */
	retryAfterMs?: number;
	/** Whether the answer is none of the API's, but of something before it: a firewall, a gateway, a login page. */
	isForeign?: boolean;
}

/**
 * A request that did not bring what it was sent for.
 *
 * `message` says what happened, `description` what to do about it. Neither holds the API key.
 */
export class ServiceError extends Error {
	override readonly name = 'ServiceError';

	readonly description: string | undefined;

	readonly statusCode: number | undefined;

	readonly retryAfterMs: number | undefined;

	readonly isForeign: boolean;

	constructor(
		readonly kind: ServiceErrorKind,
		message: string,
		details: ServiceErrorDetails = {},
	) {
		super(message);
		this.description = details.description;
		this.statusCode = details.statusCode;
		this.retryAfterMs = details.retryAfterMs;
		this.isForeign = details.isForeign ?? false;
	}

	/** Whether the same read may well succeed a little later. */
	get isTransient(): boolean {
		return (
			this.isForeign ||
			this.kind === 'tooManyRequests' ||
			this.kind === 'serviceDown' ||
			this.kind === 'unreachable' ||
			this.kind === 'noAnswer' ||
			// A gateway's page or a body cut short says nothing about the task.
			this.kind === 'unexpectedAnswer' ||
			this.kind === 'unusableRecord'
		);
	}

	/** Whether the answer says that the request was done, and where to see what came of it. */
	get isSeeOther(): boolean {
		return this.kind === 'redirected' && this.statusCode === 303;
	}

	/**
	 * Whether the service cannot have acted on the request, so that sending it again cannot be paid twice:
	 * no connection, 429, or 503 with `Retry-After`.
	 */
	get certainlyNotTaken(): boolean {
		return (
			this.kind === 'unreachable' ||
			this.kind === 'tooManyRequests' ||
			(this.statusCode === 503 && this.retryAfterMs !== undefined)
		);
	}
}
