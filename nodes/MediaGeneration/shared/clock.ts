import { sleep } from 'n8n-workflow';

/** Time as a parameter, so that tests cover hours in no time. */
export interface Clock {
	/**
	 * Milliseconds since some moment. They only run forward, whatever becomes of the computer's date: a date comes
	 * from `Date`, and a wait from here.
	 */
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
	now: () => performance.now(),
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

/** A timer that is set to more goes off at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Sleeps until the clock has really reached a moment: a timer may go off a little early. */
export async function sleepUntil(
	moment: number,
	clock: Clock,
	signal: AbortSignal | undefined,
): Promise<void> {
	for (let left = moment - clock.now(); left > 0; left = moment - clock.now()) {
		// A timer counts whole milliseconds.
		await clock.sleep(Math.min(Math.ceil(left), MAX_TIMER_MS), signal);
	}
}
