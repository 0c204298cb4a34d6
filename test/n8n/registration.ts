import { name as packageName, version as packageVersion } from '../../package.json';
import type { N8nClient } from './client';
import { literal } from './database';
import type { N8nProcess } from './process';

/**
 * Has n8n list this package under Settings > Community nodes. n8n lists only what its database knows, and its own
 * installation takes packages from the registry alone.
 *
 * @param execute runs statements on its database, as one transaction
 */
export async function listAsInstalled(
	n8n: N8nProcess,
	client: N8nClient,
	execute: (...statements: string[]) => Promise<unknown>,
): Promise<void> {
	const nodes = (await client.nodeTypes())
		.filter((node) => node.name.startsWith(`${packageName}.`))
		// n8n derives these from the nodes that an AI agent may use.
		.filter((node) => !node.name.endsWith('Tool'))
		.map(({ displayName, name: type, version: versions }) => ({
			name: displayName,
			type,
			version: Math.max(...[versions].flat()),
		}));
	const logTail = n8n.logTail();
	if (nodes.length === 0) throw new Error(`n8n has loaded no node of ours:\n${logTail}`);
	const now = new Date().toISOString().replace('T', ' ').replace('Z', '');
	const values = (...list: Array<string | number>) => `(${list.map(literal).join(', ')})`;
	// What n8n does after it has installed a package from the registry.
	await execute(
		`DELETE FROM installed_nodes WHERE package = ${literal(packageName)}`,
		`DELETE FROM installed_packages WHERE "packageName" = ${literal(packageName)}`,
		`INSERT INTO installed_packages ("packageName", "installedVersion", "createdAt", "updatedAt") VALUES ${values(packageName, packageVersion, now, now)}`,
		...nodes.map(
			(node) =>
				`INSERT INTO installed_nodes (name, type, "latestVersion", package) VALUES ${values(node.name, node.type, node.version, packageName)}`,
		),
	);
}
