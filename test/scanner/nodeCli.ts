import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { n8n } from '../../package.json';

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
 * @throws where the tool lets pass what n8n refuses
 */
export async function tryNodeCli(
	tools: string,
	folder: string,
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
	return { lint, build: build.passed ? filesLeft(sources) : build };
}

/** Whether the build left what n8n loads. */
function filesLeft(sources: string): CliVerdict {
	const missing = [...n8n.nodes, ...n8n.credentials].filter(
		(file) => !existsSync(join(sources, file)),
	);
	return {
		passed: missing.length === 0,
		details: missing.map((file) => `n8n-node build makes no ${file}`).join('\n'),
	};
}
