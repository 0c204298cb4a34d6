import type { CreateRequest } from './createRequest';
import type { Effects } from './effects';
import { askToWait, ServiceError } from './errors';
import { AccountLimits, RateLimiter } from './limits';
import { kindOf, priceInCredits, roundCredits } from './prices';
import { type AskedWait, type Limit, type Outcome, type Settings, draw } from './settings';
import { fillIn } from './shapes';
import type { Switches } from './switches';

const CREDITS = 100_000;
const DEFAULT_LATENCY = [1000, 3000] as const;
const DEFAULT_FAILURE = 'The generation failed upstream.';

/** The task record (section 2). */
interface TaskRecord {
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
	/** The addresses of what it makes, where it succeeds. */
	readonly results: string[];
}

const notFound = (taskId: string) =>
	new ServiceError(404, 'not_found', `There is no task ${taskId}.`);

const limitOf = (value?: Limit) => (typeof value === 'number' ? { limit: value } : value);

/** The links, as a shape names them. */
const namesOf = (links: readonly string[]) =>
	Object.fromEntries(links.map((link, index) => [`$${index + 1}`, link]));

/** The rate of the account: a second's creates may come at once after a second's rest. */
const BY_THE_SECOND = { kind: 'bucket', windowSeconds: 1 } as const;

/** The tasks of the account, their life cycle (section 3) and its credits (sections 1 and 2). */
export class TaskStore {
	readonly tasks = new Map<string, SimulatedTask>();
	/** Cancels the end of each unfinished task. */
	private readonly ends = new Map<string, () => void>();
	private available = CREDITS;
	private held = 0;
	private limits = new AccountLimits();
	private reading = new RateLimiter();

	constructor(
		private readonly switches: Switches,
		private readonly mediaUrl: () => string,
		private readonly baseUrl: () => string,
		private readonly effects: Effects,
		private readonly onTerminal: (task: SimulatedTask) => void,
	) {}

	/** Credits that can be spent: what unfinished tasks will take is held back from it. */
	get balance(): number {
		return roundCredits(this.available);
	}

	get reserved(): number {
		return roundCredits(this.held);
	}

	/** Creates a task, unless the account's limit (section 8) or its credits do not allow it. */
	create({ model, input, webhookUrl, own }: CreateRequest): SimulatedTask {
		const settings = this.switches.for(own);
		this.checkLimits(settings);
		const resultCount = Math.floor(settings.resultCount ?? 1);
		const reserved = priceInCredits(model, input, resultCount);
		if (reserved > this.balance) {
			const message = `The task costs ${reserved} credits, and the balance is ${this.balance}.`;
			throw new ServiceError(402, 'insufficient_credits', message);
		}
		this.available -= reserved;
		this.held += reserved;

		const createdAt = this.effects.now();
		const taskId = this.effects.newTaskId();
		const created = new Date(createdAt).toISOString();
		const record: TaskRecord = { taskId, state: 'PENDING', model, input, createdAt: created };
		const extension = kindOf(model) === 'image' ? 'png' : 'mp4';
		const results = Array.from(
			{ length: resultCount },
			(_, index) => `${this.mediaUrl()}/media/${taskId}/${index + 1}.${extension}`,
		);
		const task = { taskId, record, webhookUrl, createdAt, reads: 0, reserved, own, results };
		this.tasks.set(taskId, task);
		const latencyMs = draw(settings.latencyMs ?? DEFAULT_LATENCY);
		const cancel = this.effects.later(latencyMs, () => this.complete(taskId));
		this.ends.set(taskId, cancel);
		return task;
	}

	/** The task of this account with this id. @throws ServiceError 404 where there is none */
	get(taskId: string): SimulatedTask {
		const task = this.tasks.get(taskId);
		if (!task) throw notFound(taskId);
		return task;
	}

