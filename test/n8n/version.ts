import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The n8n that everything runs on unless `N8N_VERSION` names another. */
export const DEFAULT_VERSION = '2.41.1';

const versionsFolder = join(__dirname, 'versions');

/** One version of n8n that this repository knows how to install. */
export interface N8nVersion {
	version: string;
	/** Folder with the pinned `package.json` and its lock file. */
	manifestFolder: string;
}

/**
 * Chooses the n8n to run: a folder of `test/n8n/versions/`.
 *
 * @param version e.g. `2.41.1`; the environment variable `N8N_VERSION`, else the default, when left out
 * @throws where there is no such folder; the message names those that there are
 */
export function chooseN8nVersion(version = process.env.N8N_VERSION || DEFAULT_VERSION): N8nVersion {
	const manifestFolder = join(versionsFolder, version);
	if (!existsSync(join(manifestFolder, 'package-lock.json'))) {
		const known = readdirSync(versionsFolder).join(', ');
		throw new Error(`n8n ${version} is not prepared here; prepared are: ${known}.`);
	}
	return { version, manifestFolder };
}
