import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The n8n that everything runs on unless `N8N_VERSION` names another. */
export const DEFAULT_VERSION = '2.41.1';

const versionsFolder = join(__dirname, 'versions');

/** @returns the n8n to run, with its folder of `versions/` */
export function chooseN8nVersion(version = process.env.N8N_VERSION ?? DEFAULT_VERSION) {
	const manifestFolder = join(versionsFolder, version);
	if (!existsSync(join(manifestFolder, 'package-lock.json'))) {
		const known = readdirSync(versionsFolder).join(', ');
		throw new Error(`n8n '${version}' is not prepared here; prepared are: ${known}.`);
	}
	return { version, manifestFolder };
}
