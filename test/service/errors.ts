import type { AskedWait } from './settings';

/** A refusal by the service, answered as `{ error: { code, message } }` (section 7 shows no shape). */
export class ServiceError extends Error {
	constructor(
		readonly status: number,
		readonly code: string,
		message: string,
		readonly headers: Readonly<Record<string, string>> = {},
		/** Further fields of the error. */
		private readonly fields: object = {},
	) {
		super(message);
		this.name = 'ServiceError';
	}

	get body() {
		return { error: { code: this.code, message: this.message, ...this.fields } };
	}
}

/**
 * What says how long to wait.
 *
 * @param now milliseconds since the epoch
 */
export function askToWait({ retryAfter, retryAfterIn = 'retry-after' }: AskedWait, now: number) {
	const says: { headers: Record<string, string>; fields: object } = { headers: {}, fields: {} };
	const seconds = Number(retryAfter);
	if (retryAfter === undefined) return says;
	if (retryAfterIn === 'body') says.fields = { retry_after: retryAfter };
	else if (retryAfterIn === 'retry-after-ms') says.headers[retryAfterIn] = String(seconds * 1000);
	else if (retryAfterIn === 'x-ratelimit-reset') {
		says.headers[retryAfterIn] = String(Math.ceil(now / 1000 + seconds));
	} else says.headers[retryAfterIn] = String(retryAfter);
	return says;
}
