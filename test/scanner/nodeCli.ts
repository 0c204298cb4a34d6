import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const ROOT = resolve(__dirname, '../..');
const CLI = 'node_modules/@n8n/node-cli';

/** What a package that was made with n8n's tool has, too. */
const SOURCES = [
	'nodes',
	'credentials',
	'package.json',
	'tsconfig.json',
	'README.md',
	'LICENSE.md',
];

/** Left out by `n8n-node build`, though n8n reads them: the words by which a node is found, and its links. */
const CODEX = /\.node\.json$/;

/** Made from the sources while the package is built, which n8n's tool does not know. */
const SCHEMA = /__schema__\//;

export interface CliVerdict {
	passed: boolean;
	details: string;
}

/** n8n's tool in a folder that looks as if it had made the package, its strict configuration included. */
async function prepare(folder: string, tools: string): Promise<void> {
	await cp(
		join(tools, CLI, 'dist/template/templates/shared/default/eslint.config.mjs'),
		join(folder, 'eslint.config.mjs'),
	);
	await symlink(join(tools, 'node_modules'), join(folder, 'node_modules'), 'junction');
}

async function run(folder: string, command: string): Promise<CliVerdict> {
	return await new Promise((settle) => {
		execFile(
			process.execPath,
			[join(folder, CLI, 'bin/n8n-node.mjs'), command],
			{ cwd: folder, env: { ...process.env, CI: 'true' } },
			(error, stdout, stderr) => settle({ passed: error === null, details: stdout + stderr }),
		);
	});
}

/**
 * `n8n-node lint` and `n8n-node build` on the sources.
 *
 * @param tools the folder in which n8n's tool is installed
 * @param folder an empty folder to work in
 * @param dist the package's own build, to compare with
 * @throws where the tool lets pass what n8n refuses
 */
export async function tryNodeCli(
	tools: string,
	folder: string,
	dist: string,
): Promise<Record<string, CliVerdict>> {
	const offence = join(folder, 'offence');
	const sources = join(folder, 'sources');
	await mkdir(join(offence, 'nodes'), { recursive: true });
	await writeFile(
		join(offence, 'package.json'),
		'{ "name": "n8n-nodes-offence", "version": "0.1.0", "n8n": { "nodes": ["dist/nodes/Offence.node.js"] } }',
	);
	await writeFile(join(offence, 'nodes/Offence.node.ts'), 'export const home = process.env.HOME;');
	await prepare(offence, tools);
	const { passed, details } = await run(offence, 'lint');
	if (passed || !details.includes('Offence.node.ts')) {
		throw new Error('n8n-node lint finds nothing in a package that n8n refuses.');
	}
	await mkdir(sources);
	for (const name of SOURCES) await cp(join(ROOT, name), join(sources, name), { recursive: true });
	await prepare(sources, tools);
	const lint = await run(sources, 'lint');
	const build = await run(sources, 'build');
	if (!build.passed) return { lint, build };
	const differences = await compare(join(sources, 'dist'), dist);
	return {
		lint,
		build: { passed: differences.length === 0, details: differences.join('\n') },
	};
}

/** The files that two builds do not have in common, byte for byte. */
async function compare(theirs: string, ours: string): Promise<string[]> {
	const list = async (folder: string) =>
		(await readdir(folder, { recursive: true, withFileTypes: true }))
			.filter((entry) => entry.isFile())
			.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
			.filter((file) => !CODEX.test(file) && !SCHEMA.test(file));
	const files = new Set([...(await list(theirs)), ...(await list(ours))]);
	const read = async (folder: string, file: string) =>
		await readFile(join(folder, file), 'base64').catch(() => undefined);
	const differing: string[] = [];
	for (const file of files) {
		if ((await read(theirs, file)) !== (await read(ours, file))) differing.push(file);
	}
	return differing.sort().map((file) => `${file} differs from what n8n-node build makes`);
}
