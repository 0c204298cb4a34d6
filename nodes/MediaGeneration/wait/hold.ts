import { type Clock, sleepUntil } from '../shared/clock';

/**
 * For how long a run is held: until so long after its last create, and while it may still create a task. What is
 * unfinished then is handed over, and the run is suspended.
 */
export class Hold {
	/** The items that may still create a task. */
	private readonly open: Set<object>;

	/** When the last task was created, or the run began; milliseconds of the clock. */
	private lastCreateAt: number;

	private end: () => void = () => undefined;

	private readonly ended = new Promise<void>((resolve) => {
		this.end = resolve;
	});

	/**
	 * @param afterMs milliseconds from the last create to the end of the hold; Infinity where the run is held to its end
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

	/** A task was created. */
	created(): void {
		this.lastCreateAt = this.clock.now();
	}

	/** The item creates nothing more. */
	close(item: object): void {
		this.open.delete(item);
		if (this.isOver) this.end();
	}

	/** The run creates nothing more. */
	closeAll(): void {
		for (const item of this.open) this.close(item);
	}

	/** Holds the run to its end: n8n did not suspend it. */
	forever(): void {
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
