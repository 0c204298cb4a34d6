import { UserError } from 'n8n-workflow';

import { ServiceError } from '../service/serviceError';

/**
 * What a create that failed means for its task: the service certainly made none and may make one later (`sendAgain`), or
 * made none and will make none (`refused`), or may have made one (`unknown`).
 */
export type FailedCreate = 'sendAgain' | 'refused' | 'unknown';

/** Kinds of error after which the task may exist all the same. */
const UNCLEAR: Array<ServiceError['kind']> = [
	'noAnswer',
	'serviceDown',
	'unexpectedAnswer',
	'cancelled',
];

/**
 * Decides whether a create that failed may be sent a second time: only where the service certainly did not take the
 * first. All else would be paid for twice if it did. (`connect` does the same where the key was changed.)
 *
 * @see specification, section 7
 */
export function maySendAgain(error: unknown): FailedCreate {
	// With a UserError n8n itself refuses to send anything.
	if (!(error instanceof ServiceError)) return error instanceof UserError ? 'refused' : 'unknown';
	const { kind, statusCode, retryAfterMs } = error;
	const isNotReached = kind === 'unreachable';
	const isTooEarly =
		kind === 'tooManyRequests' || (statusCode === 503 && retryAfterMs !== undefined);
	if (isNotReached || isTooEarly) return 'sendAgain';
	// 303 says that the request was done, and where to see what came of it.
	const isSeeOther = kind === 'redirected' && statusCode === 303;
	return isSeeOther || UNCLEAR.includes(kind) ? 'unknown' : 'refused';
}
