import { type Clock, sleepUntil } from '../shared/clock';

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
	 * Sleeps until a moment of the clock. In a run that is suspended at once nobody sleeps longer than to the last create.
	 *
	 * @param signal aborted when the execution is stopped
	 * @throws Stopped where the execution was stopped
	 */
	async sleepUntil(moment: number, signal: AbortSignal | undefined): Promise<void> {
		const slept = sleepUntil(moment, this.clock, signal);
		if (this.afterMs === 0) await Promise.race([slept, this.ended]);
		if (!this.isOver) await slept;
	}

	/** Whether unfinished tasks are to be handed over. */
	get isOver(): boolean {
		return this.open.size === 0 && this.clock.now() - this.lastCreateAt >= this.afterMs;
	}
}
