import { setTimeout as sleep } from 'node:timers/promises';

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
	const giveUpAt = Date.now() + timeoutMs;
	while (!(await condition())) {
		if (Date.now() >= giveUpAt) {
			const text = typeof what === 'string' ? what : what();
			throw new Error(`Waited ${timeoutMs / 1000} s in vain for ${text}.`);
		}
		await sleep(interval);
	}
}
