import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Stands for a home that nobody has chosen yet. The ending is reserved (RFC 2606): no such host can ever exist, so no
 * link leads to somebody who happens to own the name.
 */
export const UNSET_HOST = 'repository.invalid';

/** What a user of any community node is told: a link to it is never dead. */
const PAGES_OF_N8N = 'https://docs.n8n.io/integrations/community-nodes/installation/gui-install/';

interface Manifest {
	author: { name: string; email: string };
	repository: { url: string };
}

/** A file, and where in it an address stands that follows from the repository. */
interface Place {
	file: string;
	/** What stands before the address, up to the quotation mark. */
	before: RegExp;
	/** What follows the repository's address. */
	suffix: string;
	/** Whether n8n shows it as a link: until there is a repository, it then leads to n8n's own pages. */
	isInPanel?: boolean;
}

const NODES = 'nodes/MediaGeneration';

/** Every address that follows from `repository.url` of `package.json`, the one place where it is chosen. */
const PLACES: Place[] = [
	{ file: 'package.json', before: /"homepage": "/, suffix: '#readme' },
	{ file: 'package.json', before: /"bugs": \{\s*"url": "/, suffix: '/issues' },
	{
		file: 'README.md',
		before: /<img src="/,
		suffix: '/raw/HEAD/docs/images/examples/image-to-video.png',
	},
	{
		file: 'credentials/MediaGenerationApi.credentials.ts',
		before: /documentationUrl =\s*'/,
		suffix: '#credential',
		isInPanel: true,
	},
	...['MediaGeneration', 'MediaGenerationTrigger', 'MediaGenerationCredits'].flatMap(
		(node): Place[] => [
			{
				file: `${NODES}/${node}.node.json`,
				before: /"credentialDocumentation": \[\s*\{\s*"url": "/,
				suffix: '#credential',
				isInPanel: true,
			},
			{
				file: `${NODES}/${node}.node.json`,
				before: /"primaryDocumentation": \[\s*\{\s*"url": "/,
				suffix: '#readme',
				isInPanel: true,
			},
		],
	),
];

function readManifest(root: string): Manifest {
	return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
}

/** @returns the repository's address for a browser, e.g. `https://github.com/owner/name` */
export function repositoryUrl(root: string): string {
	return readManifest(root)
		.repository.url.replace(/^git\+/, '')
		.replace(/\.git$/, '');
}

const isUnset = (address: string) => address.endsWith('.invalid') || address.includes('.invalid/');

/** @returns what the owner has not chosen yet, in words; empty where all is set */
export function missingIdentity(root: string): string[] {
	const { author } = readManifest(root);
	const url = repositoryUrl(root);
	return [
		...(isUnset(url) ? ['package.json: "repository.url" is not set'] : []),
		...(!isUnset(url) && !/^https:\/\/github\.com\/[\w-]+\/[\w.-]+$/.test(url)
			? [`package.json: "repository.url" is no GitHub repository: ${url}`]
			: []),
		...(isUnset(author.email) ? ['package.json: "author.email" is not set'] : []),
	];
}

/**
 * Looks for addresses that do not follow from the repository. Writes nothing.
 *
 * @param root the repository's folder
 * @returns the files that have another address, each with its right text
 * @throws where a place is no more
 */
export function outdatedAddresses(root: string): Map<string, string> {
	const url = repositoryUrl(root);
	const outdated = new Map<string, string>();
	for (const { file, before, suffix, isInPanel } of PLACES) {
		const home = isInPanel && isUnset(url) ? PAGES_OF_N8N : url;
		const text = outdated.get(file) ?? readFileSync(join(root, file), 'utf8');
		const found = new RegExp(`(${before.source})[^"']*`).exec(text);
		if (!found) throw new Error(`${file} has no place for an address after ${before.source}`);
		const filled = text.replace(found[0], () => `${found[1] ?? ''}${home}${suffix}`);
		if (filled !== text) outdated.set(file, filled);
	}
	return outdated;
}

/**
 * Writes the addresses that follow from the repository into all places.
 *
 * @param root the repository's folder
 * @returns the files that had another address
 * @throws where a place is no more
 */
export function fillIdentity(root: string): string[] {
	const outdated = outdatedAddresses(root);
	for (const [file, text] of outdated) writeFileSync(join(root, file), text);
	return [...outdated.keys()];
}
