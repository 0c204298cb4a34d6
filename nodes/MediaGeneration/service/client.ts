import type { IDataObject } from 'n8n-workflow';

import { isRecord } from './json';
import { ServiceError, type ServiceErrorKind } from './serviceError';
import { findServiceMessage } from './serviceMessage';
import { asTaskId, findTaskId, parseTaskRecord, type TaskRecord } from './taskRecord';

export interface HttpRequest {
	method: 'GET' | 'POST';
	url: string;
	body?: IDataObject;
	/** Milliseconds until the request is given up. */
	timeoutMs: number;
}

export interface HttpResponse {
	statusCode: number;
	headers: Record<string, unknown>;
	body: string;
}

/**
 * Sends one request with the API key and brings the answer, whatever its status. Follows no redirect, so that
 * the key goes to no other address.
 *
 * @throws ServiceError `unreachable`, `noAnswer` or `cancelled`
 */
export type Transport = (request: HttpRequest) => Promise<HttpResponse>;

/** The body of a create request (specification, section 4.1). */
export interface TaskRequest {
	model: string;
	input: IDataObject;
	webhookUrl?: string;
}

export interface CreatedTask {
	taskId: string;
	/** The create response as received. */
	record: IDataObject;
}

/** Long, since a video's reference image travels in the body and a lost answer may be a paid task. */
const CREATE_TIMEOUT_MS = 120_000;
const READ_TIMEOUT_MS = 30_000;

/** From this length on a key stands nowhere by chance. */
const MIN_TELLING_KEY = 12;

/** The whole interface of the service (specification, section 4). */
export class ServiceClient {
	/**
	 * @param transport sends the requests
	 * @param baseUrl the address of the service, as `parseBaseUrl` returns it
	 * @param secrets the API keys, which are cut out of whatever the service says before anybody reads it. There is
	 *   more than one where the key was changed meanwhile: the transport adds it.
	 */
	constructor(
		private readonly transport: Transport,
		private readonly baseUrl: string,
		private readonly secrets: readonly string[],
	) {}

	/**
	 * Creates a task. Sends exactly one request: whether a second may follow is the caller's to decide, by
	 * `certainlyNotTaken` of the error.
	 *
	 * @throws ServiceError
	 * @see specification, section 4.1
	 */
	async createTask({ model, input, webhookUrl }: TaskRequest): Promise<CreatedTask> {
		const response = await this.send({
			method: 'POST',
			path: '/api/generate',
			body: { model, input, ...(webhookUrl !== undefined && { webhook_url: webhookUrl }) },
			timeoutMs: CREATE_TIMEOUT_MS,
		});
		const record = this.parseJson(response);
		const taskId = findTaskId(record);
		if (!isRecord(record) || taskId === undefined) {
			throw this.unexpected('The service accepted the task but named no task id', response);
		}
		return { taskId, record };
	}

	/**
	 * Reads a task.
	 *
	 * @param taskId any string; it is encoded, so that it reaches no other endpoint
	 * @param timeoutMs milliseconds until the read is given up
	 * @throws ServiceError
	 * @see specification, section 4.2
	 */
	async readTask(taskId: string, timeoutMs = READ_TIMEOUT_MS): Promise<TaskRecord> {
		const id = asTaskId(taskId);
		if (id === undefined) {
			throw new ServiceError('notFound', `'${taskId}' cannot be a task id`, {
				description: 'Use the task id that the service returned when the task was created.',
			});
		}
		const response = await this.send(
			{ method: 'GET', path: `/api/generate/${encodeURIComponent(id)}`, timeoutMs },
			id,
		);
		return parseTaskRecord(id, this.parseJson(response));
	}

	/**
	 * Reads the account's credits.
	 *
	 * @returns the parsed JSON body, whose shape the specification does not show
	 * @throws ServiceError
	 * @see specification, section 4.3
	 */
	async readCredits(): Promise<unknown> {
		return this.parseJson(
			await this.send({ method: 'GET', path: '/api/credits', timeoutMs: READ_TIMEOUT_MS }),
		);
	}

	private async send(
		{ path, ...request }: Omit<HttpRequest, 'url'> & { path: string },
		taskId?: string,
	): Promise<HttpResponse> {
		const response = await this.transport({ ...request, url: this.baseUrl + path });
		const { statusCode, body } = response;
		if (statusCode < 200 || statusCode >= 300) throw this.refusal(response, taskId);
		// A short key, as test accounts have, may stand in a result URL by chance: a record is then left as it is.
		const telling = this.secrets.filter(({ length }) => length >= MIN_TELLING_KEY);
		return { ...response, body: clean(body, telling) };
	}

