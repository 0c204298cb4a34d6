/** How creates are counted: by a bucket that fills evenly, or by a count that begins anew with each window. */
export interface RateKind {
	kind: 'bucket' | 'fixed';
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

	constructor(private readonly rule: RateKind) {}

	/**
	 * @param ms the present moment, milliseconds; it never runs backwards
	 * @param perSecond creates that are let in within a second
	 * @returns from when on a create is let in, not before `ms`
	 */
	freeAt(ms: number, perSecond: number): number {
		if (this.settle(ms, perSecond) >= ALMOST_ONE) return ms;
		const { kind, windowSeconds, offsetMs = 0 } = this.rule;
		if (kind === 'bucket') return ms + ((1 - (this.tokens ?? 0)) / perSecond) * 1000;
		return (this.window + 1) * windowSeconds * 1000 + offsetMs;
	}

	/** Counts a create that is let in. */
	take(ms: number, perSecond: number): void {
		this.tokens = this.settle(ms, perSecond) - 1;
		this.used++;
	}

	/** @returns how many creates may be let in at this moment */
	private settle(ms: number, perSecond: number): number {
		const { kind, windowSeconds, offsetMs = 0 } = this.rule;
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
