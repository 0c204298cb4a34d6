/** A refusal by the service, answered as `{ error: { code, message } }` (section 7 shows no shape). */
export class ServiceError extends Error {
	constructor(
		readonly status: number,
		readonly code: string,
		message: string,
		readonly headers: Readonly<Record<string, string>> = {},
	) {
		super(message);
		this.name = 'ServiceError';
	}

	get body() {
		return { error: { code: this.code, message: this.message } };
	}
}

/** The header that says how long to wait: seconds, or an HTTP date. */
export const retryAfterHeader = (value: number | string | undefined): Record<string, string> =>
	value === undefined ? {} : { 'retry-after': String(value) };
