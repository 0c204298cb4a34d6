import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { installOnce, QUIET } from './installOnce';
import { runNpm } from './npm';
import { chooseN8nVersion } from './version';

/** A real n8n on this machine, with the Node.js that it runs on. */
export type N8nInstall = Awaited<ReturnType<typeof installN8n>>;

/** Installs the real n8n once on a machine. @param wanted a folder of `versions/`; default: see `chooseN8nVersion` */
export async function installN8n(wanted?: string) {
	const { version, manifestFolder } = chooseN8nVersion(wanted);
	const folder = await installOnce({
		name: `n8n-${version}`,
		title: `n8n ${version}`,
		manifestFolder,
		duration: 'about five minutes',
		prepare,
	});
	const node = process.platform === 'win32' ? 'node.exe' : 'node';
	return {
		version,
		folder,
		nodeBinary: join(folder, 'node_modules', 'node', 'bin', node),
		n8nScript: join(folder, 'node_modules', 'n8n', 'bin', 'n8n'),
	};
}

/**
 * Of everything in there only these two need their install scripts: the Node.js binary that n8n asks for, and the
 * database driver. The others' scripts are left out on purpose.
 */
async function prepare(folder: string): Promise<void> {
	// Where no prebuilt SQLite driver can be downloaded it is compiled, and the headers for that would be downloaded too.
	// Those that came with this Node.js do as well, since the driver uses the interface that all versions share.
	const prefix = dirname(dirname(process.execPath));
	const hasHeaders = existsSync(join(prefix, 'include', 'node', 'node_api.h'));
	const rebuild = ['rebuild', 'node', 'sqlite3', '--ignore-scripts=false', ...QUIET];
	await runNpm(rebuild, folder, hasHeaders ? { nodedir: prefix } : {});
}
