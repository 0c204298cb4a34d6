/**
 * `npm run release`: names what keeps the package from being published, and ends with 1 where something does. The rest of
 * a release is npm's: `.github/workflows/publish.yml`.
 *
 * `npm run release -- --write` first writes the address of the repository, which the owner sets in `package.json`, into
 * all the other places that have it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { runCommand } from '../test/commandLine';

/** What a user of any community node is told: what n8n's panels show as links, until there is a repository. */
const PAGES_OF_N8N = 'https://docs.n8n.io/integrations/community-nodes/installation/gui-install/';

/** How many addresses that follow from the repository's are in each file. */
const ADDRESSES: Record<string, number> = {
	'package.json': 2,
	'credentials/MediaGenerationApi.credentials.ts': 1,
	'nodes/MediaGeneration/MediaGeneration.node.json': 2,
	'nodes/MediaGeneration/MediaGenerationTrigger.node.json': 2,
	'nodes/MediaGeneration/MediaGenerationCredits.node.json': 2,
};

/** Such an address, and what follows the repository's own address in it. */
const ADDRESS = /https:[^\s"']+?(#credentials|#readme|\/issues)(?=["'])/g;

/** What stands for something that the owner has not decided yet: no host can end in `.invalid` (RFC 2606). */
const PLACEHOLDERS: Array<[file: string, placeholder: RegExp]> = [
	['package.json', /"[^"]*\.invalid\b[^"]*"|"The authors of [^"]*"/g],
	['CODE_OF_CONDUCT.md', /\S+\.invalid\b/g],
	['README.md', /not on npm yet/g],
	['docs/installation.md', /not on npm yet/g],
];

const read = (root: string, file: string) => readFileSync(join(root, file), 'utf8');

/** @returns the repository's address for a browser, e.g. `https://github.com/owner/name` */
function repositoryUrl(root: string): string {
	const { repository } = JSON.parse(read(root, 'package.json')) as { repository: { url: string } };
	return repository.url.replace(/^git\+|\.git$/g, '');
}

/** @returns the placeholders that are left, each with its file */
export const placeholders = (root: string): string[] =>
	PLACEHOLDERS.flatMap(([file, placeholder]) =>
		(read(root, file).match(placeholder) ?? []).map((found) => `${file}: ${found}`),
	);

/**
 * @returns the files in which an address does not follow from the repository's, each with its right text
 * @throws where a file has fewer or more addresses
 */
export function wrongAddresses(root: string): Array<[file: string, text: string]> {
	const url = repositoryUrl(root);
	return Object.entries(ADDRESSES).flatMap(([file, count]) => {
		const text = read(root, file);
		const found = text.match(ADDRESS)?.length ?? 0;
		if (found !== count) throw new Error(`${file} has ${found} addresses in place of ${count}`);
		const isInPanel = file !== 'package.json';
		const home = isInPanel && url.includes('.invalid/') ? PAGES_OF_N8N : url;
		const right = text.replace(ADDRESS, (_address, end: string) => home + end);
		return right === text ? [] : [[file, right] as [string, string]];
	});
}

/** Writes the address of the repository into all places. */
export function writeAddresses(root: string): void {
	for (const [file, text] of wrongAddresses(root)) writeFileSync(join(root, file), text);
}

function main(): boolean {
	const root = resolve(__dirname, '..');
	if (process.argv.includes('--write')) writeAddresses(root);
	const findings = [
		...placeholders(root),
		...wrongAddresses(root).map(([file]) => `${file} has another address: -- --write`),
	];
	for (const finding of findings) console.log(finding);
	const { measured } = JSON.parse(read(root, 'scripts/bench/results.json')) as {
		measured: Record<string, { at: string }>;
	};
	for (const [part, { at }] of Object.entries(measured)) {
		console.log(`Benchmarks: ${part} was measured on ${at.slice(0, 10)}`);
	}
	return findings.length === 0;
}

if (require.main === module) runCommand(async () => await Promise.resolve(main()));
