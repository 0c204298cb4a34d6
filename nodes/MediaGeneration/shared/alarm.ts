import { clock, sleepUntil, Stopped } from './clock';
import { settled } from './promises';

/** Somebody who waits for a moment, milliseconds of the clock. */
interface Waiter {
	at: number;
	/** Where it stands in the heap; -1 if it waits no more. */
	index: number;
	resolve: () => void;
	reject: (error: Stopped) => void;
}

/** The moments that many tasks wait for: one heap, one timer, and one listener of the stop signal. */
export class Alarm {
	/** A binary heap: the first one is the earliest. */
	private readonly heap: Waiter[] = [];
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
			const waiter: Waiter = { at, index: this.heap.length, resolve, reject };
			this.heap.push(waiter);
			this.rise(waiter);
			wake = () => {
				this.remove(waiter);
				resolve();
			};
		});
		this.set();
		return { woken, wake };
	}

	/** Wakes all who wait. */
	wakeAll(): void {
		for (const { resolve } of this.take()) resolve();
	}

	private stop(): void {
		for (const { reject } of this.take()) reject(new Stopped());
		this.close();
	}

	/** Ends the timer. Nobody waits any more. */
	close(): void {
		this.take();
		this.timer?.end.abort();
	}

	private take(): Waiter[] {
		const all = this.heap.splice(0);
		for (const waiter of all) waiter.index = -1;
		return all;
	}

	private set(): void {
		const at = this.heap[0]?.at ?? Infinity;
		if (at === Infinity || (this.timer && this.timer.at <= at)) return;
		this.timer?.end.abort();
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
		for (let first = this.heap[0]; first && first.at <= now; first = this.heap[0]) {
			this.remove(first);
			first.resolve();
		}
		this.set();
	}

	private remove(waiter: Waiter): void {
		const { index } = waiter;
		if (index === -1) return;
		waiter.index = -1;
		const last = this.heap.pop();
		if (last === undefined || last === waiter) return;
		this.put(last, index);
		this.rise(last);
		this.sink(last);
	}

	private put(waiter: Waiter, index: number): void {
		this.heap[index] = waiter;
		waiter.index = index;
	}

	private rise(waiter: Waiter): void {
		for (;;) {
			const parent = this.heap[(waiter.index - 1) >> 1];
			if (waiter.index === 0 || parent === undefined || parent.at <= waiter.at) return;
			this.swap(parent, waiter);
		}
	}

	private sink(waiter: Waiter): void {
		for (;;) {
			const [left, right] = [2 * waiter.index + 1, 2 * waiter.index + 2].map((i) => this.heap[i]);
			const least = right && left && right.at < left.at ? right : left;
			if (least === undefined || least.at >= waiter.at) return;
			this.swap(waiter, least);
		}
	}

	private swap(one: Waiter, other: Waiter): void {
		const { index } = one;
		this.put(one, other.index);
		this.put(other, index);
	}
}
