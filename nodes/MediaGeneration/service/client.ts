import type { IDataObject } from 'n8n-workflow';

import { cutDataUris } from '../shared/dataUri';
import { isRecord, parsedJson } from '../shared/json';
import { CallbackTokens } from './redactTokens';
import { retryAfterMs, ServiceError, explainStatus } from './serviceError';
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
	/** The create response as received; long data URIs are cut. */
	record: IDataObject;
}

/** Long, since a lost answer may be a paid task. */
const CREATE_TIMEOUT_MS = 120_000;
/** A file that travels in the body gets its time besides, also on a slow line: the timeout counts the sending, too. */
const LEAST_BYTES_PER_MS = 100;
const READ_TIMEOUT_MS = 30_000;

/** From this length on a key stands nowhere by chance. */
const MIN_TELLING_KEY = 12;

const FOREIGN =
	'The answer is not JSON: it may come from a firewall or a proxy before the service.';

/** The whole interface of the service (specification, section 4). */
export class ServiceClient {
	private readonly tokens = new CallbackTokens();

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
		if (webhookUrl !== undefined) this.tokens.add(webhookUrl);
		const response = await this.send({
			method: 'POST',
			path: '/api/generate',
			body: { model, input, ...(webhookUrl !== undefined && { webhook_url: webhookUrl }) },
			timeoutMs: CREATE_TIMEOUT_MS + Math.floor(textLength(input) / LEAST_BYTES_PER_MS),
		});
		const record = this.parseJson(response);
		const taskId = findTaskId(record);
		if (!isRecord(record) || taskId === undefined) {
			// Its id may stand where nobody looks for it, and is the only way to a task that is paid for.
			throw this.unexpected('The service accepted the task but named no task id', response, 500);
		}
		return { taskId, record: cutDataUris(record) };
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
		return { ...response, body: this.clean(body, telling) };
	}

	/** Takes keys and callback tokens out of what the service says, also as JSON writes them. */
	private clean(text: string, secrets = this.secrets): string {
		const written = secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
		return this.tokens.hide(written.reduce((rest, secret) => rest.replaceAll(secret, '***'), text));
	}

	private parseJson(response: HttpResponse): unknown {
		const parsed = parsedJson(response.body);
		if (parsed !== undefined) return parsed;
		throw this.unexpected('The service answered with something that is not JSON', response);
	}

	private unexpected(message: string, response: HttpResponse, longest = 120): ServiceError {
		const excerpt = findServiceMessage(this.clean(response.body))?.slice(0, longest);
		return new ServiceError('unexpectedAnswer', message, {
			description: `Check that the 'Base URL' of the credential is the address of the media generation service, and that no login page or proxy stands before it. The answer ${excerpt === undefined ? 'was empty' : `begins: ${excerpt}`}`,
		});
	}

	private refusal(response: HttpResponse, taskId: string | undefined): ServiceError {
		const { statusCode } = response;
		const [kind, what, next] = explainStatus(statusCode, taskId);
		const body = this.clean(response.body);
		const spoken = parsedJson(body);
		const said = findServiceMessage(spoken ?? (/^\s*</.test(body) ? undefined : body));
		const isForeign = statusCode >= 400 && spoken === undefined && body.trim() !== '';
		const hint = isForeign ? ` ${FOREIGN}` : '';
		return new ServiceError(kind, said === undefined ? what : `${what}: ${said}`, {
			description: next + hint,
			statusCode,
			retryAfterMs: retryAfterMs(response.headers['retry-after'], Date.now()),
			isForeign,
		});
	}
}

/** The characters of all texts in a value: nothing else makes a body long. */
function textLength(value: unknown): number {
	if (typeof value === 'string') return value.length;
	if (typeof value !== 'object' || value === null) return 0;
	return Object.values(value).reduce((sum: number, entry) => sum + textLength(entry), 0);
}
