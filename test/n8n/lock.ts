import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { settled } from '../../nodes/MediaGeneration/shared/clock';

/** Who has the lock refreshes it. A lock that is older was left behind by a process that was killed; milliseconds. */
const STALE_MS = 15_000;

/**
 * Does something that only one process on this machine may do at a time.
 *
 * @param path what is being worked on; the lock is the folder `<path>.lock` beside it
 * @param work it must leave the event loop free, which keeps the lock fresh
 */
export async function withLock(path: string, work: () => Promise<void>): Promise<void> {
	const folder = `${path}.lock`;
	for (;;) {
		const made = await settled(mkdir(folder));
		if ('value' in made) break;
		if ((made.error as NodeJS.ErrnoException).code !== 'EEXIST') throw made.error;
		const there = await settled(stat(folder));
		const isStale = 'value' in there && Date.now() - there.value.mtimeMs > STALE_MS;
		if (isStale) await rm(folder, { recursive: true, force: true });
		else await sleep(500);
	}
	const refreshing = setInterval(() => {
		const now = new Date();
		void settled(utimes(folder, now, now));
	}, STALE_MS / 5);
	try {
		await work();
	} finally {
		clearInterval(refreshing);
		await rm(folder, { recursive: true, force: true });
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
