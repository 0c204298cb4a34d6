import { createHash } from 'node:crypto';
import { cp, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { elapsed } from '../commandLine';
import { assertDiskSpace, cacheFolder } from './cache';
import { makeOnce } from './lock';
import { runNpm } from './npm';

const PROGRESS_EVERY_MS = 20_000;

/** Keeps npm from saying what nobody reads. */
export const QUIET = ['--no-audit', '--no-fund', '--loglevel=error'];

/** What is installed, and what is said about it. */
export interface LockedPackages {
	/** Begins the folder's name in the cache, e.g. `n8n-2.41.1`. */
	name: string;
	/** For messages, e.g. `n8n 2.41.1`. */
	title: string;
	/** Folder with the `package.json` and its lock file. */
	manifestFolder: string;
	/** Room that the installation takes at its largest, in bytes. */
	neededBytes: number;
	/** For the first line, e.g. `about five minutes`. */
	duration: string;
	/**
	 * What has to be done after npm has put the files there; their install scripts have not run.
	 *
	 * @param folder where they are
	 * @param log takes a progress line, which gets the time that has passed
	 */
	prepare?: (folder: string, log: (line: string) => void) => Promise<void>;
	/** Takes progress lines; default: the console. */
	log?: (line: string) => void;
}

/**
 * Installs what a lock file pins once on a machine, into the cache folder; from then on it is a look-up. Two
 * processes that ask at once share one installation.
 *
 * @returns the folder with its `node_modules`
 * @throws where the disk is too full or npm fails, with npm's own words
 */
export async function installOnce(packages: LockedPackages): Promise<string> {
	const { name, title, manifestFolder, log = console.log } = packages;
	const lockFile = await readFile(join(manifestFolder, 'package-lock.json'));
	const key = createHash('sha256').update(lockFile).digest('hex').slice(0, 12);
	const folder = join(cacheFolder(), `${name}-${key}`);
	return await makeOnce(
		folder,
		async (building) => await install(packages, building, folder, log),
		() => log(`Another process is installing ${title}; waiting for it …`),
	);
}

async function install(
	{ title, manifestFolder, neededBytes, duration, prepare }: LockedPackages,
	building: string,
	folder: string,
	log: (line: string) => void,
): Promise<void> {
	await assertDiskSpace(dirname(folder), neededBytes, `Installing ${title}`);
	log(`Installing ${title} into ${folder} (once on this machine, ${duration}) …`);
	const start = Date.now();
	const progress = setInterval(() => log(`  … ${elapsed(start)}`), PROGRESS_EVERY_MS);
	try {
		for (const file of ['package.json', 'package-lock.json']) {
			await cp(join(manifestFolder, file), join(building, file));
		}
		await runNpm(['ci', '--ignore-scripts', '--legacy-peer-deps', ...QUIET], building);
		await prepare?.(building, (line) => log(`  ${line} (${elapsed(start)})`));
	} catch (error) {
		const reason = error instanceof Error ? error.message : String(error);
		throw new Error(`${title} could not be installed. ${reason}`, { cause: error });
	} finally {
		clearInterval(progress);
	}
	log(`Installed ${title} in ${elapsed(start)}.`);
}
