import { createHash } from 'node:crypto';
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { elapsed } from '../commandLine';
import { cacheFolder } from './cache';
import { makeOnce } from './lock';
import { runNpm } from './npm';

const PROGRESS_EVERY_MS = 20_000;

/** Keeps npm from saying what nobody reads. */
export const QUIET = ['--no-audit', '--no-fund', '--loglevel=error'];

/** What is installed, and what is said about it. */
interface LockedPackages {
	/** Begins the folder's name in the cache, e.g. `n8n-2.41.1`. */
	name: string;
	title: string;
	/** Folder with the `package.json` and its lock file. */
	manifestFolder: string;
	/** For the first line, e.g. `about five minutes`. */
	duration: string;
	/** What has to be done after npm has put the files there; their install scripts have not run. */
	prepare?: (folder: string) => Promise<void>;
}

/** Installs what a lock file pins, once on a machine, into the cache folder. @returns the folder with `node_modules` */
export async function installOnce(packages: LockedPackages): Promise<string> {
	const { name, title, manifestFolder, duration, prepare } = packages;
	const lockFile = await readFile(join(manifestFolder, 'package-lock.json'));
	const key = createHash('sha256').update(lockFile).digest('hex').slice(0, 12);
	const folder = join(cacheFolder(), `${name}-${key}`);
	return await makeOnce(folder, async (building) => {
		console.log(`Installing ${title} into ${folder} (once on this machine, ${duration}) …`);
		const start = Date.now();
		const progress = setInterval(() => console.log(`  … ${elapsed(start)}`), PROGRESS_EVERY_MS);
		try {
			for (const file of ['package.json', 'package-lock.json']) {
				await cp(join(manifestFolder, file), join(building, file));
			}
			await runNpm(['ci', '--ignore-scripts', '--legacy-peer-deps', ...QUIET], building);
			await prepare?.(building);
		} finally {
			clearInterval(progress);
		}
		console.log(`Installed ${title} in ${elapsed(start)}.`);
	});
}
