import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheFolder } from '../n8n/cache';
import { type Owner, N8nApiError, N8nClient } from '../n8n/client';
import { querySqlite } from '../n8n/database';
import type { N8nInstall } from '../n8n/install';
import { installPackage } from '../n8n/package';
import { type N8nProcess, N8nStartError, startN8n } from '../n8n/process';
import { listAsInstalled } from '../n8n/registration';

export const DEMO_OWNER: Owner = {
	email: 'demo@example.com',
	password: 'Media-generation-1',
	firstName: 'Demo',
	lastName: 'Owner',
};

/** The demo's n8n, logged in. */
export interface Editor {
	n8n: N8nProcess;
	client: N8nClient;
}

/**
 * Starts the demo's n8n with the package installed. Its data are kept in the cache folder, so that the
 * editor remembers what was done in it; where n8n does not start on them they are put aside, and it starts
 * on new ones.
 *
 * @param port n8n's port; each has data of its own, so two demos never share any
 * @param tarball the packed package
 * @throws where n8n does not start on new data either; nothing is left running then
 */
export async function startEditor(
	install: N8nInstall,
	port: number,
	tarball: string,
): Promise<Editor> {
	const userFolder = join(cacheFolder(), `demo-${install.version}-${port}`);
	const hasData = existsSync(userFolder);
	try {
		return await startOn(userFolder, install, port, tarball);
	} catch (error) {
		const reason = hasData && reasonInTheData(error);
		if (!reason) throw error;
		const aside = `${userFolder}.broken`;
		await rm(aside, { recursive: true, force: true });
		await rename(userFolder, aside);
		console.log(
			`The demo's n8n cannot use its earlier data: ${reason}\n` +
				`They are now in ${aside}, with n8n.log; starting on new ones …`,
		);
		return await startOn(userFolder, install, port, tarball);
	}
}

/** @returns what may be wrong with the data n8n was started on; undefined where they are not to blame */
function reasonInTheData(error: unknown): string | undefined {
	if (error instanceof N8nStartError) return error.reason;
	const isLoginRefused = error instanceof N8nApiError && error.status === 401;
	return isLoginRefused ? "They belong to somebody else's login." : undefined;
}

async function startOn(
	userFolder: string,
	install: N8nInstall,
	port: number,
	tarball: string,
): Promise<Editor> {
	const installed = await installPackage(userFolder, tarball);
	const n8n = await startN8n({
		userFolder,
		port,
		install,
		env: { N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem' },
	});
	try {
		const client = new N8nClient(n8n.url);
		await client.setUp(DEMO_OWNER);
		await listAsInstalled(
			n8n,
			client,
			installed,
			async (...statements) => await querySqlite(n8n, ...statements),
		);
		return { n8n, client };
	} catch (error) {
		await n8n.stop();
		throw error;
	}
}
