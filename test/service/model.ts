import { CallbackSender } from './callbacks';
import { type CreateRequest, parseCreate } from './createRequest';
import type { Effects } from './effects';
import { askToWait, ServiceError } from './errors';
import { type Fate, isObject, type Refusal, type Settings } from './settings';
import { fillIn } from './shapes';
import { Switches } from './switches';
import { type SimulatedTask, TaskStore } from './tasks';

const FIRST_KEY = 'sk-live-simulated-service-key';

const JSON_TYPE = 'application/json';

/** What the service says to a request. */
export interface Answer {
	status: number;
	headers: Readonly<Record<string, string>>;
	type: string;
	body: string;
	/** What becomes of the answer on its way. */
	fate?: Fate;
	/** Between two bytes of an answer that trickles, milliseconds. */
	everyMs?: number;
}

/** A request that has been taken: what it was to do is done. */
export interface Taken {
	/** The task that it has created. */
	taskId?: string;
	/** For how long the answer is held back, milliseconds or a range. */
	delayMs?: Settings['readDelayMs'];
	/** The answer, as things stand when it is given. */
	answer: () => Answer;
}

const json = (body: unknown, type = JSON_TYPE): Answer => ({
	status: 200,
	headers: {},
	type,
	body: typeof body === 'string' ? body : JSON.stringify(body),
});

const isPage = (body: unknown): boolean => typeof body === 'string' && body.startsWith('<');

/**
 * The answer that a switch asks for.
 *
 * @param now milliseconds since the epoch
 */
export function answerOfRefusal(refusal: Refusal, now = Date.now()): Answer {
	const { status, contentType, headers = {} } = refusal;
	const message = `The service is set to answer with ${status} here.`;
	const asked = askToWait(refusal, now);
	const given = 'body' in refusal ? refusal.body : { error: { code: 'simulated', message } };
	const body = isObject(given) ? { ...given, ...asked.fields } : given;
	return {
		...json(body, contentType ?? (isPage(body) ? 'text/html' : JSON_TYPE)),
		status,
		headers: { ...asked.headers, ...headers },
	};
}

/** The answer to a request that the service refuses by its rules. */
export const answerOfError = ({ status, headers, body }: ServiceError): Answer => ({
	...json(body),
	status,
	headers,
});

interface ModelOptions {
	settings?: Settings;
	mediaUrl: () => string;
	/** The base URL, for results below it. */
	baseUrl?: () => string;
	/** The switches of a task, where its input does not say them. */
	fate?: (create: CreateRequest) => Settings;
	/** Called when a task has ended, before its callback. */
	onEnd?: (task: SimulatedTask) => void;
}

/**
 * The rules of the service of the specification, without its network: what the three endpoints do and answer, and what
 * is called back. It runs behind HTTP, and in the virtual time of the simulation.
 */
export class ServiceModel {
	readonly switches: Switches;
	readonly store: TaskStore;
	readonly sender: CallbackSender;
	apiKey = FIRST_KEY;

	constructor(
		effects: Effects,
		private readonly options: ModelOptions,
	) {
		this.switches = new Switches(options.settings);
		this.sender = new CallbackSender(effects);
		const { mediaUrl, baseUrl = mediaUrl } = options;
		this.store = new TaskStore(this.switches, mediaUrl, baseUrl, effects, (task) => this.end(task));
	}

	/** Whether a request has the key. */
	hasKey(authorization: unknown): boolean {
		return authorization === `Bearer ${this.apiKey}`;
	}

	/** Section 5. @throws ServiceError 401 where the key is missing or wrong */
	authenticate(authorization: unknown): void {
		if (this.hasKey(authorization)) return;
		const message = 'The API key is missing or wrong: send "Authorization: Bearer <API_KEY>".';
		throw new ServiceError(401, 'unauthorized', message, { 'www-authenticate': 'Bearer' });
	}

	/** Section 4.1. @throws ServiceError where the body is wrong, or the account does not allow the task */
	create(body: unknown): Taken {
		const { switches, store } = this;
		const parsed = parseCreate(body);
		const own = { ...this.options.fate?.(parsed), ...parsed.own };
		// A client that tries again sends the same body: it is what tells one create from another.
		const scope = () => JSON.stringify(body);
		const refusal = switches.refusal('create', own, scope);
		if (refusal && !refusal.taken) return { answer: () => answerOfRefusal(refusal) };

		const task = store.create({ ...parsed, own });
		const { taskId } = task;
		const { createShape = { taskId } } = switches.for(own);
		return {
			taskId,
			answer: () => ({
				...(refusal
					? answerOfRefusal(refusal)
					: json(fillIn(createShape, { $taskId: taskId, $record: store.present(task) }))),
				...switches.way('create', own, scope),
			}),
		};
	}

	/** Section 4.2. */
	read(taskId: string): Taken {
		const { switches, store } = this;
		const own = store.tasks.get(taskId)?.own;
		const scope = () => taskId;
		const refusal = switches.refusal('read', own, scope);
		if (refusal) return { answer: () => answerOfRefusal(refusal) };
		const { readDelayMs, readShape = '$record' } = switches.for(own);
		return {
			delayMs: readDelayMs,
			answer: () => ({
				...json(fillIn(readShape, { $taskId: taskId, $record: store.read(taskId) })),
				...switches.way('read', own, scope),
			}),
		};
	}

	/** Section 4.3. */
	credits(): Taken {
		const refusal = this.switches.refusal('credits');
		if (refusal) return { answer: () => answerOfRefusal(refusal) };
		const { balance, reserved } = this.store;
		const { creditsShape = { balance, reserved } } = this.switches.for();
		const body = json(fillIn(creditsShape, { $balance: balance }));
		return { answer: () => ({ ...body, ...this.switches.way('credits') }) };
	}

	/** What a callback of a task says (section 6). */
	callbackBody(task: SimulatedTask): unknown {
		const { callbackShape = '$record' } = this.switches.for(task.own);
		return fillIn(callbackShape, { $taskId: task.taskId, $record: this.store.present(task) });
	}

	/** Forgets tasks and callbacks, and restores the balance; the switches stay. */
	clear(): void {
		this.store.clear();
		this.sender.clear();
	}

	private end(task: SimulatedTask): void {
		this.options.onEnd?.(task);
		const { taskId, webhookUrl: url, own } = task;
		if (!url) return;
		this.sender.send({ taskId, url, body: this.callbackBody(task) }, this.switches.for(own));
	}
}
