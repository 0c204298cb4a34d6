import { MIN_READ_INTERVAL_MS, REQUEST_GAP_MS } from '../service/client';
import type { ServiceError } from '../service/serviceError';
import { clock, Semaphore, settled, sleepUntil } from '../shared/clock';

/** So many reads are under way at once at first. */
const FIRST_SIZE = 4;

/** The pauses after refusals in a row that name no time: the first one, and the longest. Each is twice the one before. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/**
 * The reads of a turn share one window, as in TCP: each good answer lets one more read under way, and a refusal halves the
 * window and pauses all reads, as long as the service asks for. The service shows no limits (specification, section 8).
 * All times are milliseconds of the clock.
 */
export class ReadWindow {
	private size = FIRST_SIZE;
	private underWay = 0;
	private refusals = 0;
	/** Until when nothing is read. */
	pausedUntil = -Infinity;

	/** One read at a time is let in. */
	private readonly door = new Semaphore(1);
	private nextAt = -Infinity;
	private freed: () => void = () => undefined;

	/** @param signal aborted when the execution is stopped */
	constructor(private readonly signal: AbortSignal | undefined) {}

	/**
	 * Sends a read when the window lets it in.
	 *
	 * @param giveUpAt a read that would begin after this moment is not sent
	 * @returns the answer; undefined if it was not sent
	 * @throws what the read throws; Stopped if the execution was stopped
	 */
	async read<T>(read: () => Promise<T>, giveUpAt = Infinity): Promise<T | undefined> {
		const isIn = await this.door.run(async () => await this.enter(giveUpAt));
		if (!isIn) return undefined;
		const answer = await settled(read());
		this.underWay--;
		this.learn('error' in answer ? answer.error : undefined);
		this.freed();
		if ('error' in answer) throw answer.error;
		return answer.value;
	}

	private async enter(giveUpAt: number): Promise<boolean> {
		for (;;) {
			const at = Math.max(this.pausedUntil, this.nextAt);
			if (at > giveUpAt) return false;
			if (at > clock.now()) await sleepUntil(at, this.signal);
			else if (this.underWay < this.size) break;
			else await new Promise<void>((resolve) => (this.freed = resolve));
		}
		this.nextAt = clock.now() + REQUEST_GAP_MS;
		this.underWay++;
		return true;
	}

	private learn(error: unknown): void {
		const { asksToSlowDown, retryAfterMs } = Object(error) as Partial<ServiceError>;
		if (asksToSlowDown !== true) {
			if (error !== undefined) return;
			this.size++;
			this.refusals = 0;
			return;
		}
		const now = clock.now();
		// Of the reads that were under way together only the first refusal tells something.
		if (now < this.pausedUntil) return;
		this.size = Math.max(1, Math.floor(this.size / 2));
		const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.refusals++);
		this.pausedUntil = now + (retryAfterMs ?? pauseMs);
	}
}

/** The longest pause between two reads of a task that the specification names. */
const LONGEST_READ_INTERVAL_MS = 5_000;

/** The pause as a part of the task's age: a result is found so much of its time late at most. */
const PART_OF_AGE = 1 / 10;

/**
 * How long to wait until the next read of a task: two seconds at first, and five from its first minute on, since a long task
 * is found finished early enough all the same, and each read costs n8n and the service something.
 *
 * @param ageMs how old the task is, milliseconds
 * @returns milliseconds
 * @see docs/service.openapi.yaml, sections 4.2 and 8
 */
export const readPauseMs = (ageMs: number): number =>
	Math.min(Math.max(MIN_READ_INTERVAL_MS, PART_OF_AGE * ageMs), LONGEST_READ_INTERVAL_MS);

/** n8n wakes executions once a minute. */
export const LEAST_SLEEP_MS = 60_000;

/** The longest sleep that the node chooses by itself. */
export const LONGEST_SLEEP_MS = 15 * 60_000;

/** A sleep is this part of the time waited, so that a result is late by a part of the time that it took. */
const PART_OF_TIME_WAITED = 4;

/** Sleeps are longer by up to this part, by chance, so that many runs do not wake at once. */
const SPREAD = 0.1;

/** A run wakes so long before n8n's time limit: n8n may be a minute late, and a turn takes its time. Milliseconds. */
export const BEFORE_LIMIT_MS = 90_000;

/** What decides when a sleeping run is woken. All times are milliseconds of the clock. */
export interface Sleeper {
	/** When the wait began: the run, or its last order. */
	startedAt: number;
	/** Whether tasks are waited for. */
	hasTasks?: boolean;
	/** When the next order may be sent; Infinity if nothing is to be ordered. */
	orderAt?: number;
	/** Whether something is to be tried again soon: a task whose time is up, or one that was not read in this turn. */
	isOverdue: boolean;
	/** Until when the service has asked to read nothing. */
	notBefore?: number;
	/** When something must be done: a task's time is up. */
	dueAt: readonly number[];
	/** When n8n's time limit cancels the execution; Infinity without a limit. */
	limitAt?: number;
}

/**
 * When a sleeping run is to be woken.
 *
 * @param random from 0 to 1
 * @returns milliseconds of the clock
 */
export function nextWakeAt(sleeper: Sleeper, now: number, random = Math.random()): number {
	const { startedAt, orderAt = Infinity, isOverdue, notBefore = 0, dueAt } = sleeper;
	const { limitAt = Infinity, hasTasks = true } = sleeper;
	const growing = (now - startedAt) / PART_OF_TIME_WAITED;
	const chosen = Math.min(Math.max(growing, LEAST_SLEEP_MS), LONGEST_SLEEP_MS);
	const pauseMs = (isOverdue ? LEAST_SLEEP_MS : chosen) * (1 + SPREAD * random);
	// Without a task there is nothing to see before the next order.
	const isBlind = !hasTasks && orderAt < Infinity;
	const readAt = isBlind ? Infinity : Math.max(now + pauseMs, notBefore);
	const due = Math.min(...dueAt.filter((each) => each > now), limitAt - BEFORE_LIMIT_MS);
	return Math.max(now, Math.min(readAt, orderAt, due));
}
