import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { cacheFolder } from './cache';
import { N8nClient } from './client';
import { installN8n } from './install';
import { makeOnce } from './lock';
import { installPackage, packPackage } from './package';
import { startN8n } from './process';

/**
 * Makes a user folder with this package installed, and a SQLite database with the owner of all tests. What takes long
 * is done once on a machine and copied from then on.
 *
 * @param options.furtherTarballs packages to install beside ours
 */
export async function makeUserFolder({
	furtherTarballs = [] as string[],
	withDatabase = true,
} = {}): Promise<string> {
	const userFolder = await mkdtemp(join(tmpdir(), 'media-generation-e2e-'));
	if (withDatabase) await cp(await emptyDatabase(), userFolder, { recursive: true });
	await cp(await installedPackage(), userFolder, { recursive: true });
	for (const tarball of furtherTarballs) await installPackage(userFolder, tarball);
	return userFolder;
}

/** @returns a user folder with nothing but this package */
async function installedPackage(): Promise<string> {
	const { tarball, hash } = await packPackage();
	return await makeOnce(join(cacheFolder(), 'packages', hash), async (folder) => {
		await installPackage(folder, tarball);
	});
}

/** @returns a user folder with nothing but an empty database of the chosen n8n */
async function emptyDatabase(): Promise<string> {
	const install = await installN8n();
	return await makeOnce(`${install.folder}.database`, async (folder) => {
		const n8n = await startN8n({ userFolder: folder, install });
		await new N8nClient(n8n.url).setUp();
		await n8n.stop();
		const data = join(folder, '.n8n');
		for (const name of await readdir(data)) {
			const isKept = name === 'config' || name.startsWith('database.sqlite');
			if (!isKept) await rm(join(data, name), { recursive: true });
		}
		await rm(n8n.logFile);
	});
}
