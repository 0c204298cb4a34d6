import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_PAUSE_MS = 150;
const LONGEST_PAUSE_MS = 1_000;

/** A look costs n8n 13 to 20 ms of CPU time. So the pauses grow with the time waited: each is a fifth of it. */
const PART_OF_TIME_WAITED = 5;

/**
 * Waits until a condition holds, and looks often, at first more often than later.
 *
 * @param what completes "Waited … in vain for …"
 * @param everyMs between two looks, where it is always the same
 */
export async function until(
	what: string | (() => string),
	timeoutMs: number,
	condition: () => boolean | Promise<boolean>,
	everyMs?: number,
): Promise<void> {
	const start = performance.now();
	while (!(await condition())) {
		const waited = performance.now() - start;
		if (waited > timeoutMs) {
			const text = typeof what === 'string' ? what : what();
			throw new Error(`Waited ${timeoutMs / 1000} s in vain for ${text}.`);
		}
		const growing = Math.max(FIRST_PAUSE_MS, waited / PART_OF_TIME_WAITED);
		await sleep(everyMs ?? Math.min(LONGEST_PAUSE_MS, growing));
	}
}
