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
	/** Whether no task is followed: a limit on unfinished tasks looks like windows, of any length, then. */
	isUnseen: boolean;
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

	/** So many more are asked for in this window. */
	private extra = 0;

	/** Whether no task is followed. */
	private isUnseen = false;

	/** The next window is expected after so many milliseconds. */
	private aimMs = 0;

	/** The cycle before, while the next one has begun earlier than was known. */
	private before: { startedAt: number; sent: number; taken: number } | undefined;

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
		const isUsedUp = this.sent >= this.known.quota + this.extra;
		return isUsedUp ? this.startedAt + this.aimMs : -Infinity;
	}

	/** Whether a create is under way that shows if a window is shorter than was known. */
	get isEarly(): boolean {
		return this.before !== undefined;
	}

	/**
	 * @param mayAsk whether a refusal more can be afforded
	 * @param isLook whether the create only looks if the service lets in again
	 */
	send(now: number, mayAsk: boolean, isLook: boolean): void {
		if (this.known && !isLook && now >= this.startedAt + this.aimMs) {
			const { startedAt, sent, taken } = this;
			if (now < startedAt + this.known.ms) this.before = { startedAt, sent, taken };
			this.begin(now, 0);
			this.ask(this.known, taken, mayAsk);
		}
		this.sent++;
	}

	accepted(): void {
		this.taken++;
		if (this.known && this.before) this.known.ms = this.startedAt - this.before.startedAt;
		this.before = undefined;
	}

	/** @param isFirst whether it is the first refusal, or a look thereafter */
	refused(now: number, isFirst: boolean): void {
		this.refusedUntil = now;
		if (this.before) Object.assign(this, this.before);
		this.before = undefined;
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
		const middle = this.startedAt + middleOf(window);
		if (maySearch && middle > now && looks === 1) return middle;
		const due = this.startedAt + window.ms;
		if (due > now) return due;
		return this.known && now + Math.max(200, window.ms / 20);
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
	turn({ startedAt: at, taken, isUnseen }: Turn, isTime: boolean): void {
		const { taken: quota, at: refusedAt } = this.refusal;
		const ms = at - this.startedAt;
		const isBurst =
			(isUnseen || quota >= LEAST_QUOTA) && ms > SHORTEST_WINDOW_MS && refusedAt < at - ms / 2;
		const refusedMs = this.refusedUntil - this.startedAt;
		const before = this.known ?? this.guess;
		if (isTime) {
			const isAgain =
				before !== undefined &&
				isLike(quota, before.quota) &&
				(isUnseen || ms <= LONGEST_WINDOW_MS);
			this.known = isAgain ? { quota, ms, refusedMs } : undefined;
			if (this.known && before && before.refusedMs < ms) {
				this.known.refusedMs = Math.max(refusedMs, before.refusedMs);
			}
		}
		this.extra = 0;
		this.isUnseen = isUnseen;
		this.guess = isBurst ? { quota, ms, refusedMs, isTime } : undefined;
		this.begin(at, taken);
	}

	/**
	 * Asks in a window that begins for more of the service than is known of: for the next one earlier, or for more
	 * creates, twice as many as the last time where these were let in.
	 */
	private ask(window: Window, takenBefore: number, mayAsk: boolean): void {
		const isUsedUp = takenBefore >= window.quota;
		const least = Math.ceil(window.quota / 25);
		const more = isUsedUp ? Math.max(2 * this.extra, least) : 0;
		window.quota = Math.max(window.quota, takenBefore);
		this.extra = 0;
		if (!mayAsk) return;
		// The length of one that is seen among tasks that end is looked for after a refusal only.
		if (this.isUnseen) this.aimMs = middleOf(window);
		if (this.aimMs === window.ms) this.extra = more;
	}

	private begin(at: number, taken: number): void {
		this.aimMs = this.known?.ms ?? 0;
		this.startedAt = at;
		this.sent = taken;
		this.taken = taken;
	}
}

/** @returns a length between what is too short and what is enough; the latter, where they are near */
function middleOf({ ms, refusedMs }: Window): number {
	return ms > EXACT * refusedMs ? Math.sqrt(ms * refusedMs) : ms;
}

function isLike(count: number, quota: number): boolean {
	return Math.abs(count - quota) <= quota / 10;
}