	private parseJson(response: HttpResponse): unknown {
		try {
			return JSON.parse(response.body) as unknown;
		} catch {
			throw this.unexpected('The service answered with something that is not JSON', response);
		}
	}

	private unexpected(message: string, response: HttpResponse): ServiceError {
		const excerpt = findServiceMessage(clean(response.body, this.secrets))?.slice(0, 120);
		return new ServiceError('unexpectedAnswer', message, {
			description: `Check that the 'Base URL' of the credential is the address of the media generation service, and that no login page or proxy stands before it. The answer ${excerpt === undefined ? 'was empty' : `begins: ${excerpt}`}`,
		});
	}

	private refusal(response: HttpResponse, taskId: string | undefined): ServiceError {
		const { statusCode } = response;
		const { kind, what, next } = explainStatus(statusCode, taskId);
		const said = serviceMessageOf(clean(response.body, this.secrets));
		return new ServiceError(kind, said === undefined ? what : `${what}: ${said}`, {
			description: next,
			statusCode,
			retryAfterMs: retryAfterMs(response.headers['retry-after'], Date.now()),
		});
	}
}

/** Takes keys out of what the service says, also as JSON writes them. */
function clean(text: string, secrets: readonly string[]): string {
	return secrets.reduce(
		(rest, secret) =>
			rest.replaceAll(secret, '***').replaceAll(JSON.stringify(secret).slice(1, -1), '***'),
		text,
	);
}

/** The service's own words in the body of an error answer; a web page has none worth reading. */
function serviceMessageOf(body: string): string | undefined {
	let parsed: unknown;
	try {
		parsed = JSON.parse(body);
	} catch {
		parsed = /^\s*</.test(body) ? undefined : body;
	}
	return findServiceMessage(parsed);
}

interface Explanation {
	kind: ServiceErrorKind;
	/** What happened. */
	what: string;
	/** What to do next. */
	next: string;
}

/** Status codes are not shown in the specification (section 7): these are what HTTP says of them. */
function explainStatus(statusCode: number, taskId: string | undefined): Explanation {
	if (statusCode >= 300 && statusCode < 400) {
		return {
			kind: 'rejected',
			what: `The service redirects to another address (HTTP ${statusCode})`,
			next: "Enter the final address as the 'Base URL' of the credential. Redirects are not followed, so that the API key goes nowhere else.",
		};
	}
	if (statusCode >= 500 || statusCode === 408) {
		return {
			kind: 'serviceDown',
			what: `The service is not working at the moment (HTTP ${statusCode})`,
			next: 'Try again later. A task that was created goes on at the service: fetch it with the operation Task → Wait.',
		};
	}
	switch (statusCode) {
		case 401:
		case 403:
			return {
				kind: 'unauthorized',
				what: `The service refused the API key (HTTP ${statusCode})`,
				next: "Open the Media Generation credential and paste the API key of your account again. Live keys begin with sk-live-. Check that the 'Base URL' belongs to the same account.",
			};
		case 402:
			return {
				kind: 'noCredits',
				what: 'The account has not enough credits for this task (HTTP 402)',
				next: 'Buy credits at the service, then run the items that are left again. The Media Generation Credits node shows the balance.',
			};
		case 404:
		case 410:
			return taskId === undefined
				? {
						kind: 'notFound',
						what: `The service has no such address (HTTP ${statusCode})`,
						next: "Check the 'Base URL' of the credential: it must be the part before /api/generate.",
					}
				: {
						kind: 'notFound',
						what: `The service knows no task ${taskId} for this account (HTTP ${statusCode})`,
						next: 'Check the task id, and that the credential belongs to the account that created the task.',
					};
		case 429:
			return {
				kind: 'tooManyRequests',
				what: 'The account has too many tasks or requests under way (HTTP 429)',
				next: "Lower 'Max Tasks in Flight' in the options, or wait until other tasks of the account are finished.",
			};
		default:
			return {
				kind: 'rejected',
				what: `The service did not accept the request (HTTP ${statusCode})`,
				next: 'Check the model and the input fields of this item against what the service offers.',
			};
	}
}

/**
 * Reads a `Retry-After` header: seconds, or a date.
 *
 * @param now the present time, milliseconds since 1970
 * @returns milliseconds to wait, or undefined where the header is absent or makes no sense
 */
export function retryAfterMs(header: unknown, now: number): number | undefined {
	if (typeof header !== 'string' || header.trim() === '') return undefined;
	if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number(header) * 1000;
	// Every date in a header names its day or month; `-5` would pass for a date too.
	const date = /[a-z]{3}/i.test(header) ? Date.parse(header) : NaN;
	return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
