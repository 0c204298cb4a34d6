import type { N8nClient } from './client';
import { literal } from './database';
import type { InstalledPackage } from './package';
import type { N8nProcess } from './process';

/**
 * Has n8n list a package under Settings > Community nodes. n8n runs the nodes of everything that lies in
 * its folder, but lists only what its database knows, and its own installation takes packages from the
 * registry alone.
 *
 * @param n8n a running n8n that has loaded the package
 * @param client logged in to it
 * @param execute runs statements on its database, as one transaction
 * @throws where n8n has loaded no node of the package
 */
export async function listAsInstalled(
	n8n: N8nProcess,
	client: N8nClient,
	{ name, version }: InstalledPackage,
	execute: (...statements: string[]) => Promise<unknown>,
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
	const now = new Date().toISOString().replace('T', ' ').replace('Z', '');
	const values = (...list: Array<string | number>) => `(${list.map(literal).join(', ')})`;
	// What n8n does after it has installed a package from the registry.
	await execute(
		`DELETE FROM installed_nodes WHERE package = ${literal(name)}`,
		`DELETE FROM installed_packages WHERE "packageName" = ${literal(name)}`,
		`INSERT INTO installed_packages ("packageName", "installedVersion", "createdAt", "updatedAt") VALUES ${values(name, version, now, now)}`,
		...nodes.map(
			(node) =>
				`INSERT INTO installed_nodes (name, type, "latestVersion", package) VALUES ${values(node.name, node.type, node.version, name)}`,
		),
	);
}
