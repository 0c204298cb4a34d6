import { sleep } from 'n8n-workflow';

/** The execution was stopped, by the user or by n8n's own time limit. */
export class Stopped extends Error {
	constructor() {
		super('The execution was stopped');
	}
}

/** Cancels a timer. One error for all of them: to make an error with its stack takes longer than to set a timer. */
const CANCELLED = new Stopped();

/** @returns a signal that is aborted when one of these is */
export const anyOf = (...signals: Array<AbortSignal | undefined>): AbortSignal =>
	AbortSignal.any(signals.filter((signal) => signal !== undefined));

export const MINUTE_MS = 60_000;

/** The time of all waits. Tests replace both functions, so that hours take no time. */
export const clock = {
	/** Milliseconds since 1970. Within a process they never go back, even if the computer's date is changed. */
	now: (): number => performance.timeOrigin + performance.now(),
	/** Waits `ms` milliseconds. @throws Stopped at once when the signal is aborted */
	async sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
		const slept = await settled(sleep(ms, signal));
		if ('error' in slept) throw signal?.reason === CANCELLED ? CANCELLED : new Stopped();
	},
};

/** A timer with a longer time goes off at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Sleeps until the clock has reached a moment: a timer may go off a little early. */
export async function sleepUntil(moment: number, signal: AbortSignal | undefined): Promise<void> {
	for (let left = moment - clock.now(); left > 0; left = moment - clock.now()) {
		// A timer counts whole milliseconds.
		await clock.sleep(Math.min(Math.ceil(left), MAX_TIMER_MS), signal);
	}
}

/** How long a run may block its process, milliseconds: n8n does all other work in the same thread. */
const LONGEST_BLOCK_MS = 25;

/**
 * Lets n8n do other work during a loop over many items.
 *
 * @returns a function to await between two items, which returns at once until the process was blocked for so long
 * @throws Stopped from that function if the execution was stopped
 */
export function yielding(signal: AbortSignal | undefined): () => Promise<void> {
	let since = clock.now();
	return async () => {
		if (clock.now() - since < LONGEST_BLOCK_MS) return;
		await clock.sleep(0, signal);
		since = clock.now();
	};
}

/** @returns the value of the promise, or undefined if it takes longer than `ms` milliseconds */
export async function withTimeLimit<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
	if (ms === Infinity) return await promise;
	const ended = new AbortController();
	const late = settled(clock.sleep(Math.max(0, ms), ended.signal)).then(() => undefined);
	try {
		return await Promise.race([promise, late]);
	} finally {
		// A timer that is left keeps a process alive.
		ended.abort(CANCELLED);
	}
}

/** Between two checks of a transfer, milliseconds. */
const STALL_CHECK_MS = 5_000;

/**
 * Waits for a transfer unless it stands still or trickles: n8n's timeout ends with the head of the answer.
 *
 * @param progress how much has arrived; undefined when all has arrived
 * @param least how much is to arrive within each `withinMs` milliseconds
 * @returns the value of the transfer; undefined if less arrives
 */
export async function unlessStalled<T extends object>(
	transfer: Promise<T>,
	progress: () => number | undefined,
	least: number,
	withinMs: number,
): Promise<T | undefined> {
	for (let since = clock.now(), before = 0; clock.now() - since < withinMs;) {
		const ended = await withTimeLimit(transfer, STALL_CHECK_MS);
		if (ended !== undefined) return ended;
		const now = progress();
		if (now !== undefined && now - before < least) continue;
		since = clock.now();
		before = now ?? before;
	}
	return undefined;
}

/** How long to wait for a create under way after a stop. n8n shows the execution as stopped meanwhile. */
const GRACE_MS = 10_000;

/** Resolves when the execution was stopped and the time for creates under way is over. */
export const graceAfterStop = async (signal: AbortSignal | undefined): Promise<'stopped'> =>
	await new Promise((resolve) => {
		const begin = () => void clock.sleep(GRACE_MS, undefined).then(() => resolve('stopped'));
		if (signal?.aborted) begin();
		else signal?.addEventListener('abort', begin, { once: true });
	});

const MOST_ENTRIES = 10_000;

