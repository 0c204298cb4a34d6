import type { IDataObject } from 'n8n-workflow';

import { isOutOfReach, TOKEN_PARAMETER } from '../shared/addresses';
import { clock, settled } from '../shared/clock';
import { messageOf, withoutStop } from '../shared/itemError';
import { cutDataUris, quoted } from '../shared/media';
import { findServiceMessage, rootOf } from './answerFields';
import type { Answer } from './boundedAnswer';
import {
	checkModel,
	hasBalance,
	isOfModel,
	type Order,
	orderOf,
	resultsIn,
	taskIdIn,
	taskPath,
	testPath,
} from './door';
import { classifyAnswer } from './meaning';
import { SecretRedactor } from './redactSecrets';
import { adviseModel, type PricedModel } from './money';
import {
	type Asked,
	explainKind,
	isOfOrder,
	lookAtOrder,
	moneyHint,
	orChangePrompt,
	ServiceError,
	type ServiceErrorKind,
} from './serviceError';
import { type Service, SPECIFICATION } from './services';
import { linksIn, parseTaskRecord, type TaskRecord } from './taskRecord';

/** A request to the service, without its key. */
export interface HttpRequest {
	method: 'GET' | 'POST';
	url: string;
	/** JSON. */
	body?: string;
	/** Milliseconds until the request fails with `noAnswer`, even if its answer has begun. */
	timeoutMs: number;
}

/**
 * Sends one request with the API key, and returns the answer, whatever its status. Follows no redirect, so that the key
 * goes to no other address.
 *
 * @throws ServiceError `unreachable` or `noAnswer`; Stopped if the execution was stopped during a read
 */
export type Transport = (request: HttpRequest) => Promise<Answer>;

/** The body of a create request (specification, section 4.1). */
type TaskRequest = Pick<Order, 'model' | 'input'> & { webhookUrl?: string | undefined };

/** The answer to a create that the service has taken. */
export interface CreatedTask {
	taskId: string;
	/** The create response as received; long data URIs are cut. */
	record: IDataObject;
}

/** Long, because a lost answer may mean a paid task. */
const CREATE_TIMEOUT_MS = 120_000;
/** A file in the body gets this much time more, because the timeout includes the upload; also for a slow line. */
const LEAST_BYTES_PER_MS = 100;
const READ_TIMEOUT_MS = 30_000;

/** The least time between two reads of a task (specification, sections 4.2 and 8). */
export const MIN_READ_INTERVAL_MS = 2_000;

/** The least time between two requests of a run, milliseconds: 200 creates at once would open 200 connections. */
export const REQUEST_GAP_MS = 4;

/** A long text in an answer, such as the prompt, would push the id out of the excerpt. Ids are shorter as a rule. */
const LONG_TEXT = /"[^"]{200,}"/g;

/** The query parameter of a callback address that carries the model, if the ids of tasks begin with it. */
export const MODEL_PARAMETER = 'model';

/** Refusals of what a request is about, and not of the key, the account or the moment. */
const OF_RESULT: readonly ServiceErrorKind[] = ['rejected', 'tooLarge', 'forbidden', 'notFound'];

const NOT_JSON = 'The service answered with something that is not JSON';

const FOREIGN =
	'The answer is not JSON: it may come from a firewall or a proxy before the service.';

/** The whole interface of the service (specification, section 4). */
export class ServiceClient {
	private readonly secrets: SecretRedactor;

	/**
	 * @param baseUrl the address of the service, as `parseBaseUrl` returns it
	 * @param keys the API keys, which are removed from whatever the service says. If the key was changed, the transport
	 *   adds the new key.
	 * @param service the row of the service
	 * @param models those of the account
	 */
	constructor(
		private readonly transport: Transport,
		private readonly baseUrl: string,
		keys: readonly string[],
		private readonly service: Service = SPECIFICATION,
		private readonly models: readonly PricedModel[] = [],
	) {
		this.secrets = new SecretRedactor(keys);
	}

	/** Hides the token of a callback address in whatever the service says. */
	hideToken(token: unknown): void {
		this.secrets.add(token);
	}

