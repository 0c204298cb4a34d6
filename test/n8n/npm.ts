import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Runs npm and waits for it.
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
	const env = { ...ownEnvironment(), ...(Object.fromEntries(given) as NodeJS.ProcessEnv) };
	const running = promisify(execFile)('npm', args, { cwd, env, maxBuffer: 64 * 1024 * 1024 });
	running.child.stdin?.end();
	await running;
}

/**
 * This process's environment without what an outer `npm run` put there: npm hands its project's
 * settings down as `npm_…` variables, and they would win over the inner project's own.
 */
function ownEnvironment(): NodeJS.ProcessEnv {
	const outer = /^npm_(package_|lifecycle_|config_(ignore_scripts|local_prefix)$)/i;
	return Object.fromEntries(Object.entries(process.env).filter(([name]) => !outer.test(name)));
}
