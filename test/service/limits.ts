/** Creates in a time: by a bucket that fills evenly, or by a count that begins anew with each window. */
export interface Rate {
	kind: 'bucket' | 'fixed';
	/** Creates that are let in within a second. */
	perSecond: number;
	/** Over how many seconds creates are counted: so much is let in at once after a rest. */
	windowSeconds: number;
	/** Where the windows begin, milliseconds. */
	offsetMs?: number;
}

const ALMOST_ONE = 1 - 1e-9;

/** Counts the creates of an account against its rate (section 8). The rate may be another one in every call. */
export class RateLimiter {
	private tokens: number | undefined;
	private tokensAt = 0;
	private window = -1;
	private used = 0;

	/**
	 * @param ms the present moment, milliseconds; it never runs backwards
	 * @returns from when on a create is let in, not before `ms`
	 */
	freeAt(ms: number, rate: Rate): number {
		if (this.settle(ms, rate) >= ALMOST_ONE) return ms;
		const { kind, windowSeconds, offsetMs = 0, perSecond } = rate;
		if (kind === 'bucket') return ms + ((1 - (this.tokens ?? 0)) / perSecond) * 1000;
		return (this.window + 1) * windowSeconds * 1000 + offsetMs;
	}

	/** Counts a create that is let in. */
	take(ms: number, rate: Rate): void {
		this.tokens = this.settle(ms, rate) - 1;
		this.used++;
	}

	/** @returns how many creates may be let in at this moment */
	private settle(ms: number, { kind, windowSeconds, offsetMs = 0, perSecond }: Rate): number {
		const most = perSecond * windowSeconds;
		if (kind === 'bucket') {
			const earned = ((ms - this.tokensAt) / 1000) * perSecond;
			this.tokens = Math.min(most, (this.tokens ?? most) + earned);
			this.tokensAt = ms;
		} else {
			const window = Math.floor((ms - offsetMs) / (windowSeconds * 1000));
			if (window !== this.window) this.used = 0;
			this.window = window;
			this.tokens = most - this.used;
		}
		return this.tokens;
	}
}

/** What an account allows at one moment: tasks that are unfinished at once, and creates in a time. */
interface Allowance {
	places: number | undefined;
	rate: Rate | undefined;
}

/** Nobody knows when a task will end. */
const UNTIL_A_PLACE_MS = 1000;

/** The limits of an account (section 8), wherever it is simulated. */
export class AccountLimits {
	private readonly limiter = new RateLimiter();

	/**
	 * A create arrives.
	 *
	 * @param ms the present moment, milliseconds; it never runs backwards
	 * @param unfinished tasks that are unfinished now
	 * @returns what refuses it, and how long that will last, milliseconds; undefined where it is let in
	 */
	admit(ms: number, unfinished: number, { places, rate }: Allowance) {
		if (rate) {
			const freeAt = this.limiter.freeAt(ms, rate);
			if (freeAt > ms) return { by: 'rate' as const, waitMs: freeAt - ms };
			// A create that finds no place has been counted by the rate all the same: a gateway does that.
			this.limiter.take(ms, rate);
		}
		if (places === undefined || unfinished < places) return undefined;
		return { by: 'places' as const, waitMs: UNTIL_A_PLACE_MS };
	}
}
