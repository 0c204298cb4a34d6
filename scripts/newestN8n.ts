/**
 * Prints the newest n8n, and prepares it under `test/n8n/versions/`: after the default version's `package.json`, with a
 * lock file made now.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { runCommand } from '../test/commandLine';
import { runNpm } from '../test/n8n/npm';
import { DEFAULT_VERSION } from '../test/n8n/version';

const VERSIONS = resolve(__dirname, '../test/n8n/versions');

runCommand(async () => {
	const version = execFileSync('npm', ['view', 'n8n@latest', 'version'], {
		encoding: 'utf8',
	}).trim();
	const folder = join(VERSIONS, version);
	if (!existsSync(join(folder, 'package-lock.json'))) {
		const text = readFileSync(join(VERSIONS, DEFAULT_VERSION, 'package.json'), 'utf8');
		const manifest = JSON.parse(text) as { dependencies: Record<string, string> };
		manifest.dependencies.n8n = version;
		mkdirSync(folder, { recursive: true });
		writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
		const lockOnly = ['--package-lock-only', '--omit-lockfile-registry-resolved'];
		await runNpm(['install', ...lockOnly, '--ignore-scripts', '--legacy-peer-deps'], folder);
	}
	console.log(version);
});
