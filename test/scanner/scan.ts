/**
 * `npm run scan`: n8n's scanner of community packages on this one, as n8n runs it before it verifies a package: on
 * the sources, and on the JavaScript and the `package.json` of the tarball. Inline exceptions do not count there.
 * Then `n8n-node lint` and `n8n-node build`, as if the package had been made with n8n's tool.
 * What n8n's scanner looks up on the internet, the provenance of a published version, is left out.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import { runCommand } from '../commandLine';
import { installOnce } from '../n8n/installOnce';
import { packPackage } from '../n8n/package';
import { tryNodeCli } from './nodeCli';

const ROOT = resolve(__dirname, '../..');
const SCANNER = 'node_modules/@n8n/scan-community-package/scanner/scanner.mjs';
const NEEDED_BYTES = 8e8;

/** What the scanner itself looks at in a tarball. */
const TARBALL_PATTERNS = ['**/*.js', 'package.json'];

interface Verdict {
	passed: boolean;
	/** Why it did not pass. */
	message?: string;
	/** The findings, by file and line. */
	details?: string;
}

interface Scanner {
	SOURCE_FILE_PATTERNS: string[];
	analyzePackage(folder: string, patterns: string[]): Promise<Verdict>;
}

async function installTools(): Promise<string> {
	return await installOnce({
		name: 'scanner',
		title: "n8n's scanner and n8n-node",
		manifestFolder: __dirname,
		neededBytes: NEEDED_BYTES,
		duration: 'about a minute',
	});
}

async function loadScanner(folder: string): Promise<Scanner> {
	return (await import(pathToFileURL(join(folder, SCANNER)).href)) as Scanner;
}

/**
 * A scanner whose rules have not been loaded finds nothing anywhere.
 *
 * @throws where it lets pass what n8n refuses
 */
async function assertThatItFindsOffences(scanner: Scanner, folder: string): Promise<void> {
	await mkdir(folder);
	await writeFile(join(folder, 'package.json'), '{ "name": "n8n-nodes-offence" }');
	await writeFile(
		join(folder, 'Offence.node.js'),
		'/* eslint-disable */ require("fs").readFileSync(process.env.HOME);',
	);
	const { details = '' } = await scanner.analyzePackage(folder, TARBALL_PATTERNS);
	for (const expected of ['package.json', 'Offence.node.js']) {
		if (!details.includes(expected)) {
			throw new Error(`The scanner finds nothing in ${expected} of a package that n8n refuses.`);
		}
	}
}

async function main(): Promise<boolean> {
	const tools = await installTools();
	const scanner = await loadScanner(tools);
	const { tarball } = await packPackage();
	const folder = await mkdtemp(join(tmpdir(), 'media-generation-scan-'));
	try {
		await assertThatItFindsOffences(scanner, join(folder, 'offence'));
		await promisify(execFile)('tar', ['-xzf', tarball, '-C', folder]);
		const verdicts: Record<string, Verdict> = {
			sources: await scanner.analyzePackage(ROOT, scanner.SOURCE_FILE_PATTERNS),
			tarball: await scanner.analyzePackage(join(folder, 'package'), TARBALL_PATTERNS),
		};
		const cli = await tryNodeCli(tools, folder);
		for (const [command, verdict] of Object.entries(cli)) {
			verdicts[`n8n-node ${command}`] = { ...verdict, message: 'did not pass' };
		}
		for (const [part, { passed, message, details }] of Object.entries(verdicts)) {
			console.log(`${part}: ${passed ? 'passed' : message}`);
			if (details && !passed) console.log(details);
		}
		return Object.values(verdicts).every(({ passed }) => passed);
	} finally {
		await rm(folder, { recursive: true, force: true });
	}
}

runCommand(main);
