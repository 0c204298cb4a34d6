import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { installOnce, QUIET } from './installOnce';
import { runNpm } from './npm';
import { chooseN8nVersion } from './version';

/** Room that an installation takes at its largest, in bytes. */
const NEEDED_BYTES = 3e9;

/** A real n8n on this machine, with the Node.js that it runs on. */
export interface N8nInstall {
	version: string;
	folder: string;
	/** Path of the Node.js binary to run n8n with. */
	nodeBinary: string;
	/** Path of n8n's command line script. */
	n8nScript: string;
}

/**
 * Installs the real n8n once on a machine, see `installOnce`.
 *
 * @param options.version a folder of `test/n8n/versions/`; default: see `chooseN8nVersion`
 * @param options.log takes progress lines
 * @throws where the disk is too full or npm fails, with npm's own words
 */
export async function installN8n(
	options: { version?: string; log?: (line: string) => void } = {},
): Promise<N8nInstall> {
	const { version, manifestFolder } = chooseN8nVersion(options.version);
	const folder = await installOnce({
		name: `n8n-${version}`,
		title: `n8n ${version}`,
		manifestFolder,
		neededBytes: NEEDED_BYTES,
		duration: 'about five minutes',
		prepare,
		log: options.log,
	});
	return {
		version,
		folder,
		nodeBinary: join(folder, 'node_modules', 'node', 'bin', nodeName()),
		n8nScript: join(folder, 'node_modules', 'n8n', 'bin', 'n8n'),
	};
}

/**
 * Of everything in there only these two need their install scripts: the Node.js binary that n8n asks for, and the
 * database driver. The others' scripts are left out on purpose.
 */
async function prepare(folder: string, log: (line: string) => void): Promise<void> {
	log("n8n's files are there; preparing Node.js and SQLite …");
	await runNpm(
		['rebuild', 'node', 'sqlite3', '--ignore-scripts=false', ...QUIET],
		folder,
		compilerHeaders(),
	);
}

/**
 * Where no prebuilt SQLite driver can be downloaded it is compiled, and the headers for that would be downloaded
 * too: those that came with this Node.js do as well, since the driver uses the interface that all versions share.
 */
function compilerHeaders(): Record<string, string> {
	const prefix = dirname(dirname(process.execPath));
	return existsSync(join(prefix, 'include', 'node', 'node_api.h')) ? { nodedir: prefix } : {};
}

function nodeName(): string {
	return process.platform === 'win32' ? 'node.exe' : 'node';
}
