import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { cacheFolder } from './cache';
import { QUIET } from './installOnce';
import { withLock } from './lock';
import { runNpm } from './npm';

const ROOT = resolve(__dirname, '../..');

/** All that decides what the package consists of, relative to the repository. */
const SOURCES = [
	'credentials',
	'nodes',
	'package.json',
	'tsconfig.json',
	'gulpfile.js',
	'README.md',
	'CHANGELOG.md',
	'LICENSE.md',
];

/** Every n8n installs the tarball: it has no more than that. */
export const MAX_TARBALL_KIB = 120;

/** Builds this package and packs it as for publishing; the tarball of unchanged sources is kept in the cache folder. */
export async function packPackage() {
	const folder = join(cacheFolder(), 'packages');
	await mkdir(folder, { recursive: true });
	for (;;) {
		const hash = await hashOfSources();
		const tarball = join(folder, `${hash}.tgz`);
		if (existsSync(tarball)) return { tarball, hash, sizeBytes: (await stat(tarball)).size };
		// Builds share `dist/`, so only one may run.
		await withLock(folder, async () => {
			if (existsSync(tarball)) return;
			console.log('Building and packing the package …');
			const packing = await mkdtemp(join(folder, 'packing-'));
			try {
				await runNpm(['run', 'build'], ROOT);
				await runNpm(['pack', '--ignore-scripts', '--pack-destination', packing], ROOT);
				const [made = ''] = await readdir(packing);
				// Where somebody edited a source meanwhile, this is the build of neither state.
				if ((await hashOfSources()) === hash) await rename(join(packing, made), tarball);
			} finally {
				await rm(packing, { recursive: true, force: true });
			}
		});
	}
}

async function hashOfSources(): Promise<string> {
	const hash = createHash('sha256');
	for (const source of SOURCES) {
		for (const file of await filesOf(join(ROOT, source))) {
			const content = await readFile(file);
			hash.update(`${file.slice(ROOT.length)}\0${content.length}\0`).update(content);
		}
	}
	return hash.digest('hex').slice(0, 16);
}

async function filesOf(path: string): Promise<string[]> {
	if (!(await stat(path)).isDirectory()) return [path];
	const inside = (await readdir(path)).sort().map((name) => filesOf(join(path, name)));
	return (await Promise.all(inside)).flat();
}

/** Installs a packed community package into n8n's user folder, by the command that the documentation tells users. */
export async function installPackage(userFolder: string, tarball: string): Promise<void> {
	const nodesFolder = join(userFolder, '.n8n', 'nodes');
	await mkdir(nodesFolder, { recursive: true });
	await runNpm(['install', '--legacy-peer-deps', ...QUIET, tarball], nodesFolder);
}
