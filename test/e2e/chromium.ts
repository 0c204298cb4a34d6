import { spawnSync } from 'node:child_process';

/** Where Chromium is, or why there is none. */
export type Chromium = { path: string; missing?: never } | { path?: never; missing: string };

/** Finds Chromium, synchronously: jest wants to know while it reads a file which of its tests to skip. */
export function findChromium(): Chromium {
	const which = 'command -v chromium || command -v chromium-browser || command -v google-chrome';
	const path = spawnSync('sh', ['-c', which], { encoding: 'utf8' }).stdout.trim();
	if (path) return { path };
	return { missing: 'Chromium is not installed. On Debian: apt-get install chromium' };
}
