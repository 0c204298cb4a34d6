import type { IDataObject } from 'n8n-workflow';

import { cutDataUris } from '../shared/dataUri';
import { messageOf } from '../shared/itemError';
import { isRecord, parsedJson } from '../shared/json';
import { settled } from '../shared/promises';
import { SecretRedactor } from './redactSecrets';
import { explainStatus, findServiceMessage, retryAfterMs, ServiceError } from './serviceError';
import { findTaskId, parseTaskRecord, type TaskRecord } from './taskRecord';

export interface HttpRequest {
	method: 'GET' | 'POST';
	url: string;
	/** JSON. */
	body?: string;
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
 * @throws ServiceError `unreachable` or `noAnswer`; Stopped where the execution was stopped during a read
 */
export type Transport = (request: HttpRequest) => Promise<HttpResponse>;

/** The body of a create request (specification, section 4.1). */
interface TaskRequest {
	model: string;
	input: IDataObject;
	webhookUrl?: string | undefined;
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

/** Nearer to each other than this no two reads of one task may be (specification, sections 4.2 and 8). */
export const MIN_READ_INTERVAL_MS = 2_000;

/** One unlucky answer about a task must not end a paid task: only so many in a row do, held or suspended. */
export const MAX_UNLUCKY_ANSWERS = 3;

/** In an answer: a prompt that comes back would push the id out of an excerpt. No id has so many characters as a rule. */
const LONG_TEXT = /"[^"]{200,}"/g;

const FOREIGN =
	'The answer is not JSON: it may come from a firewall or a proxy before the service.';

/** The whole interface of the service (specification, section 4). */
export class ServiceClient {
	private readonly secrets: SecretRedactor;

	/**
	 * @param baseUrl the address of the service, as `parseBaseUrl` returns it
	 * @param keys the API keys, which are cut out of whatever the service says before anybody reads it. The transport
	 *   adds the new key where the key was changed meanwhile.
	 */
	constructor(
		private readonly transport: Transport,
		private readonly baseUrl: string,
		keys: readonly string[],
	) {
		this.secrets = new SecretRedactor(keys);
	}

	/**
	 * Creates a task. Sends exactly one request: whether a second may follow is the caller's to decide.
	 *
	 * @throws ServiceError
	 * @see specification, section 4.1
	 */
	async createTask({ model, input, webhookUrl }: TaskRequest): Promise<CreatedTask> {
		if (webhookUrl !== undefined) this.secrets.add(webhookUrl);
		const task = { model, input, webhook_url: webhookUrl };
		// As text: of an object, n8n's HTTP library leaves out fields such as `prototype`.
		const written = await settled(async () => JSON.stringify(task));
		if ('error' in written) {
			throw new ServiceError('rejected', 'The request is too large to be sent', {
				description: `Send smaller files, or choose 'Links' in 'Send Files As'. ${messageOf(written.error)}`,
			});
		}
		const body = written.value;
		const timeoutMs = CREATE_TIMEOUT_MS + Math.floor(body.length / LEAST_BYTES_PER_MS);
		const request = { method: 'POST', path: '/api/generate', body, timeoutMs } as const;
		const { parsed: record, body: answer } = await this.send(request);
		const taskId = findTaskId(record);
		if (isRecord(record) && taskId !== undefined) return { taskId, record: cutDataUris(record) };
		throw this.unexpected('The service accepted the task but named no task id', answer);
	}

	/**
	 * @param taskId as `asTaskId` lets it through, so that it reaches no other endpoint
	 * @param timeoutMs milliseconds until the read is given up
	 * @throws ServiceError
	 * @see specification, section 4.2
	 */
	async readTask(taskId: string, timeoutMs = READ_TIMEOUT_MS): Promise<TaskRecord> {
		const path = `/api/generate/${encodeURIComponent(taskId)}`;
		const { parsed } = await this.send({ method: 'GET', path, timeoutMs }, taskId);
		return parseTaskRecord(taskId, parsed);
	}

	/**
	 * @returns the parsed JSON body, whose shape the specification does not show
	 * @throws ServiceError
	 * @see specification, section 4.3
	 */
	async readCredits(): Promise<unknown> {
		const request = { method: 'GET', path: '/api/credits', timeoutMs: READ_TIMEOUT_MS } as const;
		return (await this.send(request)).parsed;
	}

	private async send(
		{ path, ...request }: Omit<HttpRequest, 'url'> & { path: string },
		taskId?: string,
	): Promise<{ parsed: unknown; body: string }> {
		const response = await this.transport({ ...request, url: this.baseUrl + path });
		const { statusCode, body } = response;
		if (statusCode < 200 || statusCode >= 300) throw this.refusal(response, taskId);
		const parsed = parsedJson(this.secrets.hideInRecord(body));
		if (parsed !== undefined) return { parsed, body };
		throw this.unexpected('The service answered with something that is not JSON', body);
	}

	private unexpected(message: string, body: string): ServiceError {
		// The id of a task that is paid for may stand where nobody looks for it, and is the only way to it.
		const said = this.secrets
			.hide(body)
			.replace(/\\["\\]/g, "'")
			.replace(LONG_TEXT, '"…"');
		const excerpt = findServiceMessage(said);
		return new ServiceError('unexpectedAnswer', message, {
			description: `Check that the 'Base URL' of the credential is the address of the media generation service, and that no login page or proxy stands before it. The answer ${excerpt === undefined ? 'was empty' : `begins: ${excerpt}`}`,
		});
	}

	private refusal({ statusCode, headers, body }: HttpResponse, taskId?: string): ServiceError {
		const [kind, what, next] = explainStatus(statusCode, taskId);
		const text = this.secrets.hide(body);
		const spoken = parsedJson(text);
		const said = findServiceMessage(spoken ?? (/^\s*</.test(text) ? undefined : text));
		const isForeign = statusCode >= 400 && spoken === undefined && text.trim() !== '';
		// Of a create that may have made a task: there is no other way to it.
		const named = findTaskId(spoken) ?? this.secrets.hide(String(headers.location ?? ''));
		const mayExist = kind === 'serviceDown' || kind === 'redirected';
		const isToName = mayExist && taskId === undefined && named !== '';
		const hints = [next, isForeign && FOREIGN, isToName && `The answer names ${named}.`];
		return new ServiceError(kind, said === undefined ? what : `${what}: ${said}`, {
			description: hints.filter(Boolean).join(' '),
			statusCode,
			retryAfterMs: retryAfterMs(headers, Date.now()),
			isForeign,
		});
	}
}
