import { AccountLimits, type Rate } from '../service/limits';

/** A value that changes: from which millisecond on it is which. The first one holds from the beginning. */
export type Steps = ReadonlyArray<readonly [from: number, value: number]>;

/** Creates in a time, and how they are counted. */
interface RateRule extends Omit<Rate, 'perSecond'> {
	perSecond: Steps;
}

export interface Rules {
	/** Tasks that may be unfinished at once. */
	concurrency?: Steps;
	rate?: RateRule;
	/** Creates that are refused by accident: the how manieth. */
	accidents?: { nth: readonly number[]; retryAfterMs: number | undefined };
	/** What a refusal says: nothing, the time until it lets in again (a second for places), or a fixed time. */
	retryAfter?: 'honest' | number;
}

export const valueAt = (steps: Steps, ms: number): number =>
	steps.findLast(([from]) => from <= ms)?.[1] ?? 0;

export const rateAt = (rule: RateRule, ms: number): Rate => ({
	...rule,
	perSecond: valueAt(rule.perSecond, ms),
});

/** The service's side of an account: what it answers to a create. */
export class SimulatedAccount {
	/** So many tasks were taken. */
	taken = 0;

	private readonly limits = new AccountLimits();
	private readonly ends: number[] = [];
	private count = 0;

	constructor(private readonly rules: Rules) {}

	/** A create arrives, for a task that would end at the given moment; the moments never run backwards. */
	create(ms: number, endsAt: number) {
		const { accidents, concurrency, rate } = this.rules;
		if (accidents?.nth.includes(this.count++)) {
			return { taken: false, retryAfterMs: accidents.retryAfterMs };
		}
		while ((this.ends[0] ?? Infinity) <= ms) this.ends.shift();
		const over = this.limits.admit(ms, this.ends.length, {
			places: concurrency && valueAt(concurrency, ms),
			rate: rate && rateAt(rate, ms),
		});
		if (over) return { taken: false, retryAfterMs: this.retryAfterMs(over.waitMs) };
		const place = this.ends.findLastIndex((end) => end <= endsAt) + 1;
		this.ends.splice(place, 0, endsAt);
		this.taken++;
		return { taken: true };
	}

	private retryAfterMs(waitMs: number): number | undefined {
		const { retryAfter } = this.rules;
		return retryAfter === 'honest' ? Math.ceil(waitMs / 1000) * 1000 : retryAfter;
	}
}
