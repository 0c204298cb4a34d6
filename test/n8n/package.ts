import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
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

/** As `docs/installation.md` has it. */
export const INSTALL = ['install', '--legacy-peer-deps'];

/** Every n8n installs the tarball: it has no more than that. */
export const MAX_TARBALL_KIB = 70;

/** The package as npm would publish it. */
export interface PackedPackage {
	/** Path of the tarball, in the cache folder. */
	tarball: string;
	/** Digest of the sources it was made from. */
	hash: string;
	sizeBytes: number;
}

/**
 * Builds this repository's package and packs it as npm would for publishing. Unchanged sources are built
 * only once: the tarball is kept in the cache folder.
 *
 * @param options.log takes a line where there is something to build
 * @throws with the compiler's own words where the sources do not build
 */
export async function packPackage(
	options: { log?: (line: string) => void } = {},
): Promise<PackedPackage> {
	const log = options.log ?? console.log;
	const folder = join(cacheFolder(), 'packages');
	await mkdir(folder, { recursive: true });
	for (;;) {
		const hash = await hashOfSources();
		const tarball = join(folder, `${hash}.tgz`);
		if (existsSync(tarball)) return { tarball, hash, sizeBytes: (await stat(tarball)).size };
		// Builds share `dist/`, so only one may run.
		await withLock(folder, async () => {
			if (existsSync(tarball)) return;
			log('Building and packing the package …');
			const packing = await mkdtemp(join(folder, 'packing-'));
			try {
				await runNpm(['run', 'build'], ROOT);
				await runNpm(['pack', '--ignore-scripts', '--pack-destination', packing], ROOT);
				const [name] = await readdir(packing);
				if (name === undefined) throw new Error('npm pack made no tarball.');
				// Where somebody edited a source meanwhile, this is the build of neither state.
				if ((await hashOfSources()) === hash) await rename(join(packing, name), tarball);
			} finally {
				await rm(packing, { recursive: true, force: true });
			}
		});
	}
}

async function hashOfSources(): Promise<string> {
	const hash = createHash('sha256');
	for (const source of SOURCES) {
		const path = join(ROOT, source);
		if (!existsSync(path)) continue;
		for (const file of await filesOf(path)) {
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

/** A package as it lies in a user folder. */
export interface InstalledPackage {
	name: string;
	version: string;
}

/**
 * Installs a packed community package into a user folder, by the command that the documentation tells users. An
 * earlier version is replaced. n8n loads it at its next start.
 *
 * @param userFolder n8n's user folder; may not exist yet
 * @param tarball path of the packed package
 * @throws with npm's own words where it cannot be installed
 */
export async function installPackage(
	userFolder: string,
	tarball: string,
): Promise<InstalledPackage> {
	const nodesFolder = join(userFolder, '.n8n', 'nodes');
	await mkdir(nodesFolder, { recursive: true });
	await runNpm([...INSTALL, ...QUIET, tarball], nodesFolder);
	const { stdout } = await promisify(execFile)('tar', ['-xzOf', tarball, 'package/package.json']);
	const { name, version } = JSON.parse(stdout) as InstalledPackage;
	return { name, version };
}
