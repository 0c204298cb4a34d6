import { spawnSync } from 'node:child_process';

/** Where Chromium is, or why there is none. */
export type Chromium = { path: string; missing?: never } | { path?: never; missing: string };

/**
 * Finds Chromium, and installs it from Debian's packages where it is missing and this process may.
 *
 * It works synchronously, because jest wants to know while it reads a file which of its tests to skip.
 */
export function findChromium(): Chromium {
	const which = 'command -v chromium || command -v chromium-browser || command -v google-chrome';
	const find = () => run(which).stdout?.trim();
	let path = find();
	if (!path && process.getuid?.() === 0 && run('command -v apt-get').status === 0) {
		console.log('Installing Chromium (once, about a minute) …');
		run('apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium');
		path = find();
	}
	if (path) return { path };
	return { missing: 'Chromium is not installed, and only root on Debian can install it here.' };
}

const run = (command: string) =>
	spawnSync('sh', ['-c', command], {
		env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
		encoding: 'utf8',
		timeout: 10 * 60_000,
	});
