/** Without a limit that is known, one more is under way for so many that were let in; small batches must hurry. */
const GROWTH = 0.06;
const GROWTH_OF_SMALL_BATCH = 0.25;

/** So few creates leave room for hardly any refusal. */
export const SMALL_BATCH = 50;

/** How many creates are under way at once while no limit is known: that many would be refused together. */
export class SendWindow {
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

	/** @param known so many tasks may be unfinished, where that is what refuses */
	most(known: number): number {
		const window = this.least + Math.floor(this.taken * this.growth);
		return known === Infinity ? window : Math.min(window, this.first / 2 + known / 10 + 1);
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
