import { randomUUID } from 'node:crypto';

import { ServiceError } from './errors';
import { KNOWN_MODELS, kindOf, priceInCredits, roundCredits } from './prices';
import {
	type Outcome,
	type Settings,
	type Switches,
	draw,
	mergeSettings,
	parseSettings,
} from './settings';
const DEFAULT_LATENCY = [1000, 3000] as const;
const DEFAULT_FAILURE = 'The generation failed upstream.';

/** The task record (section 2). */
export interface TaskRecord {
	taskId: string;
	state: 'PENDING' | Outcome;
	/** Set when the task has succeeded. */
	resultUrls?: string[];
	/** Set when the task is terminal; 0 for a failed one. */
	creditsConsumed?: number;
	model: string;
	/** The prompt metadata, as sent. */
	input: Readonly<Record<string, unknown>>;
	createdAt: string;
	completedAt?: string;
	error?: { message: string };
}

/** A task with what the service knows about it beyond its record. */
export interface SimulatedTask {
	readonly taskId: string;
	readonly record: TaskRecord;
	readonly webhookUrl?: string;
	/** Milliseconds since the epoch. */
	readonly createdAt: number;
	completedAt?: number;
	/** How often the task was read. */
	reads: number;
	/** Credits held back until the task is terminal. */
	readonly reserved: number;
	/** The switches of this task alone. */
	readonly own: Settings;
	/** How many results it makes. */
	readonly resultCount: number;
}

/** A request to create a task (section 4.1), checked. */
export interface CreateRequest {
	model: string;
	input: Readonly<Record<string, unknown>>;
	webhookUrl?: string;
	own: Settings;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
	typeof value === 'object' && value !== null && !Array.isArray(value);

const isHttpUrl = (value: unknown): value is string =>
	typeof value === 'string' && URL.canParse(value) && /^https?:/i.test(value);

const invalid = (message: string) => new ServiceError(400, 'invalid_request', message);

/** Checks the body of a create request (section 4.1). */
export function parseCreate(body: unknown): CreateRequest {
	if (!isObject(body)) throw invalid('The body must be a JSON object.');
	const { model, input, webhook_url: webhookUrl } = body;
	if (typeof model !== 'string' || !/^[^/\s]+\/\S+$/.test(model)) {
		throw invalid('"model" must be a string of the form <provider>/<model-name>.');
	}
	if (!isObject(input)) throw invalid('"input" must be an object.');
	if (KNOWN_MODELS.includes(model) && typeof input.prompt !== 'string') {
		throw invalid(`"input.prompt" must be a string for ${model}.`);
	}
	if (webhookUrl !== undefined && !isHttpUrl(webhookUrl)) {
		throw invalid('"webhook_url" must be an http or https address.');
	}
	const own = isObject(input.simulate) ? mergeSettings({}, parseSettings(input.simulate)) : {};
	return { model, input, webhookUrl, own };
}

/** The tasks of the account, their life cycle (section 3) and its credits (sections 1 and 2). */
export class TaskStore {
	readonly tasks = new Map<string, SimulatedTask>();
	/** The same tasks, oldest first, to show the latest without walking through all. */
	readonly inOrder: SimulatedTask[] = [];
	private readonly timers = new Map<string, NodeJS.Timeout>();
	private available: number;
	private held = 0;
	/** Creates that the rate allows now, and the moment for which that was reckoned. */
	private allowance = { creates: Infinity, at: 0 };

	constructor(
		private readonly credits: number,
		private readonly switches: Switches,
		private readonly mediaUrl: () => string,
		private readonly onTerminal: (task: SimulatedTask) => void,
	) {
		this.available = credits;
	}

	/** Credits that can be spent: what unfinished tasks will take is held back from it. */
	get balance(): number {
		return roundCredits(this.available);
	}

	get reserved(): number {
		return roundCredits(this.held);
	}

	get unfinished(): number {
		return this.timers.size;
	}

