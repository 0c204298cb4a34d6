import { lock } from 'proper-lockfile';

/** A holder that has not touched its lock for this long is gone, in ms. */
const STALE_MS = 15_000;
const LOOK_AGAIN_MS = 500;

/**
 * Does something that only one process on this machine may do at a time. A process that died while it
 * held the lock delays the next one by a quarter of a minute, and never blocks it.
 *
 * @param path what is being worked on; the lock is the folder `<path>.lock` beside it
 * @param work done while the lock is held; it must leave the event loop free, which keeps the lock fresh
 * @param onWait called once where another process holds the lock
 * @returns what `work` returned
 */
export async function withLock<T>(
	path: string,
	work: () => Promise<T>,
	onWait: () => void = () => {},
): Promise<T> {
	const release = await acquire(path, onWait);
	try {
		return await work();
	} finally {
		await release();
	}
}

async function acquire(path: string, onWait: () => void): Promise<() => Promise<void>> {
	for (let attempt = 0; ; attempt++) {
		try {
			return await lock(path, { realpath: false, stale: STALE_MS });
		} catch (error) {
			if (!(error instanceof Error && 'code' in error && error.code === 'ELOCKED')) throw error;
			if (attempt === 0) onWait();
			await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
		}
	}
}
