import { sleep } from 'n8n-workflow';

/** Time as a parameter, so that tests cover hours in no time. */
export interface Clock {
	/**
	 * Milliseconds since some moment. They only run forward, whatever becomes of the computer's date: a date comes
	 * from `Date`, and a wait from here.
	 */
	now(): number;
	/** Waits so many milliseconds. @throws Stopped at once when the signal is aborted */
	sleep(ms: number, signal: AbortSignal | undefined): Promise<void>;
}

/** The execution was stopped, by the user or by n8n's own time limit. */
export class Stopped extends Error {
	constructor() {
		super('The execution was stopped');
	}
}

export const systemClock: Clock = {
	now: () => performance.now(),
	async sleep(ms, signal) {
		if (signal?.aborted) throw new Stopped();
		await new Promise<void>((resolve, reject) => {
			const onAbort = () => reject(new Stopped());
			signal?.addEventListener('abort', onAbort, { once: true });
			// n8n's `sleep` cannot be cut short: on a stop its timer runs out unheard, within one poll interval.
			void sleep(ms).then(() => {
				signal?.removeEventListener('abort', onAbort);
				resolve();
			});
		});
	},
};

/** A timer that is set to more goes off at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Sleeps until the clock has really reached a moment: a timer may go off a little early. */
export async function sleepUntil(
	moment: number,
	clock: Clock,
	signal: AbortSignal | undefined,
): Promise<void> {
	for (let left = moment - clock.now(); left > 0; left = moment - clock.now()) {
		// A timer counts whole milliseconds.
		await clock.sleep(Math.min(Math.ceil(left), MAX_TIMER_MS), signal);
	}
}

/** How long a run may keep its process to itself: n8n does all its other work in the same thread. Milliseconds. */
const LONGEST_TURN_MS = 25;

/**
 * Lets the rest of n8n in while something is done for each of many items.
 *
 * @returns what is to be awaited between two items: it is over at once, where the turn is not over yet
 * @throws Stopped from there where the execution was stopped meanwhile
 */
export function inTurns(clock: Clock, signal: AbortSignal | undefined): () => Promise<void> {
	let since = clock.now();
	return async () => {
		if (clock.now() - since < LONGEST_TURN_MS) return;
		await clock.sleep(0, signal);
		since = clock.now();
	};
}

/** @returns what the promise brings, or undefined where that takes longer than `ms` milliseconds */
export async function withTimeLimit<T>(
	promise: Promise<T>,
	ms: number,
	clock: Clock,
): Promise<T | undefined> {
	const late = clock.sleep(Math.max(0, ms), undefined).then(() => undefined);
	return await Promise.race([promise, late]);
}

/** Between two checks whether a transfer goes on, milliseconds. */
const STALL_CHECK_MS = 5_000;

/**
 * Waits for a transfer, unless it stands still: n8n's timeout ends with the header of the answer, so nobody else would
 * ever give it up, and with it a run whose tasks are all paid for.
 *
 * @param progress how much has come; undefined where all has
 * @param stillMs for so long nothing may come, milliseconds
 * @returns what the transfer brings; undefined where it stands still
 */
export async function unlessStalled<T extends object>(
	transfer: Promise<T>,
	progress: () => number | undefined,
	stillMs: number,
	clock: Clock,
): Promise<T | undefined> {
	for (let still = 0; still < stillMs;) {
		const before = progress();
		const ended = await withTimeLimit(transfer, STALL_CHECK_MS, clock);
		if (ended !== undefined) return ended;
		const now = progress();
		still = now === undefined || now !== before ? 0 : still + STALL_CHECK_MS;
	}
	return undefined;
}

/** So long after a stop a create under way is waited for. n8n shows the execution as stopped meanwhile. */
const GRACE_MS = 10_000;

/** Ends when the execution was stopped, and what was under way then has had a little time to come to its end. */
export const graceAfterStop = async (
	clock: Clock,
	signal: AbortSignal | undefined,
): Promise<undefined> =>
	await new Promise((resolve) => {
		const begin = () => void clock.sleep(GRACE_MS, undefined).then(() => resolve(undefined));
		if (signal?.aborted) begin();
		else signal?.addEventListener('abort', begin, { once: true });
	});

/** What a process remembers for a while, under keys. Of more than it may hold the oldest goes. */
export class ExpiringCache<T> {
	/** The oldest first. */
	private readonly entries = new Map<string, { value: T; at: number }>();

	constructor(
		private readonly clock: Clock,
		private readonly maxAgeMs: number,
		private readonly most: number,
	) {}

	get(key: string): T | undefined {
		const entry = this.entries.get(key);
		return entry && this.clock.now() - entry.at < this.maxAgeMs ? entry.value : undefined;
	}

	/** Its age counts from now, also where it was there before. */
	set(key: string, value: T): void {
		const now = this.clock.now();
		this.entries.delete(key);
		this.entries.set(key, { value, at: now });
		for (const [oldest, { at }] of this.entries) {
			if (this.entries.size <= this.most && now - at < this.maxAgeMs) return;
			this.entries.delete(oldest);
		}
	}

	delete(key: string): void {
		this.entries.delete(key);
	}
}
