/** A value that changes: from which millisecond on it is which. The first one holds from the beginning. */
export type Steps = ReadonlyArray<readonly [from: number, value: number]>;

/** Creates in a time: a bucket that fills evenly, or a count that begins anew with each window. */
export interface RateRule {
	perSecond: Steps;
	windowSeconds: number;
	kind: 'bucket' | 'fixed';
	/** Where the windows begin, milliseconds. */
	offsetMs?: number;
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

const ALMOST_ONE = 1 - 1e-9;

export class RateLimiter {
	private tokens: number;
	private tokensAt = 0;
	private window = -1;
	private used = 0;

	constructor(private readonly rule: RateRule) {
		this.tokens = valueAt(rule.perSecond, 0) * rule.windowSeconds;
	}

	/** @returns from when on one is let in, not before `ms` */
	freeAt(ms: number): number {
		this.settle(ms);
		if (this.tokens >= ALMOST_ONE) return ms;
		const { kind, perSecond, windowSeconds, offsetMs = 0 } = this.rule;
		if (kind === 'bucket') return ms + ((1 - this.tokens) / valueAt(perSecond, ms)) * 1000;
		return (this.window + 1) * windowSeconds * 1000 + offsetMs;
	}

	take(ms: number): void {
		this.settle(ms);
		this.tokens--;
		this.used++;
	}

	private settle(ms: number): void {
		const { kind, perSecond, windowSeconds, offsetMs = 0 } = this.rule;
		const rate = valueAt(perSecond, ms);
		const most = rate * windowSeconds;
		if (kind === 'bucket') {
			this.tokens = Math.min(most, this.tokens + ((ms - this.tokensAt) / 1000) * rate);
			this.tokensAt = ms;
			return;
		}
		const window = Math.floor((ms - offsetMs) / (windowSeconds * 1000));
		if (window !== this.window) this.used = 0;
		this.window = window;
		this.tokens = most - this.used;
	}
}

/** The service's side of an account: what it answers to a create. */
export class SimulatedAccount {
	/** So many tasks were unfinished at once. */
	most = 0;

	/** So many tasks were taken. */
	taken = 0;

	private readonly limiter: RateLimiter | undefined;
	private readonly ends: number[] = [];
	private count = 0;

	constructor(private readonly rules: Rules) {
		this.limiter = rules.rate && new RateLimiter(rules.rate);
	}

	/** A create arrives, for a task that would end at the given moment; the moments never run backwards. */
	create(ms: number, endsAt: number): Answer {
		const { accidents, concurrency } = this.rules;
		if (accidents?.nth.includes(this.count++)) {
			const { retryAfterMs } = accidents;
			return { taken: false, ...(retryAfterMs !== undefined && { retryAfterMs }) };
		}
		while ((this.ends[0] ?? Infinity) <= ms) this.ends.shift();
		const freeAt = this.limiter?.freeAt(ms) ?? ms;
		if (freeAt > ms) return this.refusal(freeAt - ms);
		// A create that finds no place has been counted by the rate all the same: a gateway does that.
		this.limiter?.take(ms);
		const unfinished = this.ends.length;
		if (concurrency && unfinished >= valueAt(concurrency, ms)) return this.refusal(1000);
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
