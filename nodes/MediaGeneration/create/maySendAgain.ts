import { UserError } from 'n8n-workflow';

import { ServiceError } from '../service/serviceError';

/**
 * What a failed create means for its task. `sendAgain`: there is no task, and a second create may succeed. `refused`:
 * there is no task, and a second create would be refused as well. `unknown`: there may be a task.
 */
type FailedCreate = 'sendAgain' | 'refused' | 'unknown';

/** These redirects ask for the same request at another address. With 302 and 303 a service may point to a new task. */
const MOVED = [301, 307, 308];

/** After these kinds of error the task may exist. */
const UNCLEAR: Array<ServiceError['kind']> = ['noAnswer', 'serviceDown', 'unexpectedAnswer'];

/**
 * Decides whether a failed create may be sent again: only if the service certainly did not take the task. Otherwise both
 * creates may be paid for. (`connect` sends a create again by the same rule if the key was changed.)
 *
 * @see specification, section 7
 */
export function maySendAgain(error: unknown): FailedCreate {
	// n8n throws a UserError if n8n itself refuses to send the request.
	if (!(error instanceof ServiceError)) return error instanceof UserError ? 'refused' : 'unknown';
	const { kind, statusCode, retryAfterMs } = error;
	const isNotReached = kind === 'unreachable';
	const isTooEarly =
		kind === 'tooManyRequests' || (statusCode === 503 && retryAfterMs !== undefined);
	if (isNotReached || isTooEarly) return 'sendAgain';
	const mayBeProcessed = kind === 'redirected' && !MOVED.includes(Number(statusCode));
	return mayBeProcessed || UNCLEAR.includes(kind) ? 'unknown' : 'refused';
}
