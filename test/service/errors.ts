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
