import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** @returns the folder for what is expensive to make and outlives a checkout: see README.md */
export function cacheFolder(): string {
	const base =
		process.env.MEDIA_GENERATION_CACHE || process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
	const folder = join(base, 'n8n-nodes-media-generation');
	mkdirSync(folder, { recursive: true });
	return folder;
}
