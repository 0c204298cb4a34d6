import { mkdirSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * The folder for what is expensive to make and outlives a checkout: installed n8n versions, built
 * packages, the demo's n8n data.
 *
 * @returns `$MEDIA_GENERATION_CACHE`, else `$XDG_CACHE_HOME`, else `~/.cache`, with the package's name; it exists
 */
export function cacheFolder(): string {
	const base =
		process.env.MEDIA_GENERATION_CACHE || process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
	const folder = join(base, 'n8n-nodes-media-generation');
	mkdirSync(folder, { recursive: true });
	return folder;
}

/**
 * Makes sure that there is room before a long download begins.
 *
 * @param folder an existing folder on the disk in question
 * @param neededBytes free space that is needed, in bytes
 * @param purpose what needs it, for the message
 * @throws where there is less
 */
export async function assertDiskSpace(
	folder: string,
	neededBytes: number,
	purpose: string,
): Promise<void> {
	const { bavail, bsize } = await statfs(folder);
	const freeBytes = bavail * bsize;
	if (freeBytes < neededBytes) {
		throw new Error(
			`${purpose} needs ${gigabytes(neededBytes)} of disk space, and ${folder} has ${gigabytes(freeBytes)} left. ` +
				'Make room, or set MEDIA_GENERATION_CACHE to a folder on a larger disk.',
		);
	}
}

function gigabytes(bytes: number): string {
	return `${(bytes / 1e9).toFixed(1)} GB`;
}
