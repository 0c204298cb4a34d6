import type { Process } from './process';

/** What is happening at present: in which process, and for what, e.g. `execution 3`. Whatever follows inherits it. */
export interface Activity {
	process: Process | undefined;
	name: string;
}

interface Event {
	at: number;
	order: number;
	activity: Activity;
	run: () => void;
}

const NOBODY: Activity = { process: undefined, name: 'world' };

/** 1 January 2026. */
const EPOCH = Date.UTC(2026, 0, 1);

const real = {
	setImmediate: globalThis.setImmediate,
	setTimeout: globalThis.setTimeout,
	clearTimeout: globalThis.clearTimeout,
	setInterval: globalThis.setInterval,
	clearInterval: globalThis.clearInterval,
	Date: globalThis.Date,
	performance: globalThis.performance,
	random: Math.random,
};

/**
 * The time of one history, and the order of all that happens in it. Events are taken one after the other; between two
 * of them everything that needs no time has run to its end. So what runs belongs to the process whose event it was,
 * and one seed has one order.
 */
export class VirtualTime {
	/** Milliseconds since the history began. It only goes forward. */
	now = 0;

	/** What a user or a time server has changed the wall clock by, milliseconds. */
	wallOffset = 0;

	activity: Activity = NOBODY;

	/** Events that have happened. */
	count = 0;

	/** A heap: the next event first. */
	private readonly queue: Event[] = [];

	private order = 0;

	constructor(private readonly random: () => number) {}

	/** The wall clock: milliseconds since 1970. */
	get wall(): number {
		return EPOCH + this.now + this.wallOffset;
	}

	/**
	 * @param delay milliseconds
	 * @param activity whose event it is; it does not happen where its process has died meanwhile
	 * @returns cancels the event
	 */
	schedule(delay: number, run: () => void, activity = this.activity): () => void {
		const event = { at: this.now + Math.max(0, delay), order: this.order++, activity, run };
		this.push(event);
		return () => {
			event.run = () => undefined;
		};
	}

	/** Something that happens by itself: neither a process nor what it was doing has part in it. */
	later(delay: number, run: () => void): void {
		this.schedule(delay, run, NOBODY);
	}

	/** @returns a promise that comes true after some milliseconds, unless the process has died meanwhile */
	async after(delay: number): Promise<void> {
		await new Promise<void>((resolve) => {
			this.schedule(delay, resolve);
		});
	}

	/** Does something in a process, as an activity of its own. */
	begin(activity: Activity, work: () => Promise<unknown>): void {
		this.schedule(0, () => void work(), activity);
	}

	/**
	 * Lets time pass.
	 *
	 * @param until milliseconds since the history began
	 */
	async run(until: number): Promise<void> {
		for (let event = this.pop(until); event; event = this.pop(until)) {
			this.now = Math.max(this.now, event.at);
			if (event.activity.process?.isDead) continue;
			this.activity = event.activity;
			this.count++;
			event.run();
			await new Promise<void>((resolve) => real.setImmediate(resolve));
			this.activity = NOBODY;
		}
		this.now = Math.max(this.now, until);
	}

	/** Whether anything is still to happen. */
	get isQuiet(): boolean {
		return this.queue.every(({ activity }) => activity.process?.isDead);
	}

	/** Replaces the timers, the clocks and the randomness of this process while the work is under way. */
	async rule<T>(work: () => Promise<T>): Promise<T> {
		this.install();
		try {
			return await work();
		} finally {
			Object.assign(globalThis, {
				setTimeout: real.setTimeout,
				clearTimeout: real.clearTimeout,
				setInterval: real.setInterval,
				clearInterval: real.clearInterval,
				Date: real.Date,
			});
			setPerformance(real.performance);
			Math.random = real.random;
		}
	}

	private install(): void {
		const wall = () => this.wall;
		const now = () => this.now;
		class VirtualDate extends real.Date {
			constructor(...args: unknown[]) {
				// A date without arguments is the present.
				super(...((args.length === 0 ? [wall()] : args) as [number]));
			}

			static override now(): number {
				return wall();
			}
		}
		Object.assign(globalThis, {
			Date: VirtualDate,
			setTimeout: (run: (...args: unknown[]) => void, delay = 0, ...args: unknown[]) =>
				this.timer(() => run(...args), delay),
			clearTimeout: clearTimer,
			setInterval: (run: (...args: unknown[]) => void, delay = 0, ...args: unknown[]) =>
				this.interval(() => run(...args), delay),
			clearInterval: clearTimer,
		});
		setPerformance({ now, timeOrigin: EPOCH });
		Math.random = this.random;
	}

	private timer(run: () => void, delay: number): Timer {
		return new Timer(this.schedule(Number(delay) || 0, run));
	}

	private interval(run: () => void, delay: number): Timer {
		const again = () => {
			timer.cancel = this.schedule(Math.max(1, delay), again);
			run();
		};
		const timer = new Timer(this.schedule(Math.max(1, delay), again));
		return timer;
	}

	private push(event: Event): void {
		const { queue } = this;
		let index = queue.push(event) - 1;
		while (index > 0) {
			const parent = (index - 1) >> 1;
			if (!isBefore(event, queue[parent])) break;
			queue[index] = queue[parent] as Event;
			index = parent;
		}
		queue[index] = event;
	}

	private pop(until: number): Event | undefined {
		const { queue } = this;
		const first = queue[0];
		if (first === undefined || first.at > until) return undefined;
		const last = queue.pop() as Event;
		if (queue.length === 0) return first;
		let index = 0;
		for (;;) {
			let child = 2 * index + 1;
			if (child >= queue.length) break;
			if (isBefore(queue[child + 1], queue[child])) child++;
			if (!isBefore(queue[child], last)) break;
			queue[index] = queue[child] as Event;
			index = child;
		}
		queue[index] = last;
		return first;
	}
}

/** What `setTimeout` returns in Node.js, as far as anybody asks for it. */
class Timer {
	constructor(public cancel: () => void) {}

	ref(): this {
		return this;
	}

	unref(): this {
		return this;
	}

	hasRef(): boolean {
		return true;
	}
}

function clearTimer(timer: unknown): void {
	if (timer instanceof Timer) timer.cancel();
}

function setPerformance(value: object): void {
	Object.defineProperty(globalThis, 'performance', { configurable: true, writable: true, value });
}

const isBefore = (one: Event | undefined, other: Event | undefined): boolean =>
	one !== undefined &&
	other !== undefined &&
	(one.at < other.at || (one.at === other.at && one.order < other.order));
