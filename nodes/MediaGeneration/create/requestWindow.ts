/** A longer window is not reckoned with. */
export const LONGEST_WINDOW_MS = 90_000;

/** Shorter ones are paced as well as a rate is. */
const SHORTEST_WINDOW_MS = 5000;

/** Fewer creates than that may be refused together by chance. */
const LEAST_QUOTA = 4;

/** A length is known well enough where it is at most so many times what is too short. */
const EXACT = 1.25;

/** So many creates let in from one window to the next. */
interface Window {
	quota: number;
	/** After so many milliseconds it let in again. */
	ms: number;
	/** After so many it still refused. */
	refusedMs: number;
}

/** When the service began to let in again, and what it has let in since. */
interface Turn {
	startedAt: number;
	taken: number;
}

/**
 * A limit that counts creates anew in each window of time, as far as it is known. What is let in from the moment at
 * which the service begins to let in to the next refusal is a cycle; two cycles alike are taken for windows. Times are
 * milliseconds of the clock.
 */
export class RequestWindow {
	private known: Window | undefined;

	/** What may be a window, if the next refusal comes after as many creates. */
	private guess: (Window & { isTime: boolean }) | undefined;

	private sent = 0;
	private taken = 0;
	private refusal = { at: 0, taken: 0 };
	private refusedUntil = 0;

	/** @param startedAt when the service began to let in */
	constructor(public startedAt: number) {}

	get isKnown(): boolean {
		return this.known !== undefined;
	}

	/** Whether as many have been let in as the last time before a refusal: then the next one is the window's. */
	get isUsedUp(): boolean {
		const window = this.known ?? this.guess;
		return window !== undefined && isLike(this.taken, window.quota);
	}

	/** @returns when the next create may be sent, or earlier; undefined where no window is known */
	get nextAt(): number | undefined {
		if (!this.known) return undefined;
		return this.sent < this.known.quota ? -Infinity : this.startedAt + this.known.ms;
	}

	/**
	 * @param mayGrow whether a refusal more can be afforded
	 * @param isLook whether the create only looks if the service lets in again
	 */
	send(now: number, mayGrow: boolean, isLook: boolean): void {
		if (this.known && !isLook && now >= this.startedAt + this.known.ms) {
			const { quota } = this.known;
			if (mayGrow && this.taken >= quota) this.known.quota += Math.ceil(quota / 25);
			this.begin(now, 0);
		}
		this.sent++;
	}

	accepted(): void {
		this.taken++;
	}

	/** @param isFirst whether it is the first refusal, or a look thereafter */
	refused(now: number, isFirst: boolean): void {
		this.refusedUntil = now;
		if (isFirst) this.refusal = { at: now, taken: this.taken };
	}

	/**
	 * @param maySearch whether a refusal more can be afforded, to know the length of a window more exactly
	 * @returns when to look whether the service lets in again; undefined where no window tells
	 */
	lookAt(now: number, looks: number, maySearch: boolean): number | undefined {
		const isGuessed = looks === 1 && this.guess && this.refusal.taken > 0.8 * this.guess.quota;
		const window = this.known && looks <= 4 ? this.known : isGuessed ? this.guess : undefined;
		if (window === undefined) return undefined;
		const { ms, refusedMs } = window;
		const middle = this.startedAt + Math.sqrt(ms * refusedMs);
		if (maySearch && ms > EXACT * refusedMs && middle > now && looks === 1) return middle;
		const due = this.startedAt + ms;
		if (due > now) return due;
		return this.known && now + Math.max(200, ms / 20);
	}

	/** Whether the last refusal came after as many as a window would allow. */
	get wasUsedUp(): boolean {
		const window = this.known ?? (this.guess?.isTime ? this.guess : undefined);
		return window !== undefined && isLike(this.refusal.taken, window.quota);
	}

	/**
	 * The service lets in again.
	 *
	 * @param lesson since when, and what it has let in since
	 * @param isTime whether time alone ended the refusals
	 */
	turn({ startedAt: at, taken }: Turn, isTime: boolean): void {
		const { taken: quota, at: refusedAt } = this.refusal;
		const ms = at - this.startedAt;
		const isBurst = quota >= LEAST_QUOTA && ms > SHORTEST_WINDOW_MS && refusedAt < at - ms / 2;
		const refusedMs = this.refusedUntil - this.startedAt;
		const before = this.known ?? this.guess;
		if (isTime) {
			const isAgain =
				before !== undefined && isLike(quota, before.quota) && ms <= LONGEST_WINDOW_MS;
			this.known = isAgain ? { quota, ms, refusedMs } : undefined;
			if (this.known && before && before.refusedMs < ms) {
				this.known.refusedMs = Math.max(refusedMs, before.refusedMs);
			}
		}
		this.guess = isBurst ? { quota, ms, refusedMs, isTime } : undefined;
		this.begin(at, taken);
	}

	private begin(at: number, taken: number): void {
		this.startedAt = at;
		this.sent = taken;
		this.taken = taken;
	}
}

function isLike(count: number, quota: number): boolean {
	return Math.abs(count - quota) <= quota / 10;
}
