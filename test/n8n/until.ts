import pWaitFor, { TimeoutError } from 'p-wait-for';

/** A look costs n8n 13 to 20 ms of CPU time. */
const LOOK_EVERY_MS = 400;

/**
 * Waits until a condition holds.
 *
 * @param what completes "Waited … in vain for …"
 * @param interval between two looks, milliseconds
 */
export async function until(
	what: string | (() => string),
	timeoutMs: number,
	condition: () => boolean | Promise<boolean>,
	interval = LOOK_EVERY_MS,
): Promise<void> {
	try {
		await pWaitFor(condition, { interval, timeout: timeoutMs });
	} catch (error) {
		if (!(error instanceof TimeoutError)) throw error;
		const text = typeof what === 'string' ? what : what();
		throw new Error(`Waited ${timeoutMs / 1000} s in vain for ${text}.`, { cause: error });
	}
}
