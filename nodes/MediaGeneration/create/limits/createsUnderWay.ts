/** Without a limit that is known, one more is under way for so many that were let in; small batches must hurry. */
const GROWTH = 0.06;
const GROWTH_OF_SMALL_BATCH = 0.25;

/** In so small a part of a task's time all places are to be filled. */
const FILL = 0.05;

/** So few creates leave room for hardly any refusal. */
export const SMALL_BATCH = 50;

/** How many creates are under way at once while no limit is known: that many would be refused together. */
export class CreatesUnderWay {
	/** At the start. */
	readonly first: number;

	private least: number;

	private growth: number;

	private taken = 0;

	/** @param items how many creates there are */
	constructor(private readonly items: number) {
		this.first = 2 + Math.floor(items / 60);
		this.least = this.first;
		this.growth = this.slowGrowth;
	}

	/** While no limit is known. */
	get most(): number {
		return this.least + Math.floor(this.taken * this.growth);
	}

	/**
	 * While a limit on unfinished tasks is known: as many as it takes to fill all places in a small part of the time
	 * that a task takes (Little's law), since tasks that began together end together.
	 *
	 * @param known so many tasks may be unfinished
	 * @param latencyMs after so many milliseconds a create is answered
	 * @param taskMs a task takes so many milliseconds
	 */
	mostFor(known: number, latencyMs: number, taskMs: number): number {
		const needed = Math.ceil((known * latencyMs) / (FILL * Math.max(1, taskMs)));
		return Math.max(1, Math.min(needed, this.most, this.first / 2 + known / 10 + 1));
	}

	accepted(): void {
		this.taken++;
	}

	/** Begins again with so many, and grows slowly, or with each that is let in. */
	open(least: number, isFast = false): void {
		this.least = least;
		this.growth = isFast ? 1 : this.slowGrowth;
		this.taken = 0;
	}

	private get slowGrowth(): number {
		return this.items < SMALL_BATCH ? GROWTH_OF_SMALL_BATCH : GROWTH;
	}
}
