/** How many refusals can be afforded, and how long to wait until one is risked. Times are milliseconds of the clock. */
export class RefusalBudget {
	private taken = 0;
	private refusals = 0;
	private ends = 0;

	/** How long all tasks together have been unfinished, until the last change. */
	private workedMs = 0;
	private unfinished = 0;
	private changedAt = 0;

	/**
	 * @param items how many creates there are: one in ten may be refused
	 * @param startedAt now
	 */
	constructor(
		private readonly items: number,
		private readonly startedAt: number,
	) {}

	/** Whether one more can be afforded, and some are left for what comes unasked. */
	get hasSpare(): boolean {
		return this.left >= 1 + Math.min(3, (this.items - this.taken) / 10);
	}

	/** So many may be refused together. */
	get atOnce(): number {
		return Math.max(1, Math.round(this.left / 3));
	}

	accepted(now: number): void {
		this.taken++;
		this.change(now, 1);
	}

	refused(): void {
		this.refusals++;
	}

	finished(now: number): void {
		this.ends++;
		this.change(now, -1);
	}

	/** How long a task takes, as far as it is known. */
	get taskMs(): number {
		return this.workedMs / Math.max(1, this.ends);
	}

	/** How long to wait until one more is asked for: what is lost by it is little against the whole, and so are refusals. */
	patience(now: number, unfinished: number): number {
		this.change(now, 0);
		const { taskMs } = this;
		const restMs = ((this.items - this.taken) / Math.max(1, unfinished)) * taskMs;
		return Math.max(
			500,
			0.2 * (now - this.startedAt + taskMs),
			restMs / (2 * Math.max(0, this.left) + 1),
		);
	}

	/**
	 * @param pauseMs nothing may be sent so long
	 * @returns how long a place is empty on average: only one whose task ends in the pause is
	 */
	idleMs(pauseMs: number): number {
		return pauseMs * Math.min(1, pauseMs / (2 * Math.max(1, this.taskMs)));
	}

	private change(now: number, more: number): void {
		this.workedMs += this.unfinished * (now - this.changedAt);
		this.unfinished = Math.max(0, this.unfinished + more);
		this.changedAt = now;
	}

	/** Six, and one for ten tasks, the half of these before the first is created. */
	private get left(): number {
		return 6 + Math.min(this.items, this.items / 2 + this.taken) / 10 - this.refusals;
	}
}