	/**
	 * Creates a task. Sends exactly one request: the caller decides whether a second request may follow.
	 *
	 * @throws ServiceError
	 * @see docs/service.openapi.yaml, section 4.1
	 */
	async createTask({ model, input, webhookUrl }: TaskRequest): Promise<CreatedTask> {
		if (webhookUrl !== undefined)
			this.hideToken(new URL(webhookUrl).searchParams.get(TOKEN_PARAMETER));
		// Services refuse a create whose callback cannot arrive. Without callbacks n8n looks for the results by itself.
		const isSent = webhookUrl !== undefined && !isOutOfReach(webhookUrl, this.baseUrl);
		checkModel(this.service, model);
		const callback = isSent ? this.withModel(webhookUrl, model) : undefined;
		const { path, body: task } = orderOf(this.service, { model, input, callback });
		// Text and not an object, because n8n's HTTP library leaves out fields such as `prototype`.
		const written = await settled(async () => JSON.stringify(task));
		if ('error' in written) {
			throw new ServiceError('rejected', 'The request is too large to be sent', {
				description: `Send smaller files, or choose 'Links' in 'Send Files As'. ${messageOf(written.error)}`,
			});
		}
		const body = written.value;
		const timeoutMs = CREATE_TIMEOUT_MS + Math.floor(body.length / LEAST_BYTES_PER_MS);
		const request = { method: 'POST', path, body, timeoutMs } as const;
		const { parsed, response } = await this.send(request, 'create', model);
		const taskId = taskIdIn(parsed, this.service, model);
		const record = rootOf(parsed);
		if (record && taskId !== undefined) return { taskId, record: cutDataUris(record) };
		if (parsed === undefined) throw this.unexpected(NOT_JSON, response);
		const said = findServiceMessage(parsed);
		const words = said === undefined ? '' : `: ${this.secrets.hide(said)}`;
		throw this.unexpected(`The service named no task id${words}`, response);
	}

	/** A callback address that tells the model, if the ids of the service's tasks begin with the model. */
	private withModel(callback: string, model: string): string {
		if (!isOfModel(this.service)) return callback;
		const sign = callback.includes('?') ? '&' : '?';
		return `${callback}${sign}${MODEL_PARAMETER}=${encodeURIComponent(model)}`;
	}

	/**
	 * Reads a task once, and its result, if the service has it at another path.
	 *
	 * @param taskId an id from `asTaskId`, so that the URL leads to no other endpoint
	 * @param limitMs milliseconds until the read fails, if that is sooner than usual
	 * @throws ServiceError
	 * @see docs/service.openapi.yaml, section 4.2
	 */
	async readTask(taskId: string, limitMs = Infinity): Promise<TaskRecord> {
		const { baseUrl, service } = this;
		const most = Math.min(READ_TIMEOUT_MS, limitMs);
		const endsAt = clock.now() + most;
		const read = async (template: string, timeoutMs: number) => {
			const path = taskPath(service, template, taskId);
			return (await this.send({ method: 'GET', path, timeoutMs }, { taskId })).parsed;
		};
		const task = parseTaskRecord(taskId, await read(service.read, most), baseUrl, service);
		if (task.state !== 'SUCCESS') return task;
		if (service.results.startsWith('/')) {
			return { ...task, resultUrls: [baseUrl + taskPath(service, service.results, taskId)] };
		}
		if (service.result === '') return task;
		const { error } = task.record;
		if (error) return { ...task, state: 'FAILURE', reason: findServiceMessage(error) };
		const result = await settled(read(service.result, Math.max(1, endsAt - clock.now())));
		if ('value' in result) {
			const { value } = result;
			const record = { ...task.record, ...cutDataUris(rootOf(value) ?? {}) };
			return { ...task, record, ...linksIn(resultsIn(value, service), baseUrl) };
		}
		const failure = result.error;
		// The service has said that the task is at its end: what it refuses now is the result, if not the key or the moment.
		if (!(failure instanceof ServiceError) || !OF_RESULT.includes(failure.kind)) throw failure;
		return { ...task, state: 'FAILURE', reason: failure.said ?? failure.message };
	}

