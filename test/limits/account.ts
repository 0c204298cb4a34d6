import { AccountLimits, type Rate } from '../service/limits';

/** A value that changes: from which millisecond on it is which. The first one holds from the beginning. */
export type Steps = ReadonlyArray<readonly [from: number, value: number]>;

/** Creates in a time, and how they are counted. */
export interface RateRule extends Omit<Rate, 'perSecond'> {
	perSecond: Steps;
}

/** The rules of a simulated account. */
export interface Rules {
	/** Tasks that may be unfinished at once. */
	concurrency?: Steps;
	rate?: RateRule;
	/** Creates that are refused by accident: the how manieth. */
	accidents?: { nth: readonly number[]; retryAfterMs?: number };
	/** What a refusal says: nothing, the time until it lets in again (a second for places), or a fixed time. */
	retryAfter?: 'honest' | number;
}

export type Answer = { taken: true } | { taken: false; retryAfterMs?: number };

export function valueAt(steps: Steps, ms: number): number {
	let value = steps[0]?.[1] ?? 0;
	for (const [from, next] of steps) if (ms >= from) value = next;
	return value;
}

/** The rate that holds at a moment. */
export const rateAt = (rule: RateRule, ms: number): Rate => ({
	...rule,
	perSecond: valueAt(rule.perSecond, ms),
});

/** The service's side of an account: what it answers to a create. */
export class SimulatedAccount {
	/** So many tasks were unfinished at once. */
	most = 0;

	/** So many tasks were taken. */
	taken = 0;

	private readonly limits = new AccountLimits();
	private readonly ends: number[] = [];
	private count = 0;

	constructor(private readonly rules: Rules) {}

	/** A create arrives, for a task that would end at the given moment; the moments never run backwards. */
	create(ms: number, endsAt: number): Answer {
		const { accidents, concurrency, rate } = this.rules;
		if (accidents?.nth.includes(this.count++)) {
			const { retryAfterMs } = accidents;
			return { taken: false, ...(retryAfterMs !== undefined && { retryAfterMs }) };
		}
		while ((this.ends[0] ?? Infinity) <= ms) this.ends.shift();
		const unfinished = this.ends.length;
		const over = this.limits.admit(ms, unfinished, {
			places: concurrency && valueAt(concurrency, ms),
			rate: rate && rateAt(rate, ms),
		});
		if (over) return this.refusal(over.waitMs);
		const place = this.ends.findLastIndex((end) => end <= endsAt) + 1;
		this.ends.splice(place, 0, endsAt);
		this.taken++;
		this.most = Math.max(this.most, unfinished + 1);
		return { taken: true };
	}

	private refusal(ms: number): Answer {
		const { retryAfter } = this.rules;
		if (retryAfter === undefined) return { taken: false };
		const retryAfterMs = retryAfter === 'honest' ? Math.ceil(ms / 1000) * 1000 : retryAfter;
		return { taken: false, retryAfterMs };
	}
}
