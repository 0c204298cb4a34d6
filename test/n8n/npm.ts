import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { endWithUs, OWN_GROUP } from './children';

/**
 * Runs npm and waits for it. It ends with this process.
 *
 * @param settings npm settings, over those of the machine
 * @throws with npm's own words where it does not succeed
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
	const [output, errors, [code, signal]] = await Promise.all([
		text(child.stdout),
		text(child.stderr),
		once(child, 'close'),
	]);
	if (code === 0) return;
	const end = signal ? `was ended by ${signal}` : `exited with ${code}`;
	throw new Error(`"npm ${args.join(' ')}" in ${cwd} ${end}:\n${errors}${output}`);
}

/**
 * This process's environment without what an outer `npm run` put there: npm hands its project's
 * settings down as `npm_…` variables, and they would win over the inner project's own.
 */
function ownEnvironment(): NodeJS.ProcessEnv {
	const outer = /^npm_(package_|lifecycle_|config_(ignore_scripts|local_prefix)$)/i;
	return Object.fromEntries(Object.entries(process.env).filter(([name]) => !outer.test(name)));
}
