import { type Clock, sleepUntil } from '../shared/clock';

/** The service may ask for a pause of hours before the next read. */
const LONGEST_SLEEP_MS = 30_000;

/**
 * Says when a held run is to be suspended (option *Suspend After*): so long after its last create, and not while it may
 * still create a task. What is unfinished then is handed over.
 */
export class SuspendAfter {
	/** The items that may still create a task. */
	private readonly open: Set<object>;

	/** When the last task was created, or the run began; milliseconds of the clock. */
	private lastCreateAt: number;

	private end: () => void = () => undefined;

	private readonly ended = new Promise<void>((resolve) => {
		this.end = resolve;
	});

	/**
	 * @param afterMs milliseconds from the last create to the suspension; Infinity where the run is held to its end
	 * @param creates the items that create a task
	 */
	constructor(
		private readonly clock: Clock,
		private afterMs: number,
		creates: Iterable<object>,
	) {
		this.open = new Set(creates);
		this.lastCreateAt = clock.now();
	}

	created(): void {
		this.lastCreateAt = this.clock.now();
	}

	/** The item creates nothing more. */
	close(item: object): void {
		this.open.delete(item);
		if (this.isOver) this.end();
	}

	closeAll(): void {
		for (const item of this.open) this.close(item);
	}

	/** Holds the run to its end: n8n did not suspend it. */
	switchOff(): void {
		this.afterMs = Infinity;
	}

	/**
	 * Sleeps until a moment of the clock, and no longer than the run is held: a run that is suspended at once to the last
	 * create, another within half a minute.
	 *
	 * @param signal aborted when the execution is stopped
	 * @throws Stopped where the execution was stopped
	 */
	async sleepUntil(moment: number, signal: AbortSignal | undefined): Promise<void> {
		if (this.isOver && this.afterMs > 0) return;
		do {
			const next = Math.min(moment, this.clock.now() + LONGEST_SLEEP_MS);
			const slept = sleepUntil(next, this.clock, signal);
			await (this.afterMs === 0 ? Promise.race([slept, this.ended]) : slept);
		} while (!this.isOver && this.clock.now() < moment);
	}

	/** Whether unfinished tasks are to be handed over. */
	get isOver(): boolean {
		return this.open.size === 0 && this.clock.now() - this.lastCreateAt >= this.afterMs;
	}
}
