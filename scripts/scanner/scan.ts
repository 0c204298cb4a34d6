/**
 * n8n's scanner of community packages on this one, as n8n runs it before it verifies a package: on
 * the sources, and on the JavaScript and the `package.json` of the tarball. Inline exceptions do not count there.
 * Then `n8n-node lint` and `n8n-node build`, as if the package had been made with n8n's tool.
 * What n8n's scanner looks up on the internet, the provenance of a published version, is left out.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

import { n8n } from '../../package.json';
import { runCommand } from '../../test/commandLine';
import { installOnce } from '../../test/n8n/installOnce';
import { packPackage } from '../../test/n8n/package';

const ROOT = resolve(__dirname, '../..');
const SCANNER = 'node_modules/@n8n/scan-community-package/scanner/scanner.mjs';
const CLI = 'node_modules/@n8n/node-cli';

/** What the scanner itself looks at in a tarball. */
const TARBALL_PATTERNS = ['**/*.js', 'package.json'];

/** What a package that was made with n8n's tool has, too. */
const SOURCES = [
	'nodes',
	'credentials',
	'package.json',
	'tsconfig.json',
	'README.md',
	'LICENSE.md',
];

/** A package that n8n refuses. */
const OFFENCE = {
	'package.json':
		'{ "name": "n8n-nodes-offence", "version": "0.1.0", "n8n": { "nodes": ["dist/Offence.node.js"] } }',
	'Offence.node.js': '/* eslint-disable */ require("fs").readFileSync(process.env.HOME);',
	'nodes/Offence.node.ts': 'export const home = process.env.HOME;',
};

interface Verdict {
	passed: boolean;
	/** The findings, by file and line. */
	details?: string;
}

interface Scanner {
	SOURCE_FILE_PATTERNS: string[];
	analyzePackage(folder: string, patterns: string[]): Promise<Verdict>;
}

/** Runs n8n's tool in a folder, as if the tool had made the package there, its strict configuration included. */
async function nodeCli(tools: string, folder: string, command: string): Promise<Verdict> {
	const config = 'dist/template/templates/shared/default/eslint.config.mjs';
	await cp(join(tools, CLI, config), join(folder, 'eslint.config.mjs'));
	await symlink(join(tools, 'node_modules'), join(folder, 'node_modules'), 'junction').catch(
		() => undefined, // It is there.
	);
	const { status, stdout, stderr } = spawnSync(
		process.execPath,
		[join(folder, CLI, 'bin/n8n-node.mjs'), command],
		{ cwd: folder, env: { ...process.env, CI: 'true' }, encoding: 'utf8' },
	);
	return { passed: status === 0, details: stdout + stderr };
}

/** @throws where a tool lets pass what n8n refuses: whose rules have not been loaded finds nothing anywhere */
async function assertThatOffencesAreFound(scanner: Scanner, tools: string, folder: string) {
	await mkdir(join(folder, 'nodes'), { recursive: true });
	for (const [file, text] of Object.entries(OFFENCE)) await writeFile(join(folder, file), text);
	const scan = await scanner.analyzePackage(folder, TARBALL_PATTERNS);
	const lint = await nodeCli(tools, folder, 'lint');
	const areFound =
		scan.details?.includes('package.json') &&
		scan.details.includes('Offence.node.js') &&
		lint.details?.includes('Offence.node.ts');
	if (!areFound || lint.passed) throw new Error('Nothing is found in a package that n8n refuses.');
}

/** `n8n-node build` on the sources: it leaves what n8n loads. */
async function build(tools: string, folder: string): Promise<Verdict> {
	const built = await nodeCli(tools, folder, 'build');
	if (!built.passed) return built;
	const missing = [...n8n.nodes, ...n8n.credentials].filter(
		(file) => !existsSync(join(folder, file)),
	);
	return { passed: missing.length === 0, details: `There is no ${missing.join(', ')}` };
}

async function main(): Promise<boolean> {
	const tools = await installOnce({
		name: 'scanner',
		title: "n8n's scanner and n8n-node",
		manifestFolder: __dirname,
		duration: 'about a minute',
	});
	const scanner = (await import(pathToFileURL(join(tools, SCANNER)).href)) as Scanner;
	const { tarball } = await packPackage();
	const folder = await mkdtemp(join(tmpdir(), 'media-generation-scan-'));
	try {
		await assertThatOffencesAreFound(scanner, tools, join(folder, 'offence'));
		execFileSync('tar', ['-xzf', tarball, '-C', folder]);
		const sources = join(folder, 'sources');
		for (const name of SOURCES)
			await cp(join(ROOT, name), join(sources, name), { recursive: true });
		const verdicts: Record<string, Verdict> = {
			sources: await scanner.analyzePackage(ROOT, scanner.SOURCE_FILE_PATTERNS),
			tarball: await scanner.analyzePackage(join(folder, 'package'), TARBALL_PATTERNS),
			'n8n-node lint': await nodeCli(tools, sources, 'lint'),
			'n8n-node build': await build(tools, sources),
		};
		for (const [part, { passed, details = '' }] of Object.entries(verdicts)) {
			console.log(`${part}: ${passed ? 'passed' : `did not pass\n${details}`}`);
		}
		return Object.values(verdicts).every(({ passed }) => passed);
	} finally {
		await rm(folder, { recursive: true, force: true });
	}
}

runCommand(main);
