import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

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
			await sleep(LOOK_AGAIN_MS);
		}
	}
}

/**
 * Makes a folder once on a machine. A half-made one is never seen by anybody: it is made beside its place and renamed
 * when it is complete.
 *
 * @param make fills the folder that it is given
 * @param onWait called once where another process is making it
 */
export async function makeOnce(
	path: string,
	make: (folder: string) => Promise<void>,
	onWait?: () => void,
): Promise<string> {
	if (existsSync(path)) return path;
	const work = async () => {
		// Whoever held the lock before may have done the work.
		if (existsSync(path)) return;
		await removeRemains(path);
		const making = `${path}.${process.pid}.partial`;
		try {
			await mkdir(making);
			await make(making);
			await rename(making, path);
		} finally {
			await rm(making, { recursive: true, force: true });
		}
	};
	await withLock(path, work, onWait);
	return path;
}

/** Removes what was left behind by processes that were killed; the caller holds the lock, so none is alive. */
async function removeRemains(path: string): Promise<void> {
	for (const name of await readdir(dirname(path))) {
		if (name.startsWith(`${basename(path)}.`) && name.endsWith('.partial')) {
			await rm(join(dirname(path), name), { recursive: true, force: true });
		}
	}
}
