import { sleep } from 'n8n-workflow';

/** Time as a parameter, so that tests cover hours in no time. */
export interface Clock {
	/** Milliseconds since 1970. */
	now(): number;
	/**
	 * Waits.
	 *
	 * @param ms milliseconds
	 * @param signal ends the wait at once when it is aborted
	 * @throws Stopped when the signal is aborted
	 */
	sleep(ms: number, signal: AbortSignal | undefined): Promise<void>;
}

/** The execution was stopped, by the user or by n8n's own time limit. */
export class Stopped extends Error {
	constructor() {
		super('The execution was stopped');
	}
}

export const systemClock: Clock = {
	now: () => Date.now(),
	async sleep(ms, signal) {
		if (signal?.aborted) throw new Stopped();
		await new Promise<void>((resolve, reject) => {
			const onAbort = () => reject(new Stopped());
			signal?.addEventListener('abort', onAbort, { once: true });
			// n8n's `sleep` cannot be cut short: on a stop its timer runs out unheard, within one poll interval.
			void sleep(ms).then(() => {
				signal?.removeEventListener('abort', onAbort);
				resolve();
			});
		});
	},
};
