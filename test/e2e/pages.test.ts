import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { INodeTypeDescription } from 'n8n-workflow';
import { parse } from 'yaml';

import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { installN8n } from '../n8n/install';
import { DEFAULT_VERSION } from '../n8n/version';

/** What the pages and the examples say of n8n, by the files of an n8n that is installed. */

const ROOT = resolve(__dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

const docs = readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`);
const pages = ['README.md', ...docs.filter((name) => name.endsWith('.md'))];

/** What is bold because it matters, and no label; whole sentences need not be named. */
const EMPHASIS = [
	/[.:?!]$/,
	/\s\S+\s\S+\s\S+\s/,
	/^(planned|created|waited for|put out|certainly|only|persistence|and|Publishing|n8n 1|\d[\d.]+)$/,
	/^\[/,
	/^without _/,
	/^(not all alike|Do not retry those)$/,
];

/** Where n8n has the labels of some fields of every credential. */
const RESTRICTIONS = /credential-domain-restrictions\.js$/;

/** A button without a text. */
const ELSEWHERE = ['⋯'];

const examples = readdirSync(join(ROOT, 'examples'))
	.filter((name) => name.endsWith('.json'))
	.map((name) => (JSON.parse(read(`examples/${name}`)) as { name: string }).name);

/** The labels that a page names: `**Settings → On Error**` is two of them. */
function labelsOf(page: string): string[] {
	const text = read(page).replace(/^```.*?^```/gms, '');
	return [...text.matchAll(/\*\*([^*\n]+)\*\*/g)]
		.map(([, bold = '']) => bold)
		.filter((bold) => !EMPHASIS.some((pattern) => pattern.test(bold)) || bold.includes(' → '))
		.flatMap((bold) => bold.split(/ → |: /));
}

/** Every text between quotation marks in the files of a folder. */
function textsIn(folder: string, ending: RegExp, pattern: RegExp): Set<string> {
	const all = readdirSync(folder, { recursive: true, encoding: 'utf8' });
	const files = all.filter((file) => ending.test(file)).map((file) => join(folder, file));
	const found = files.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(pattern)]);
	return new Set(found.map(([, text = '']) => text));
}

/** What n8n's editor and its own nodes are labelled with. */
let theirs: Set<string>;
const ours = new Set([
	...textsIn(join(ROOT, 'nodes'), /\.ts$/, /'([^'\n]+)'/g),
	...textsIn(join(ROOT, 'credentials'), /\.ts$/, /'([^'\n]+)'/g),
]);

// What is put together of several texts.
JSON.stringify(new MediaGeneration().description, (_name, value: unknown) => {
	if (typeof value === 'string') ours.add(value);
	return value;
});

beforeAll(async () => {
	const { folder } = await installN8n(DEFAULT_VERSION);
	const modules = join(folder, 'node_modules');
	const file = join(modules, 'n8n-nodes-base/dist/types/nodes.json');
	const nodes = JSON.parse(readFileSync(file, 'utf8')) as INodeTypeDescription[];
	theirs = new Set([
		...textsIn(join(modules, 'n8n-editor-ui/dist/assets'), /^src-.*\.js$/, /":`([^`\n]+)`/g),
		...textsIn(join(modules, 'n8n-workflow/dist/cjs'), RESTRICTIONS, /displayName: '([^'\n]+)'/g),
		...nodes.map(({ displayName }) => displayName.replace(/ \(.*\)$/, '')),
		...nodes.flatMap(({ properties }) => properties.map(({ displayName }) => displayName)),
	]);
}, 900_000);

it.each(pages)('%s names labels as n8n and the nodes show them', (page) => {
	expect(theirs.size).toBeGreaterThan(3_000);
	const known = (label: string) =>
		ours.has(label) || theirs.has(label) || ELSEWHERE.includes(label) || examples.includes(label);
	expect(labelsOf(page).filter((label) => !known(label))).toEqual([]);
});

test('every variable of the Docker example is one that n8n reads', async () => {
	const { folder } = await installN8n(DEFAULT_VERSION);
	const modules = join(folder, 'node_modules');
	const known = new Set(
		[join(modules, 'n8n/dist'), join(modules, 'n8n-core/dist'), join(modules, '@n8n/config/dist')]
			.flatMap((root) =>
				readdirSync(root, { recursive: true, encoding: 'utf8' })
					// The rules for later versions name variables without reading them.
					.filter((file) => file.endsWith('.js') && !file.includes('breaking-changes'))
					.map((file) => readFileSync(join(root, file), 'utf8')),
			)
			.flatMap((text) => [...text.matchAll(/\bEnv\)\('([A-Z0-9_]+)'|process\.env\.([A-Z0-9_]+)/g)])
			.map(([, declared, read]) => declared ?? read ?? ''),
	);
	expect(known.size).toBeGreaterThan(300);
	const compose = read('examples/docker/compose.yaml');
	const { services } = parse(compose, { merge: true }) as {
		services: { n8n: { environment: Record<string, string> } };
	};
	const names = Object.keys(services.n8n.environment);
	expect(names.filter((name) => !known.has(name))).toEqual([]);
	expect(known.has('N8N_WEBHOOK_URLS')).toBe(false);
}, 900_000);
