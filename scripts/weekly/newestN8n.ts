/**
 * Prints the newest n8n that can be installed, and prepares it under `versions/`: after the default version's
 * `package.json`, with a lock file made now. A version whose packages are not all there yet is passed over.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { runCommand } from '../../test/commandLine';
import { runNpm } from '../../test/n8n/npm';
import { DEFAULT_VERSION } from '../../test/n8n/version';

const VERSIONS = resolve(__dirname, '../../test/n8n/versions');
const MAX_TRIES = 5;

/** @returns those of all versions that are released, newest first */
export function newestFirst(published: string[]): string[] {
	return published
		.filter((version) => /^\d+\.\d+\.\d+$/.test(version))
		.sort((one, other) => other.localeCompare(one, undefined, { numeric: true }));
}

/** Writes a folder with a version's `package.json` and lock file. */
async function prepare(folder: string, version: string): Promise<void> {
	const text = readFileSync(join(VERSIONS, DEFAULT_VERSION, 'package.json'), 'utf8');
	const manifest = JSON.parse(text) as { dependencies: Record<string, string> };
	manifest.dependencies.n8n = version;
	mkdirSync(folder);
	writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
	const lockOnly = ['--package-lock-only', '--omit-lockfile-registry-resolved'];
	await runNpm(['install', ...lockOnly, '--ignore-scripts', '--legacy-peer-deps'], folder);
}

async function main(): Promise<void> {
	const published = execFileSync('npm', ['view', 'n8n', 'versions', '--json']).toString();
	for (const version of newestFirst(JSON.parse(published) as string[]).slice(0, MAX_TRIES)) {
		const folder = join(VERSIONS, version);
		try {
			if (!existsSync(folder)) await prepare(folder, version);
			return console.log(version);
		} catch (error) {
			console.error(`n8n ${version} cannot be installed: ${String(error)}`);
			rmSync(folder, { recursive: true, force: true });
		}
	}
	throw new Error(`None of the ${MAX_TRIES} newest versions of n8n can be installed.`);
}

if (require.main === module) runCommand(main);
