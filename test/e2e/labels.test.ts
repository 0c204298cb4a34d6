import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { installN8n, type N8nInstall } from '../n8n/install';
import { DEFAULT_VERSION } from '../n8n/version';

const ROOT = resolve(__dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

const pages = [
	'README.md',
	...readdirSync(join(ROOT, 'docs'))
		.filter((name) => name.endsWith('.md'))
		.map((name) => `docs/${name}`),
];

/** What is bold because it matters, and no label; whole sentences need not be named. */
const EMPHASIS = [
	/[.:?!]$/,
	/\s\S+\s\S+\s\S+\s/,
	/^(planned|created|waited for|put out|certainly|only|persistence|and|Publishing|n8n 1|\d[\d.]+)$/,
	/^\[/,
	/^without _/,
	/^(not all alike|Do not retry those)$/,
];

/** Labels of GitHub and of npm's site. */
const ELSEWHERE = ['Trusted Publisher', 'Required reviewers', '⋯'];

/** Names of examples. */
const examples = readdirSync(join(ROOT, 'examples'))
	.filter((name) => name.endsWith('.json'))
	.map((name) => (JSON.parse(read(`examples/${name}`)) as { name: string }).name);

/** The labels that a page names: `**Settings → On Error**` is two of them. */
const labelsOf = (page: string) =>
	[
		...read(page)
			.replace(/^```.*?^```/gms, '')
			.matchAll(/\*\*([^*\n]+)\*\*/g),
	]
		.map(([, text = '']) => text)
		.filter((text) => !EMPHASIS.some((pattern) => pattern.test(text)) || text.includes(' → '))
		.flatMap((text) => text.split(/ → |: /));

/** Every text between quotation marks in the files of a folder. */
function textsIn(folder: string, ending: RegExp, pattern: RegExp): Set<string> {
	const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
	return new Set(
		files
			.filter((file) => ending.test(file))
			.flatMap((file) => [...readFileSync(join(folder, file), 'utf8').matchAll(pattern)])
			.map(([, text = '']) => text),
	);
}

let install: N8nInstall;
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
	install = await installN8n({ version: DEFAULT_VERSION });
	const modules = join(install.folder, 'node_modules');
	const nodes = JSON.parse(
		readFileSync(join(modules, 'n8n-nodes-base/dist/types/nodes.json'), 'utf8'),
	) as Array<{ displayName: string; properties: Array<{ displayName: string }> }>;
	theirs = new Set([
		...textsIn(join(modules, 'n8n-editor-ui/dist/assets'), /^src-.*\.js$/, /":`([^`\n]+)`/g),
		...textsIn(
			join(modules, 'n8n-workflow/dist/cjs'),
			/credential-domain-restrictions\.js$/,
			/displayName: '([^'\n]+)'/g,
		),
		...nodes.map(({ displayName }) => displayName.replace(/ \(.*\)$/, '')),
		...nodes.flatMap(({ properties }) => properties.map(({ displayName }) => displayName)),
	]);
}, 900_000);

it('n8n has thousands of labels', () => {
	expect(theirs.size).toBeGreaterThan(3_000);
});

describe.each(pages)('%s', (page) => {
	it('names labels as n8n and the nodes show them', () => {
		const known = (label: string) =>
			ours.has(label) || theirs.has(label) || ELSEWHERE.includes(label) || examples.includes(label);
		expect(labelsOf(page).filter((label) => !known(label))).toEqual([]);
	});
});