	/** Creates a task, unless the account's limit (section 8) or its credits do not allow it. */
	create({ model, input, webhookUrl, own }: CreateRequest): SimulatedTask {
		const settings = this.switches.for(own);
		this.checkRate(settings);
		this.checkConcurrency(settings);
		const resultCount = Math.floor(settings.resultCount ?? 1);
		const reserved = priceInCredits(model, input, resultCount);
		if (reserved > this.balance) {
			throw new ServiceError(
				402,
				'insufficient_credits',
				`The task costs ${reserved} credits, and the balance is ${this.balance}.`,
			);
		}
		this.available -= reserved;
		this.held += reserved;

		const createdAt = Date.now();
		const taskId = `task-${randomUUID()}`;
		const task: SimulatedTask = {
			taskId,
			record: {
				taskId,
				state: 'PENDING',
				model,
				input,
				createdAt: new Date(createdAt).toISOString(),
			},
			webhookUrl,
			createdAt,
			reads: 0,
			reserved,
			own,
			resultCount,
		};
		this.tasks.set(taskId, task);
		this.inOrder.push(task);
		this.timers.set(
			taskId,
			setTimeout(() => this.complete(taskId), draw(settings.latencyMs, DEFAULT_LATENCY)),
		);
		return task;
	}

	/** The task of this account with this id (section 4.2). */
	get(taskId: string): SimulatedTask {
		const task = this.tasks.get(taskId);
		if (!task) throw new ServiceError(404, 'not_found', `There is no task ${taskId}.`);
		return task;
	}

	/** Makes a task terminal; one that is stays as it is (section 3). */
	complete(taskId: string, outcome?: Outcome): void {
		const task = this.get(taskId);
		if (task.record.state !== 'PENDING') return;
		clearTimeout(this.timers.get(taskId));
		this.timers.delete(taskId);

		const settings = this.switches.for(task.own);
		const { record } = task;
		// The same order again has the same body.
		const scope = () => JSON.stringify([record.model, record.input]);
		const isUnlucky = outcome === undefined && this.switches.accident('taskFails', task.own, scope);
		record.state = isUnlucky ? 'FAILURE' : (outcome ?? settings.outcome ?? 'SUCCESS');
		task.completedAt = Date.now();
		record.completedAt = new Date(task.completedAt).toISOString();
		this.held -= task.reserved;
		if (record.state === 'SUCCESS') {
			record.resultUrls = this.resultUrls(task);
			record.creditsConsumed = task.reserved;
		} else {
			this.available += task.reserved;
			record.creditsConsumed = 0;
			record.error = { message: settings.failureMessage ?? DEFAULT_FAILURE };
		}
		this.onTerminal(task);
	}

	/** The record as the service writes it out: with the switches that make it unusual. */
	present({ record, own, webhookUrl }: SimulatedTask): Record<string, unknown> {
		const { stateCase, omitResultUrls, repeatWebhookUrl, extraFields } = this.switches.for(own);
		const { resultUrls, ...rest } = record;
		return {
			...rest,
			state: stateCase === 'lower' ? record.state.toLowerCase() : record.state,
			...(resultUrls && !omitResultUrls && { resultUrls }),
			...(repeatWebhookUrl && { webhook_url: webhookUrl }),
			...extraFields,
		};
	}

	/** Forgets every task, and gives the account its first balance back. */
	clear(): void {
		for (const timer of this.timers.values()) clearTimeout(timer);
		this.timers.clear();
		this.tasks.clear();
		this.inOrder.length = 0;
		this.available = this.credits;
		this.held = 0;
	}

	private resultUrls({ taskId, record, resultCount }: SimulatedTask): string[] {
		const extension = kindOf(record.model) === 'image' ? 'png' : 'mp4';
		return Array.from(
			{ length: resultCount },
			(_, index) => `${this.mediaUrl()}/media/${taskId}/${index + 1}.${extension}`,
		);
	}

	private checkRate({ createsPerSecond }: Settings): void {
		if (createsPerSecond === undefined) return;
		const now = performance.now();
		const earned = ((now - this.allowance.at) / 1000) * createsPerSecond;
		const creates = Math.min(createsPerSecond, this.allowance.creates + earned);
		this.allowance = { creates: creates < 1 ? creates : creates - 1, at: now };
		if (creates >= 1) return;
		const message = `The account may create ${createsPerSecond} tasks a second.`;
		throw new ServiceError(429, 'too_many_requests', message);
	}

	private checkConcurrency({ concurrencyLimit }: Settings): void {
		if (concurrencyLimit === undefined) return;
		const { limit, retryAfter } =
			typeof concurrencyLimit === 'number'
				? { limit: concurrencyLimit, retryAfter: undefined }
				: concurrencyLimit;
		if (this.unfinished < limit) return;
		throw new ServiceError(
			429,
			'too_many_tasks',
			`The account may have ${limit} unfinished tasks at once.`,
			retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) },
		);
	}
}
