import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 150;

/**
 * Waits until a condition holds, and looks often.
 *
 * @param what completes "Waited in vain for …"
 * @param timeoutMs how long to wait, in ms
 * @param everyMs between two looks
 * @throws where it does not hold in time
 */
export async function until(
	what: string | (() => string),
	timeoutMs: number,
	condition: () => boolean | Promise<boolean>,
	everyMs = LOOK_EVERY_MS,
): Promise<void> {
	const deadline = performance.now() + timeoutMs;
	while (!(await condition())) {
		if (performance.now() > deadline) {
			const text = typeof what === 'string' ? what : what();
			throw new Error(`Waited ${timeoutMs / 1000} s in vain for ${text}.`);
		}
		await sleep(everyMs);
	}
}
