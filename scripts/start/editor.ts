import { join } from 'node:path';
import { cacheFolder } from '../../test/n8n/cache';
import { N8nClient, TEST_OWNER } from '../../test/n8n/client';
import { querySqlite } from '../../test/n8n/database';
import type { N8nInstall } from '../../test/n8n/install';
import { installPackage } from '../../test/n8n/package';
import { startN8n } from '../../test/n8n/process';
import { listAsInstalled } from '../../test/n8n/registration';

export const DEMO_OWNER = { ...TEST_OWNER, email: 'demo@example.com' };

/** Where the data of the demo's n8n are. */
export const demoFolder = (version: string, port: number): string =>
	join(cacheFolder(), `demo-${version}-${port}`);

/**
 * Starts the demo's n8n with the package installed. Its data are kept in the cache folder, so that the editor remembers
 * what was done in it.
 *
 * @param port n8n's port; each has data of its own, so two demos never share any
 * @returns that n8n, and a client that is logged in to it
 * @throws where n8n does not start on its data; nothing is left running then
 */
export async function startEditor(install: N8nInstall, port: number, tarball: string) {
	const userFolder = demoFolder(install.version, port);
	await installPackage(userFolder, tarball);
	const env = { N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem' };
	const n8n = await startN8n({ userFolder, port, install, env });
	try {
		const client = new N8nClient(n8n.url);
		await client.setUp(DEMO_OWNER);
		const execute = async (...statements: string[]) => await querySqlite(n8n, ...statements);
		await listAsInstalled(n8n, client, execute);
		return { n8n, client };
	} catch (error) {
		await n8n.stop();
		throw error;
	}
}
