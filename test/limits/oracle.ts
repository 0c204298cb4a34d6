import { RateLimiter } from '../service/limits';
import { rateAt, type Rules, valueAt } from './account';
import { CREATE_MS, type Policy } from './simulate';

/** Knows the limits of every moment, and sends as soon as they allow it; the end of a task it learns by polling. */
export class Oracle implements Policy<undefined> {
	readonly wakes: readonly number[];

	private readonly limiter = new RateLimiter();
	private inFlight = 0;
	private pausedUntil = 0;

	constructor(private readonly rules: Rules) {
		this.wakes = [...(rules.concurrency ?? []), ...(rules.rate?.perSecond ?? [])]
			.map(([from]) => from - CREATE_MS / 2 + 1e-3)
			.filter((at) => at > 0);
	}

	nextAt(now: number): number {
		const arrival = Math.max(now, this.pausedUntil) + CREATE_MS / 2;
		const { concurrency, rate } = this.rules;
		if (concurrency && this.inFlight >= valueAt(concurrency, arrival)) return Infinity;
		const freeAt = rate ? this.limiter.freeAt(arrival, rateAt(rate, arrival)) : arrival;
		return freeAt - CREATE_MS / 2;
	}

	send(now: number): undefined {
		this.inFlight++;
		const { rate } = this.rules;
		const arrival = now + CREATE_MS / 2;
		if (rate) this.limiter.take(arrival, rateAt(rate, arrival));
	}

	accepted(): void {}

	/** By accident: it obeys, and sends again. */
	refused(_ticket: undefined, now: number, retryAfterMs = 0): void {
		this.inFlight--;
		this.pausedUntil = now + retryAfterMs;
	}

	finished(): void {
		this.inFlight--;
	}
}
