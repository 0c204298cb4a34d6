import { execFile } from 'node:child_process';
import { join } from 'node:path';
import type { N8nClient } from './client';
import type { InstalledPackage } from './package';
import type { N8nProcess } from './process';

/** What the script below does is what n8n does after it has installed a package from the registry. */
const SCRIPT = `
	const { DatabaseSync } = require('node:sqlite');
	const { file, name, version, nodes } = JSON.parse(process.argv[1]);
	const database = new DatabaseSync(file, { timeout: 5000 });
	const now = new Date().toISOString().replace('T', ' ').replace('Z', '');
	database.exec('BEGIN IMMEDIATE');
	database.prepare('DELETE FROM installed_nodes WHERE package = ?').run(name);
	database.prepare('DELETE FROM installed_packages WHERE packageName = ?').run(name);
	database
		.prepare('INSERT INTO installed_packages (packageName, installedVersion, createdAt, updatedAt) VALUES (?, ?, ?, ?)')
		.run(name, version, now, now);
	for (const node of nodes) {
		database
			.prepare('INSERT INTO installed_nodes (name, type, latestVersion, package) VALUES (?, ?, ?, ?)')
			.run(node.name, node.type, node.version, name);
	}
	database.exec('COMMIT');
`;

/**
 * Has n8n list a package under Settings > Community nodes. n8n runs the nodes of everything that lies in
 * its folder, but lists only what its database knows, and its own installation takes packages from the
 * registry alone.
 *
 * @param n8n a running n8n on SQLite that has loaded the package
 * @param client logged in to it
 * @throws where n8n has loaded no node of the package
 */
export async function listAsInstalled(
	n8n: N8nProcess,
	client: N8nClient,
	{ name, version }: InstalledPackage,
): Promise<void> {
	const nodes = (await client.nodeTypes())
		.filter((node) => node.name.startsWith(`${name}.`))
		// n8n derives these from the nodes that an AI agent may use.
		.filter((node) => !node.name.endsWith('Tool'))
		.map(({ displayName, name: type, version: versions }) => ({
			name: displayName,
			type,
			version: Math.max(...[versions].flat()),
		}));
	if (nodes.length === 0) {
		throw new Error(`n8n has loaded no node of ${name}. Its log ends with:\n${n8n.logTail()}`);
	}
	const file = join(n8n.userFolder, '.n8n', 'database.sqlite');
	const input = JSON.stringify({ file, name, version, nodes });
	await new Promise<void>((resolve, reject) => {
		// n8n's own Node.js has SQLite built in; the one that runs this may not have it.
		execFile(n8n.install.nodeBinary, ['-e', SCRIPT, input], (error, _stdout, stderr) =>
			error ? reject(new Error(`${name} could not be listed: ${stderr}`)) : resolve(),
		);
	});
}