	/** What is read of a task (section 4.2). @throws ServiceError 404 where it is not known, or not yet */
	read(taskId: string): Record<string, unknown> {
		const task = this.get(taskId);
		const { createLagMs = 0, endLagMs = 0, readsPerSecond } = this.switches.for(task.own);
		this.checkReads(limitOf(readsPerSecond));
		const now = this.effects.now();
		if (now < task.createdAt + createLagMs) throw notFound(taskId);
		task.reads++;
		if (now >= (task.completedAt ?? 0) + endLagMs) return this.present(task);
		const { model, input, createdAt } = task.record;
		return this.present({ ...task, record: { taskId, state: 'PENDING', model, input, createdAt } });
	}

	/** Makes a task terminal; one that is stays as it is (section 3). */
	complete(taskId: string, outcome?: Outcome): void {
		const task = this.get(taskId);
		if (task.record.state !== 'PENDING') return;
		this.ends.get(taskId)?.();
		this.ends.delete(taskId);

		const settings = this.switches.for(task.own);
		const { record } = task;
		// The same order again has the same body.
		const scope = () => JSON.stringify([record.model, record.input]);
		const isUnlucky = outcome === undefined && this.switches.failure(task.own, scope);
		record.state = isUnlucky ? 'FAILURE' : (outcome ?? settings.outcome ?? 'SUCCESS');
		task.completedAt = this.effects.now();
		record.completedAt = new Date(task.completedAt).toISOString();
		this.held -= task.reserved;
		if (record.state === 'SUCCESS') {
			record.resultUrls = task.results;
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
		const { repeatWebhookUrl, extraFields, resultShape } = this.switches.for(own);
		const links = record.resultUrls?.map((link) => this.linkTo(link, own));
		return {
			...record,
			...(links && {
				resultUrls: resultShape === undefined ? links : fillIn(resultShape, namesOf(links)),
			}),
			...(repeatWebhookUrl && { webhook_url: webhookUrl }),
			...extraFields,
		};
	}

	/** The link to a result as it is given out now: below the base URL, or one that ends. */
	private linkTo(link: string, own: Settings): string {
		const { linkLifeMs, mediaBelowBase } = this.switches.for(own);
		if (!mediaBelowBase && linkLifeMs === undefined) return link;
		const url = new URL(link);
		const base = mediaBelowBase ? this.baseUrl() : url.origin;
		const ends = linkLifeMs === undefined ? '' : `?ends=${this.effects.now() + linkLifeMs}`;
		return base + url.pathname + ends;
	}

	/** Forgets every task, and gives the account its first balance back. */
	clear(): void {
		for (const cancel of this.ends.values()) cancel();
		this.ends.clear();
		this.tasks.clear();
		this.available = CREDITS;
		this.held = 0;
		this.limits = new AccountLimits();
		this.reading = new RateLimiter();
	}

	private checkReads(limit: ({ limit: number } & AskedWait) | undefined): void {
		if (limit === undefined) return;
		const now = this.effects.now();
		const rate = { ...BY_THE_SECOND, perSecond: limit.limit };
		if (this.reading.freeAt(now, rate) > now) {
			throw this.tooMany('too_many_requests', `read ${limit.limit} tasks a second`, limit);
		}
		this.reading.take(now, rate);
	}

	private tooMany(code: string, allowed: string, asked: AskedWait): ServiceError {
		const { headers, fields } = askToWait(asked, this.effects.now());
		return new ServiceError(429, code, `The account may ${allowed}.`, headers, fields);
	}

	private checkLimits({ createsPerSecond, concurrencyLimit }: Settings): void {
		const [rate, places] = [limitOf(createsPerSecond), limitOf(concurrencyLimit)];
		const over = this.limits.admit(this.effects.now(), this.ends.size, {
			places: places?.limit,
			rate: rate && { ...BY_THE_SECOND, perSecond: rate.limit },
		});
		if (!over) return;
		const [given, code, allowed] =
			over.by === 'rate'
				? [rate, 'too_many_requests', `create ${rate?.limit} tasks a second`]
				: [places, 'too_many_tasks', `have ${places?.limit} unfinished tasks at once`];
		throw this.tooMany(code, allowed, given ?? {});
	}
}
