import type { Clock } from './clock';

/** @returns what the promise brings, or undefined where that takes longer than `ms` milliseconds */
export async function within<T>(
	promise: Promise<T>,
	ms: number,
	clock: Clock,
): Promise<T | undefined> {
	const late = clock.sleep(Math.max(0, ms), undefined).then(() => undefined);
	return await Promise.race([promise, late]);
}
