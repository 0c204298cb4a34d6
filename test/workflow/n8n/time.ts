import { EPOCH, tick, VirtualTime } from '../../virtualTime';
import type { Process } from './process';

/** What is happening at present: in which process, and for what, e.g. `execution 3`. Whatever follows inherits it. */
export interface Activity {
	process: Process | undefined;
	name: string;
}

const NOBODY: Activity = { process: undefined, name: 'world' };

/**
 * The time of one history, and the order of all that happens in it. Events are taken one after the other; between two
 * of them everything that needs no time has run to its end. So what runs belongs to the process whose event it was,
 * and one seed has one order.
 */
export class HistoryTime extends VirtualTime {
	activity: Activity = NOBODY;

	count = 0;

	private readonly timers: Pick<typeof globalThis, 'setTimeout' | 'setInterval'>;

	/** What a user or a time server has changed the wall clock by, milliseconds. */
	private wallOffset = 0;

	/** @param now the wall clock, milliseconds since 1970 */
	constructor(now?: number) {
		super(now);
		this.timers = { setTimeout: globalThis.setTimeout, setInterval: globalThis.setInterval };
		globalThis.setTimeout = this.inActivity(this.timers.setTimeout);
		globalThis.setInterval = this.inActivity(this.timers.setInterval);
	}

	override end(): void {
		Object.assign(globalThis, this.timers);
		super.end();
	}

	/** What happens from now on belongs to nobody, until the next event. */
	rest(): void {
		this.activity = NOBODY;
	}

	/** Milliseconds since the history began. It only goes forward. */
	get now(): number {
		return this.wall - EPOCH - this.wallOffset;
	}

	moveWall(byMs: number): void {
		this.wallOffset += byMs;
		this.setWall(this.wall + byMs);
	}

	/**
	 * @param delay milliseconds
	 * @param activity whose event it is; it does not happen where its process has died meanwhile
	 * @returns cancels the event
	 */
	schedule(delay: number, run: () => void, activity = this.activity): () => void {
		const { clock } = this;
		const timer = clock.setTimeout(this.eventOf(activity, run), Math.max(0, delay));
		return () => clock.clearTimeout(timer);
	}

	/** Something that happens by itself: neither a process nor what it was doing has part in it. */
	later(delay: number, run: () => void): () => void {
		return this.schedule(delay, run, NOBODY);
	}

	/** Waits for something that others bring about, and goes on in the present activity. */
	async wait<T>(begin: (go: (value: T) => void) => void): Promise<T> {
		const { activity } = this;
		return await new Promise<T>((resolve) => {
			begin((value) => void this.schedule(0, () => resolve(value), activity));
		});
	}

	/** @param until milliseconds since the history began */
	async run(until: number): Promise<void> {
		let isOver = false;
		this.later(until - this.now, () => (isOver = true));
		while (!isOver) {
			this.clock.next();
			await tick();
			this.rest();
		}
	}

	/**
	 * Replaces the timers, the clocks and the randomness of this process while the work is under way.
	 *
	 * @param random in place of `Math.random`
	 */
	static async rule<T>(random: () => number, work: (time: HistoryTime) => Promise<T>): Promise<T> {
		const real = Math.random;
		const time = new HistoryTime();
		Math.random = random;
		try {
			return await work(time);
		} finally {
			time.end();
			Math.random = real;
		}
	}

	/** What a timer does belongs to the activity that has set it. */
	private inActivity<F extends typeof setTimeout | typeof setInterval>(plain: F): F {
		const timer = (run: (...args: unknown[]) => void, delay?: number, ...args: unknown[]) =>
			plain(
				this.eventOf(this.activity, () => run(...args)),
				delay,
			);
		return timer as unknown as F;
	}

	private eventOf(activity: Activity, run: () => void): () => void {
		return () => {
			if (activity.process?.isDead) return;
			this.activity = activity;
			this.count++;
			run();
		};
	}
}
