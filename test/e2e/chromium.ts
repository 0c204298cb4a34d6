import { spawnSync } from 'node:child_process';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const INSTALL_TIMEOUT_MS = 10 * 60_000;

/** Where Chromium is, or why there is none. */
export type Chromium = { path: string; missing?: never } | { path?: never; missing: string };

/**
 * Finds Chromium, and installs it from Debian's packages where it is missing and this process may.
 *
 * It works synchronously, because jest wants to know while it reads a file which of its tests to skip.
 */
export function findChromium(): Chromium {
	const found = which();
	if (found) return { path: found };
	if (process.platform !== 'linux' || process.getuid?.() !== 0 || !run('apt-get', ['--version'])) {
		return { missing: 'Chromium is not installed, and only root on Debian can install it here.' };
	}
	console.log('Installing Chromium (once, about a minute) …');
	const isInstalled =
		run('apt-get', ['update', '-qq']) &&
		run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'chromium']);
	const path = which();
	return path
		? { path }
		: {
				missing: `Chromium is missing, and apt-get ${isInstalled ? 'has' : 'could install'} none.`,
			};
}

function which(): string | undefined {
	const { stdout } = spawnSync(
		'sh',
		['-c', NAMES.map((name) => `command -v ${name}`).join(' || ')],
		{
			encoding: 'utf8',
		},
	);
	return stdout?.trim() || undefined;
}

/** @returns whether the command succeeded */
function run(command: string, args: string[]): boolean {
	const { status } = spawnSync(command, args, {
		env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
		stdio: 'ignore',
		timeout: INSTALL_TIMEOUT_MS,
	});
	return status === 0;
}
