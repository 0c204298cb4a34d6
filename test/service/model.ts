import { CallbackSender } from './callbacks';
import { type CreateRequest, parseCreate } from './createRequest';
import type { Effects } from './effects';
import { retryAfterHeader, ServiceError } from './errors';
import type { Refusal, Settings } from './settings';
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
	/** What happens to the answer on its way. */
	fate?: 'dropped' | 'cut short';
}

/** A request that has been taken: what it was to do is done. */
export interface Taken {
	/** The task that it has created. */
	taskId?: string;
	/** For how long the answer is held back, milliseconds or a range. */
	delayMs?: Settings['createDelayMs'];
	/** The answer, as things stand when it is given. */
	answer: () => Answer;
}

const json = (body: unknown, type = JSON_TYPE): Answer => ({
	status: 200,
	headers: {},
	type,
	body: typeof body === 'string' ? body : JSON.stringify(body),
});

/** The error answer that a switch asks for. */
export function answerOfRefusal(refusal: Refusal): Answer {
	const { status, retryAfter, contentType, headers = {} } = refusal;
	const message = `The service is set to answer with ${status} here.`;
	const body = 'body' in refusal ? refusal.body : { error: { code: 'simulated', message } };
	return {
		...json(body, contentType),
		status,
		headers: { ...retryAfterHeader(retryAfter), ...headers },
	};
}

/** The answer to a request that the service refuses by its rules. */
export const answerOfError = ({ status, headers, body }: ServiceError): Answer => ({
	...json(body),
	status,
	headers,
});

/** Answers to a create, from the one of section 4.1 to those that a client must get along with. */
const CREATE_ANSWERS: Record<
	NonNullable<Settings['createShape']>,
	(task: SimulatedTask, record: () => unknown) => Answer
> = {
	flat: ({ taskId }) => json({ taskId }),
	record: (_task, record) => json(record()),
	missing: () => json({}),
	array: ({ taskId }) => json([taskId]),
	html: () =>
		json('<!doctype html><title>Accepted</title><p>Your task was accepted.</p>', 'text/html'),
};

interface ModelOptions {
	settings?: Settings;
	mediaUrl: () => string;
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
		this.store = new TaskStore(this.switches, options.mediaUrl, effects, (task) => this.end(task));
	}

	/** Section 5. @throws ServiceError 401 where the key is missing or wrong */
	authenticate(authorization: unknown): void {
		if (authorization === `Bearer ${this.apiKey}`) return;
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
		const refusal = switches.refusal('createStatus', own, scope);
		if (refusal) return { answer: () => answerOfRefusal(refusal) };

		const task = store.create({ ...parsed, own });
		const { createDelayMs, createShape = 'flat' } = switches.for(own);
		return {
			taskId: task.taskId,
			delayMs: createDelayMs,
			answer: () => ({
				...CREATE_ANSWERS[createShape](task, () => store.present(task)),
				...(switches.accident('createLost', own, scope) && { fate: 'dropped' }),
			}),
		};
	}

	/** Section 4.2. */
	read(taskId: string): Taken {
		const { switches, store } = this;
		const own = store.tasks.get(taskId)?.own;
		const scope = () => taskId;
		const refusal = switches.refusal('readStatus', own, scope);
		if (refusal) return { answer: () => answerOfRefusal(refusal) };
		return {
			delayMs: switches.for(own).readDelayMs,
			answer: () => {
				if (switches.accident('readDropped', own, scope)) return { ...json(''), fate: 'dropped' };
				const record = json(store.read(taskId));
				const isCut = switches.accident('readCutShort', own, scope);
				return { ...record, ...(isCut && { fate: 'cut short' }) };
			},
		};
	}

	/** Section 4.3. */
	credits(): Taken {
		const refusal = this.switches.refusal('creditsStatus');
		if (refusal) return { answer: () => answerOfRefusal(refusal) };
		const { balance, reserved } = this.store;
		const { creditsShape = { balance: '$balance', reserved } } = this.switches.for();
		const body = JSON.stringify(creditsShape).replaceAll('"$balance"', String(balance));
		return { answer: () => json(body) };
	}

	/** What a callback of a task says (section 6). */
	callbackBody(task: SimulatedTask): unknown {
		const record = this.store.present(task);
		if (this.switches.for(task.own).callbackShape !== 'event') return record;
		return { id: 'event-1', type: 'task.finished', data: record };
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
