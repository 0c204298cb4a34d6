import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { assertDiskSpace, cacheFolder } from './cache';
import { withLock } from './lock';
import { runNpm } from './npm';
import { chooseN8nVersion } from './version';

/** Room that an installation takes at its largest, in bytes. */
const NEEDED_BYTES = 3e9;
const PROGRESS_EVERY_MS = 20_000;

/** A real n8n on this machine, with the Node.js that it runs on. */
export interface N8nInstall {
	version: string;
	folder: string;
	/** Path of the Node.js binary to run n8n with. */
	nodeBinary: string;
	/** Path of n8n's command line script. */
	n8nScript: string;
}

/**
 * Installs the real n8n once on a machine, into the cache folder; from then on it is a look-up. Two
 * processes that ask at once share one installation. A half-done one is never seen by anybody: it is
 * made beside its place and renamed when it is complete.
 *
 * @param options.version a folder of `test/n8n/versions/`; default: see `chooseN8nVersion`
 * @param options.log takes progress lines
 * @throws where the disk is too full or npm fails, with npm's own words
 */
export async function installN8n(
	options: { version?: string; log?: (line: string) => void } = {},
): Promise<N8nInstall> {
	const { version, manifestFolder } = chooseN8nVersion(options.version);
	const log = options.log ?? console.log;
	const lockFile = await readFile(join(manifestFolder, 'package-lock.json'));
	const key = createHash('sha256').update(lockFile).digest('hex').slice(0, 12);
	const folder = join(cacheFolder(), `n8n-${version}-${key}`);
	const install: N8nInstall = {
		version,
		folder,
		nodeBinary: join(folder, 'node_modules', 'node', 'bin', nodeName()),
		n8nScript: join(folder, 'node_modules', 'n8n', 'bin', 'n8n'),
	};
	if (existsSync(folder)) return install;

	await withLock(
		folder,
		async () => {
			// Whoever held the lock before may have done the work.
			if (!existsSync(folder)) await build(version, manifestFolder, folder, log);
		},
		() => log(`Another process is installing n8n ${version}; waiting for it …`),
	);
	return install;
}

async function build(
	version: string,
	manifestFolder: string,
	folder: string,
	log: (line: string) => void,
): Promise<void> {
	await removeRemains(folder);
	await assertDiskSpace(dirname(folder), NEEDED_BYTES, `Installing n8n ${version}`);
	log(`Installing n8n ${version} into ${folder} (once on this machine, about five minutes) …`);
	const start = Date.now();
	const progress = setInterval(() => log(`  … ${elapsed(start)}`), PROGRESS_EVERY_MS);
	const building = `${folder}.${process.pid}.partial`;
	try {
		await mkdir(building);
		for (const name of ['package.json', 'package-lock.json']) {
			await cp(join(manifestFolder, name), join(building, name));
		}
		const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
		await runNpm(['ci', '--ignore-scripts', '--legacy-peer-deps', ...quiet], building);
		// Of everything in there only these two need their install scripts: the Node.js binary that n8n
		// asks for, and the database driver. The others' scripts are left out on purpose.
		log(`  n8n's files are there (${elapsed(start)}); preparing Node.js and SQLite …`);
		await runNpm(
			['rebuild', 'node', 'sqlite3', '--ignore-scripts=false', ...quiet],
			building,
			compilerHeaders(),
		);
		await rename(building, folder);
	} catch (error) {
		await rm(building, { recursive: true, force: true });
		const reason = error instanceof Error ? error.message : String(error);
		throw new Error(`n8n ${version} could not be installed. ${reason}`, { cause: error });
	} finally {
		clearInterval(progress);
	}
	log(`Installed n8n ${version} in ${elapsed(start)}.`);
}

/** Removes what installations that were killed left behind; the caller holds the lock, so none is alive. */
async function removeRemains(folder: string): Promise<void> {
	for (const name of await readdir(dirname(folder))) {
		if (name.startsWith(`${basename(folder)}.`) && name.endsWith('.partial')) {
			await rm(join(dirname(folder), name), { recursive: true, force: true });
		}
	}
}

/**
 * Where no prebuilt SQLite driver can be downloaded it is compiled, and the headers for that would be downloaded
 * too: those that came with this Node.js do as well, since the driver uses the interface that all versions share.
 */
function compilerHeaders(): Record<string, string> {
	const prefix = dirname(dirname(process.execPath));
	return existsSync(join(prefix, 'include', 'node', 'node_api.h')) ? { nodedir: prefix } : {};
}

function nodeName(): string {
	return process.platform === 'win32' ? 'node.exe' : 'node';
}

function elapsed(start: number): string {
	const seconds = Math.round((Date.now() - start) / 1000);
	return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
