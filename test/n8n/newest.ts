/**
 * Prints the newest n8n that can be installed, and prepares it under `versions/`: after the default version's
 * `package.json`, with a lock file made now. A version whose packages are not all there yet is passed over.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../commandLine';
import { runNpm } from './npm';
import { DEFAULT_VERSION } from './version';

const VERSIONS = join(__dirname, 'versions');
const MAX_TRIES = 5;

/** @returns those of all versions that are released, newest first */
export function newestFirst(published: string[]): string[] {
	return published
		.filter((version) => /^\d+\.\d+\.\d+$/.test(version))
		.sort((one, other) => other.localeCompare(one, undefined, { numeric: true }));
}

/** Writes `versions/<version>/` with its lock file. */
async function prepare(version: string): Promise<void> {
	const folder = join(VERSIONS, version);
	const manifest = JSON.parse(
		readFileSync(join(VERSIONS, DEFAULT_VERSION, 'package.json'), 'utf8'),
	) as { dependencies: Record<string, string> };
	manifest.dependencies.n8n = version;
	mkdirSync(folder, { recursive: true });
	writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
	await runNpm(
		[
			'install',
			'--package-lock-only',
			'--ignore-scripts',
			'--legacy-peer-deps',
			'--omit-lockfile-registry-resolved',
		],
		folder,
	);
}

async function main(): Promise<void> {
	const published = execFileSync('npm', ['view', 'n8n', 'versions', '--json'], {
		encoding: 'utf8',
		stdio: ['ignore', 'pipe', 'inherit'],
	});
	for (const version of newestFirst(JSON.parse(published) as string[]).slice(0, MAX_TRIES)) {
		if (version === DEFAULT_VERSION) return console.log(version);
		try {
			await prepare(version);
			return console.log(version);
		} catch (error) {
			console.error(`n8n ${version} cannot be installed: ${String(error)}`);
			rmSync(join(VERSIONS, version), { recursive: true, force: true });
		}
	}
	throw new Error(`None of the ${MAX_TRIES} newest versions of n8n can be installed.`);
}

if (require.main === module) runCommand(main);
