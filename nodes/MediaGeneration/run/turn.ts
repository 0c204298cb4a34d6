import { clock, sleepUntil } from '../shared/clock';

/** How often a turn looks whether it is over, milliseconds. */
const LOOK_MS = 1_000;

/** A later turn that creates lasts at least this long, milliseconds. */
const LEAST_TURN_MS = 60_000;

/**
 * The time in which a run is awake. The first turn lasts *Survive Restarts After* from the start of the run. A later turn lasts
 * as long as there is something to create, and not longer than the first one; where nothing is to be created, each task
 * is read once. A run that is held has one turn, to its end.
 */
export class Turn {
	/** No create begins after this moment, milliseconds of the clock; Infinity for a run that is held. */
	readonly endsAt: number;

	/** The entries that may still create a task in this turn. */
	private creating = 0;

	/**
	 * @param startedAt when the turn began, milliseconds of the clock
	 * @param suspendAfterMs Infinity for a run that is held
	 * @param isLater whether the run was asleep before
	 */
	constructor(
		startedAt: number,
		suspendAfterMs: number,
		readonly isLater: boolean,
	) {
		this.endsAt = startedAt + (isLater ? Math.max(LEAST_TURN_MS, suspendAfterMs) : suspendAfterMs);
	}

	get maySleep(): boolean {
		return this.endsAt < Infinity;
	}

	get isOver(): boolean {
		return clock.now() >= this.endsAt || (this.isLater && this.maySleep && this.creating === 0);
	}

	/** Does a piece of work that may create a task. */
	async creates<T>(work: () => Promise<T>): Promise<T> {
		this.creating++;
		try {
			return await work();
		} finally {
			this.creating--;
		}
	}

	/**
	 * Sleeps in memory until a moment of the clock, or until the turn is over.
	 *
	 * @param isEnough whether nobody waits any more; asked once a second
	 * @returns whether the moment has come
	 * @throws Stopped if the execution was stopped
	 */
	async reaches(
		moment: number,
		signal: AbortSignal | undefined,
		isEnough = () => false,
	): Promise<boolean> {
		while (clock.now() < moment && !this.isOver && !isEnough()) {
			await sleepUntil(Math.min(moment, clock.now() + LOOK_MS), signal);
		}
		return clock.now() >= moment;
	}
}
