const WINDOW_MS = 100;

/**
 * @param times of requests, milliseconds, in order
 * @returns the most of them that fall into any 100 ms
 */
export function largestBurst(times: readonly number[]): number {
	let first = 0;
	let largest = 0;
	for (const [index, time] of times.entries()) {
		while (time - (times[first] ?? time) >= WINDOW_MS) first++;
		largest = Math.max(largest, index - first + 1);
	}
	return largest;
}
