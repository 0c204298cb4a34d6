/**
 * The owner sets `repository.url` and `author` in `package.json`; the addresses in the credential, the codex files and
 * the rest of `package.json` follow from them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Stands for a home that nobody has chosen yet. The ending is reserved (RFC 2606): no such host can ever exist, so no
 * link leads to somebody who happens to own the name.
 */
export const UNSET_HOST = 'repository.invalid';

/** What a user of any community node is told: a link to it is never dead. */
const PAGES_OF_N8N = 'https://docs.n8n.io/integrations/community-nodes/installation/gui-install/';

/** How many addresses that follow from `repository.url` of `package.json`, where it is chosen, are in each file. */
const ADDRESSES: Record<string, number> = {
	'package.json': 2,
	'credentials/MediaGenerationApi.credentials.ts': 1,
	'nodes/MediaGeneration/MediaGeneration.node.json': 2,
	'nodes/MediaGeneration/MediaGenerationTrigger.node.json': 2,
	'nodes/MediaGeneration/MediaGenerationCredits.node.json': 2,
};

/** Such an address, and what follows the repository's own address in it. */
const ADDRESS = /https:[^\s"']+?(#credential|#readme|\/issues)(?=["'])/g;

/** What n8n shows as links: until there is a repository, they lead to n8n's own pages. */
const isInPanel = (file: string) => /^(credentials|nodes)\//.test(file);

const readManifest = (root: string) =>
	JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
		author: { name: string; email: string };
		repository: { url: string };
	};

/** @returns the repository's address for a browser, e.g. `https://github.com/owner/name` */
export const repositoryUrl = (root: string): string =>
	readManifest(root).repository.url.replace(/^git\+|\.git$/g, '');

const isUnset = (address: string) => address.endsWith('.invalid') || address.includes('.invalid/');

/** Each text whose condition holds. */
export const said = (...texts: Array<[holds: boolean, text: string]>) =>
	texts.flatMap(([holds, text]) => (holds ? [text] : []));

/** @returns what the owner has not chosen yet, in words; empty where all is set */
export function missingIdentity(root: string): string[] {
	const url = repositoryUrl(root);
	const { author } = readManifest(root);
	const conduct = readFileSync(join(root, 'CODE_OF_CONDUCT.md'), 'utf8');
	const isOnGitHub = /^https:\/\/github\.com\/[\w-]+\/[\w.-]+$/.test(url);
	return said(
		[isUnset(url), 'package.json: "repository.url" is not set'],
		[
			!isUnset(url) && !isOnGitHub,
			`package.json: "repository.url" is no GitHub repository: ${url}`,
		],
		[/^The authors of /.test(author.name), 'package.json: "author.name" names nobody'],
		[isUnset(author.email), 'package.json: "author.email" is not set'],
		[conduct.includes('@repository.invalid'), 'CODE_OF_CONDUCT.md: the address is not set'],
	);
}

/**
 * Looks for addresses that do not follow from the repository. Writes nothing.
 *
 * @returns the files that have another address, each with its right text
 * @throws where a file has fewer or more of them
 */
export function outdatedAddresses(root: string): Map<string, string> {
	const url = repositoryUrl(root);
	const outdated = new Map<string, string>();
	for (const [file, count] of Object.entries(ADDRESSES)) {
		const home = isInPanel(file) && isUnset(url) ? PAGES_OF_N8N : url;
		const text = readFileSync(join(root, file), 'utf8');
		const found = text.match(ADDRESS)?.length ?? 0;
		if (found !== count) throw new Error(`${file} has ${found} addresses in place of ${count}`);
		const filled = text.replace(ADDRESS, (_address, suffix: string) => home + suffix);
		if (filled !== text) outdated.set(file, filled);
	}
	return outdated;
}

/** Writes the addresses that follow from the repository into all places. @returns the files that had another address */
export function fillIdentity(root: string): string[] {
	const outdated = outdatedAddresses(root);
	for (const [file, text] of outdated) writeFileSync(join(root, file), text);
	return [...outdated.keys()];
}
