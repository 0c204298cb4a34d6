import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

import { lock } from 'proper-lockfile';

/**
 * Does something that only one process on this machine may do at a time.
 *
 * @param path what is being worked on; the lock is the folder `<path>.lock` beside it
 * @param work it must leave the event loop free, which keeps the lock fresh
 */
export async function withLock(path: string, work: () => Promise<void>): Promise<void> {
	const retries = { forever: true, minTimeout: 500, maxTimeout: 500 };
	const release = await lock(path, { realpath: false, stale: 15_000, retries });
	try {
		await work();
	} finally {
		await release();
	}
}

/** Makes a folder once on a machine: beside its place, and renamed when it is complete. */
export async function makeOnce(
	path: string,
	make: (folder: string) => Promise<void>,
): Promise<string> {
	if (existsSync(path)) return path;
	await withLock(path, async () => {
		// Whoever held the lock before may have done the work.
		if (existsSync(path)) return;
		// What is there was left behind by processes that were killed: this one holds the lock.
		for (const name of await readdir(dirname(path))) {
			const isRemains = name.startsWith(`${basename(path)}.`) && name.endsWith('.partial');
			if (isRemains) await rm(join(dirname(path), name), { recursive: true, force: true });
		}
		const making = `${path}.${process.pid}.partial`;
		try {
			await mkdir(making);
			await make(making);
			await rename(making, path);
		} finally {
			await rm(making, { recursive: true, force: true });
		}
	});
	return path;
}