/** Entries that a process remembers for a while. When there are too many, the oldest is dropped. */
export class ExpiringCache<T> {
	/** The oldest first. */
	private readonly entries = new Map<string, { value: T; at: number }>();

	constructor(private readonly maxAgeMs: number) {}

	get(key: string): T | undefined {
		const entry = this.entries.get(key);
		return entry && clock.now() - entry.at < this.maxAgeMs ? entry.value : undefined;
	}

	/** The age of the entry begins now, even if the key was there before. */
	set(key: string, value: T): void {
		const now = clock.now();
		this.entries.delete(key);
		this.entries.set(key, { value, at: now });
		for (const [oldest, { at }] of this.entries) {
			if (this.entries.size <= MOST_ENTRIES && now - at < this.maxAgeMs) return;
			this.entries.delete(oldest);
		}
	}
}

/** Somebody who waits for a moment, milliseconds of the clock. */
interface Waiter {
	at: number;
	resolve: () => void;
	reject: (error: Stopped) => void;
}

/** The moments that many tasks wait for, with one timer, and one listener of the stop signal. */
export class Alarm {
	private readonly waiters = new Set<Waiter>();
	private timer: { at: number; end: AbortController } | undefined;

	/** @param signal aborted when the execution is stopped */
	constructor(private readonly signal: AbortSignal | undefined) {
		signal?.addEventListener('abort', () => this.stop(), { once: true });
	}

	/**
	 * Waits until a moment, or until it is woken before.
	 *
	 * @param at milliseconds of the clock
	 * @returns a promise that rejects with Stopped if the execution is stopped, and a function that wakes
	 */
	wait(at: number): { woken: Promise<void>; wake: () => void } {
		let wake: () => void = () => undefined;
		const woken = new Promise<void>((resolve, reject) => {
			if (this.signal?.aborted) {
				reject(new Stopped());
				return;
			}
			const waiter = { at, resolve, reject };
			this.waiters.add(waiter);
			wake = () => {
				this.waiters.delete(waiter);
				resolve();
			};
			this.setTimer(at);
		});
		return { woken, wake };
	}

	wakeAll(): void {
		for (const { resolve } of this.waiters) resolve();
		this.waiters.clear();
	}

	private stop(): void {
		for (const { reject } of this.waiters) reject(new Stopped());
		this.close();
	}

	/** Ends the timer. Nobody waits any more. */
	close(): void {
		this.waiters.clear();
		this.timer?.end.abort(CANCELLED);
	}

	/** Has the alarm ring at a moment, or before. */
	private setTimer(at: number): void {
		if (at === Infinity || (this.timer && this.timer.at <= at)) return;
		this.timer?.end.abort(CANCELLED);
		const timer = { at, end: new AbortController() };
		this.timer = timer;
		void settled(sleepUntil(at, timer.end.signal)).then(() => {
			if (this.timer !== timer) return;
			this.timer = undefined;
			this.ring();
		});
	}

	private ring(): void {
		const now = clock.now();
		let next = Infinity;
		for (const waiter of this.waiters) {
			if (waiter.at > now) {
				next = Math.min(next, waiter.at);
				continue;
			}
			this.waiters.delete(waiter);
			waiter.resolve();
		}
		this.setTimer(next);
	}
}

/** Does pieces of work, at most a given number at once. */
export class Semaphore {
	private running = 0;
	private readonly waiting: Array<() => void> = [];

	constructor(private readonly most: number) {}

	async run<T>(work: () => Promise<T>): Promise<T> {
		if (this.running < this.most) this.running++;
		else await new Promise<void>((resolve) => this.waiting.push(resolve));
		try {
			return await work();
		} finally {
			const next = this.waiting.shift();
			if (next) next();
			else this.running--;
		}
	}
}

/** The outcome of a piece of work: its value, or what it threw. */
type Settled<T> = { value: T } | { error: unknown };

/**
 * Returns the error of a piece of work as a value, for code that depends on the kind of error. n8n's rules forbid
 * rethrowing in a `catch`, because that loses context; nothing is lost here.
 */
export async function settled<T>(work: Promise<T> | (() => Promise<T>)): Promise<Settled<T>> {
	try {
		return { value: await (typeof work === 'function' ? work() : work) };
	} catch (error) {
		return { error };
	}
}
