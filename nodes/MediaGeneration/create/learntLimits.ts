import type { IDataObject } from 'n8n-workflow';

/** The pauses between two probes double from the first to the longest. */
export const FIRST_PROBE_MS = 5000;

/** After a refusal two creates may be under way, and one more for each 12 that were admitted since. */
export const LET_IN_FOR_ONE_MORE = 12;

/** What is learnt of an account's limits, and outlives a turn of the run. Times are milliseconds. */
export const NOTHING_LEARNT = {
	/** The creates that were admitted since the last refusal. */
	takenSinceRefusal: LET_IN_FOR_ONE_MORE,
	pausedUntil: -Infinity,
	/** The places of the account: as far as known, and as the end of a task has proved them last. */
	places: Infinity,
	proven: -Infinity,
	placeProbeMs: FIRST_PROBE_MS,
	placeProbeAt: Infinity,
	/** Creates per millisecond, now and after the last lesson. Infinity: no rate is known. */
	perMs: Infinity,
	learntPerMs: Infinity,
	/** The creates of the last lesson, and the creates in full windows since then. */
	learntFrom: 0,
	heldBack: 0,
	/** The creates that were admitted at once. */
	atOnce: 1,
	rateProbeMs: FIRST_PROBE_MS,
	rateProbeAt: -Infinity,
};

export type LearntLimits = typeof NOTHING_LEARNT;

const MOMENTS = ['pausedUntil', 'placeProbeAt', 'rateProbeAt'];

/**
 * @param now the clock's present moment
 * @param date the present time of day, milliseconds since 1970
 * @returns plain data, in which moments are times of day
 */
export const learntToStored = (learnt: LearntLimits, now: number, date: number): IDataObject =>
	Object.fromEntries(
		Object.entries(learnt)
			.filter(([, value]) => Number.isFinite(value))
			.map(([name, value]) => [name, MOMENTS.includes(name) ? value - now + date : value]),
	);

/** @returns what `learntToStored` has stored, at some moment before */
export function learntFromStored(stored: IDataObject, now: number, date: number): LearntLimits {
	const learnt = { ...NOTHING_LEARNT };
	for (const [name, value] of Object.entries(stored)) {
		if (typeof value !== 'number' || !(name in NOTHING_LEARNT)) continue;
		Object.assign(learnt, { [name]: MOMENTS.includes(name) ? value - date + now : value });
	}
	return learnt;
}
