import { RequestGap } from '../service/client';
import type { ServiceError } from '../service/serviceError';
import { clock, sleepUntil } from '../shared/clock';
import { Semaphore, settled } from '../shared/promises';

/** So many reads are under way at once at first. */
const FIRST_SIZE = 4;

/** The pauses after refusals in a row that name no time: the first one, and the longest. Each is twice the one before. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/**
 * The reads of a turn share one window, as in TCP: each good answer lets one more read under way, and a refusal halves the
 * window and pauses all reads, as long as the service asks for. The service shows no limits (specification, section 8).
 * All times are milliseconds of the clock.
 */
export class ReadWindow {
	private size = FIRST_SIZE;
	private underWay = 0;
	private refusals = 0;
	/** Until when nothing is read. */
	pausedUntil = -Infinity;

	/** One read at a time is let in. */
	private readonly door = new Semaphore(1);
	private readonly gap = new RequestGap();
	private freed: () => void = () => undefined;

	/** @param signal aborted when the execution is stopped */
	constructor(private readonly signal: AbortSignal | undefined) {}

	/**
	 * Sends a read when the window lets it in.
	 *
	 * @param giveUpAt a read that would begin after this moment is not sent
	 * @returns the answer; undefined if it was not sent
	 * @throws what the read throws; Stopped if the execution was stopped
	 */
	async read<T>(read: () => Promise<T>, giveUpAt = Infinity): Promise<T | undefined> {
		const isIn = await this.door.run(async () => await this.enter(giveUpAt));
		if (!isIn) return undefined;
		const answer = await settled(read());
		this.underWay--;
		this.learn('error' in answer ? answer.error : undefined);
		this.freed();
		if ('error' in answer) throw answer.error;
		return answer.value;
	}

	private async enter(giveUpAt: number): Promise<boolean> {
		for (;;) {
			const at = Math.max(this.pausedUntil, this.gap.nextAt);
			if (at > giveUpAt) return false;
			if (at > clock.now()) await sleepUntil(at, this.signal);
			else if (this.underWay < this.size) break;
			else await new Promise<void>((resolve) => (this.freed = resolve));
		}
		this.gap.take();
		this.underWay++;
		return true;
	}

	private learn(error: unknown): void {
		const { asksToSlowDown, retryAfterMs } = Object(error) as Partial<ServiceError>;
		if (asksToSlowDown !== true) {
			if (error !== undefined) return;
			this.size++;
			this.refusals = 0;
			return;
		}
		const now = clock.now();
		// Of the reads that were under way together only the first refusal tells something.
		if (now < this.pausedUntil) return;
		this.size = Math.max(1, Math.floor(this.size / 2));
		const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.refusals++);
		this.pausedUntil = now + (retryAfterMs ?? pauseMs);
	}
}
