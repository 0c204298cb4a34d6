import type { Clock } from '../shared/clock';

/** So long after a stop a create under way is waited for. n8n shows the execution as stopped meanwhile. */
const GRACE_MS = 10_000;

/** What is under way when the execution is stopped gets a little time to come to its end. */
export class StopGrace {
	private readonly over: Promise<undefined>;

	/** @param signal aborted when the execution is stopped */
	constructor(clock: Clock, signal: AbortSignal | undefined) {
		this.over = new Promise((resolve) => {
			const begin = () => {
				void clock.sleep(GRACE_MS, undefined).then(() => resolve(undefined));
			};
			if (signal?.aborted) begin();
			else signal?.addEventListener('abort', begin, { once: true });
		});
	}

	/** @returns what the work brings; undefined where it goes on when the time after a stop is over */
	async wait<T>(work: Promise<T>): Promise<T | undefined> {
		return await Promise.race([work, this.over]);
	}
}
