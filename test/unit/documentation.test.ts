import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { INodeProperties } from 'n8n-workflow';

import { MediaGenerationApi } from '../../credentials/MediaGenerationApi.credentials';
import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { MediaGenerationCredits } from '../../nodes/MediaGeneration/MediaGenerationCredits.node';
import { MediaGenerationTrigger } from '../../nodes/MediaGeneration/MediaGenerationTrigger.node';
import { anchorsOf, brokenLinks } from '../release/links';

const ROOT = resolve(__dirname, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const filesIn = (folder: string, ending: string) =>
	readdirSync(join(ROOT, folder), { recursive: true })
		.map((name) => join(folder, String(name)).replaceAll('\\', '/'))
		.filter((path) => path.endsWith(ending));

const pages = [
	...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
	...filesIn('docs', '.md'),
	...filesIn('test', 'README.md'),
];

describe.each(pages)('%s', (page) => {
	it('leads nowhere that is not there', () => {
		expect(brokenLinks(ROOT, page, (file) => existsSync(join(ROOT, file)))).toEqual([]);
	});

	it('names only commands that there are', () => {
		const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
		const commands = [...read(page).matchAll(/\bnpm run ([a-z0-9:]+)/g)].map(
			([, name = '']) => name,
		);
		expect(commands.filter((name) => !(name in scripts))).toEqual([]);
	});
});

test('every picture is shown on a page', () => {
	// As a page names it: from the root, from `docs/`, or from the folder where both are.
	const shown = new Set(
		pages.flatMap((page) =>
			[...read(page).matchAll(/[\w./-]+\.(?:png|svg)/g)].map(([path]) =>
				join(dirname(page), path).replaceAll('\\', '/'),
			),
		),
	);
	const pictures = filesIn('docs', '.png').concat(filesIn('docs', '.svg'));
	expect(pictures.length).toBeGreaterThan(10);
	expect(pictures.filter((path) => !shown.has(path))).toEqual([]);
});

describe('the README', () => {
	it('has the section that the credential links to', () => {
		const { hash } = new URL(new MediaGenerationApi().documentationUrl);
		expect(anchorsOf(read('README.md'))).toContain(hash.slice(1));
	});
});

describe('the reference', () => {
	/** The labels of all parameters, and of all options within them. */
	const labelsOf = (properties: INodeProperties[]): string[] =>
		properties
			.filter(({ type }) => type !== 'notice')
			.flatMap(({ displayName, type, options = [] }) =>
				type === 'collection' ? labelsOf(options as INodeProperties[]) : [displayName],
			);

	it.each([MediaGeneration, MediaGenerationTrigger, MediaGenerationCredits])(
		'names every parameter and option of %p',
		(Node) => {
			const text = read('docs/reference.md');
			const labels = new Set(labelsOf(new Node().description.properties));
			// The choice of the resource is the table that a parameter stands in.
			labels.delete('Resource');
			labels.delete('Operation');
			expect([...labels].filter((label) => !text.includes(`**${label}**`))).toEqual([]);
		},
	);
});

describe.each(['docs/messages.md', 'docs/installation.md'])('the messages in %s', (page) => {
	const sources = [...filesIn('nodes', '.ts'), ...filesIn('credentials', '.ts')]
		.map(read)
		.join('\n');
	const messages = [...read(page).matchAll(/^\| `([^`]+)`/gm)].map(([, message = '']) => message);

	it('are ones that the nodes say', () => {
		expect(messages.length).toBeGreaterThan(4);
		const invented = messages.filter((message) =>
			// What differs from case to case stands in the documentation as an example or as "…".
			message
				.split(/…|\d[\d.]*/)
				.map((part) => part.replace(/^\P{L}+|\P{L}+$/gu, ''))
				.some((part) => part.length > 8 && !sources.includes(part)),
		);
		expect(invented).toEqual([]);
	});
});
