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

/**
 * @param latencies how long each task takes, in the order in which they are begun
 * @param inFlight how many may be unfinished at once
 * @returns when the last one is finished, where each one is begun the moment there is a place for it
 */
export function bestPossible(latencies: readonly number[], inFlight: number): number {
	const places = Array.from({ length: Math.min(inFlight, latencies.length) }, () => 0);
	for (const latency of latencies) {
		const first = places.indexOf(Math.min(...places));
		places[first] = (places[first] ?? 0) + latency;
	}
	return Math.max(...places);
}