	/**
	 * Reads the balance of the account.
	 *
	 * @returns the parsed JSON body, whose shape the specification does not show
	 * @throws ServiceError
	 * @see docs/service.openapi.yaml, section 4.3
	 */
	async readCredits(): Promise<unknown> {
		if (!hasBalance(this.service)) {
			throw new ServiceError('rejected', 'This service does not tell the balance to an API key', {
				description: 'Look at the balance in your account at the service.',
			});
		}
		const timeoutMs = READ_TIMEOUT_MS;
		const request = { method: 'GET', path: testPath(this.service), timeoutMs } as const;
		const { parsed, response } = await this.send(request, 'credits');
		if (parsed !== undefined) return parsed;
		throw this.unexpected(NOT_JSON, response);
	}

	/** @returns the parsed body of an answer with a 2xx; undefined if the body is empty */
	private async send(
		{ path, ...request }: Omit<HttpRequest, 'url'> & { path: string },
		asked: Asked,
		model = '',
	): Promise<{ parsed: unknown; response: Answer }> {
		const response = await this.transport({ ...request, url: this.baseUrl + path });
		const body = this.secrets.hideInRecord(response.body);
		const { said, spoken, status, ...meaning } = classifyAnswer({ ...response, body }, Date.now());
		const { kind, speaker, taken, scope } = meaning;
		if (kind === 'answered') return { parsed: spoken, response };
		if (kind === 'unexpectedAnswer') throw this.unexpected(NOT_JSON, response);
		const [what, next] = explainKind(kind, asked, { scope, create: this.service.create });
		// The true status may stand in the body.
		const code = `${status === response.statusCode ? 'HTTP' : 'code'} ${status}`;
		const hidden = said === undefined ? undefined : this.secrets.hide(said);
		const words = hidden === undefined ? '' : `: ${hidden}`;
		// Who speaks JSON knows its own address: what it refuses is the model, or a field.
		const isOrder = asked === 'create' && isOfOrder(kind, status) && spoken !== undefined;
		const message =
			isOrder && hidden !== undefined
				? `${withoutStop(hidden)} (HTTP ${status})`
				: `${what} (${code})${words}`;
		// An id or a location in the answer is the only way to a task that this create may have made, or to the right address.
		const mayExist = asked === 'create' && taken === 'unknown';
		const named = this.nameOf(
			(mayExist && taskIdIn(spoken, this.service)) || response.headers.location,
		);
		const money = asked === 'create' ? moneyHint(kind, said) : undefined;
		const advised = isOrder ? (adviseModel(model, this.models) ?? lookAtOrder(kind, model)) : next;
		const advice = asked === 'create' ? orChangePrompt(kind, advised, said) : advised;
		const hints = [advice, money, speaker === 'stranger' && FOREIGN, named];
		const description = hints.filter(Boolean).join(' ');
		const endsBatch = asked === 'create' && ['noCredits', 'unauthorized'].includes(kind);
		const details = { description, statusCode: status, meaning, said: hidden, endsBatch };
		throw new ServiceError(kind, message, details);
	}

	private unexpected(message: string, { headers, body }: Answer): ServiceError {
		// The excerpt may contain the id of a paid task, in a field that is not searched for an id.
		const said = this.secrets
			.hide(body)
			.replace(/\\["\\]/g, "'")
			.replace(LONG_TEXT, '"…"');
		const excerpt = findServiceMessage(said);
		const check =
			"Check that the 'Base URL' of the credential is the address of the media generation service, and that no login page or proxy stands before it.";
		const answer =
			excerpt === undefined ? 'The answer was empty.' : `The answer begins: ${excerpt}`;
		const description = [check, this.nameOf(headers.location), answer].filter(Boolean).join(' ');
		return new ServiceError('unexpectedAnswer', message, { description });
	}

	/** @param named the id or the address of a task that may exist, as the service wrote it */
	private nameOf(named: unknown): string | undefined {
		return named ? `The answer names ${quoted(this.secrets.hide(String(named)))}.` : undefined;
	}
}
