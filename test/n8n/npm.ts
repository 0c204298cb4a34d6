import execa from 'execa';

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
	const env = { ...ownEnvironment(), ...(Object.fromEntries(given) as NodeJS.ProcessEnv) };
	await execa('npm', args, { cwd, env, extendEnv: false, stdin: 'ignore' });
}

/**
 * This process's environment without what an outer `npm run` put there: npm hands its project's
 * settings down as `npm_…` variables, and they would win over the inner project's own.
 */
function ownEnvironment(): NodeJS.ProcessEnv {
	const outer = /^npm_(package_|lifecycle_|config_(ignore_scripts|local_prefix)$)/i;
	return Object.fromEntries(Object.entries(process.env).filter(([name]) => !outer.test(name)));
}
