import { spawn } from 'node:child_process';
import { endWithUs, OWN_GROUP } from './children';

/** How many of npm's lines an error shows, from the start (the reason) and from the end (the log's place). */
const FIRST_LINES = 15;
const LAST_LINES = 5;

/**
 * Runs npm and waits for it. It ends with this process.
 *
 * @param args npm's arguments
 * @param cwd folder to run it in
 * @param settings npm settings, over those of the machine
 * @throws with npm's own words where npm cannot be started or does not succeed
 */
export async function runNpm(
	args: string[],
	cwd: string,
	settings: Record<string, string> = {},
): Promise<void> {
	const given = Object.entries(settings).map(([name, value]) => [`npm_config_${name}`, value]);
	const child = spawn('npm', args, {
		cwd,
		env: { ...ownEnvironment(), ...Object.fromEntries(given) },
		stdio: ['ignore', 'pipe', 'pipe'],
		shell: process.platform === 'win32',
		...OWN_GROUP,
	});
	endWithUs(child);
	let output = '';
	for (const stream of [child.stdout, child.stderr]) {
		stream.setEncoding('utf8').on('data', (text: string) => (output += text));
	}
	const exit = await new Promise<string | null>((resolve, reject) => {
		child.once('error', reject);
		child.once('close', (code, signal) =>
			resolve(code === 0 ? null : signal ? `was ended by ${signal}` : `exited with ${code}`),
		);
	});
	if (exit === null) return;
	throw new Error(`"npm ${args.join(' ')}" in ${cwd} ${exit}:\n${shorten(output)}`);
}

/**
 * This process's environment without what an outer `npm run` put there: npm hands its project's
 * settings down as `npm_…` variables, and they would win over the inner project's own.
 */
function ownEnvironment(): NodeJS.ProcessEnv {
	const outer = /^npm_(package_|lifecycle_|config_(ignore_scripts|local_prefix)$)/i;
	return Object.fromEntries(Object.entries(process.env).filter(([name]) => !outer.test(name)));
}

function shorten(output: string): string {
	const lines = output.trim().split('\n');
	if (lines.length <= FIRST_LINES + LAST_LINES) return lines.join('\n');
	return [...lines.slice(0, FIRST_LINES), '…', ...lines.slice(-LAST_LINES)].join('\n');
}
