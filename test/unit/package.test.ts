import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

import { MAX_TARBALL_KIB, packPackage } from '../n8n/package';
import { filesIn, read, ROOT } from './repository';

const manifest = JSON.parse(read('package.json')) as {
	name: string;
	n8n: { credentials: string[]; nodes: string[] };
};
const listed = [...manifest.n8n.credentials, ...manifest.n8n.nodes];

let folder: string;
/** The unpacked tarball. */
let unpacked: string;
const unpackedText = (path: string) => readFileSync(join(unpacked, path), 'utf8');
let sizeBytes: number;
/** The paths in the tarball. */
let files: string[];

beforeAll(async () => {
	folder = await mkdtemp(join(tmpdir(), 'media-generation-pack-'));
	const packed = await packPackage();
	sizeBytes = packed.sizeBytes;
	// Beside n8n-workflow, which its files ask for.
	await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
	const tar = async (...options: string[]) => await promisify(execFile)('tar', options);
	await tar('-xzf', packed.tarball, '-C', folder);
	unpacked = join(folder, 'package');
	const { stdout } = await tar('-tzf', packed.tarball);
	files = stdout.match(/(?<=^package\/).+$/gm) ?? [];
}, 300_000);
afterAll(async () => {
	await rm(folder, { recursive: true, force: true });
});

test('package.json lists every node and every credential there is', () => {
	const sources = [...filesIn('credentials'), ...filesIn('nodes')].filter((path) =>
		/\.(node|credentials)\.ts$/.test(path),
	);
	const built = sources.map((path) => `dist/${path.replace(/ts$/, 'js')}`);
	expect([...listed].sort()).toEqual(built.sort());
});

describe('the tarball', () => {
	it('has one file for each source, the texts and nothing else', () => {
		const built = [...filesIn('credentials'), ...filesIn('nodes')]
			.filter((path) => /\.(ts|svg|json)$/.test(path))
			.map((path) => `dist/${path.replace(/\.ts$/, '.js')}`);
		const texts = ['LICENSE.md', 'README.md', 'package.json'];
		expect([...files].sort()).toEqual([...built, ...texts].sort());
	});

	it('is no larger than it may be', () => {
		expect(sizeBytes).toBeLessThanOrEqual(MAX_TARBALL_KIB * 1024);
	});

	it.each([
		['an address that is a number', /(?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?![\w.-])/],
		[
			'the host of a tunnel or of a bin for requests',
			/ngrok|trycloudflare|localtunnel|loca\.lt|serveo|webhook\.site|requestbin|pipedream|burpcollab|oast\.|pastebin|discord(app)?\.com/i,
		],
		['text that hides what it is', /\\x[0-9a-f]{2}\\x[0-9a-f]{2}|[A-Za-z0-9+/]{200,}/i],
	])('has nothing that looks like malware: %s', (_what, pattern) => {
		const found = files
			.filter((path) => !path.endsWith('.svg'))
			.filter((path) => pattern.test(unpackedText(path)));
		expect(found).toEqual([]);
	});
});

test.each(listed)('%s can be loaded', (path) => {
	// eslint-disable-next-line @typescript-eslint/no-require-imports
	const module = require(join(unpacked, path)) as Record<string, new () => unknown>;
	const Class = module[basename(path).split('.', 1)[0] ?? ''];
	expect(Class && new Class()).toBeDefined();
});

describe.each(manifest.n8n.nodes)('%s', (path) => {
	it('has its codex file, which names it, in a category that n8n has, and by no name of a product that it does not serve', () => {
		const { node, categories, alias } = JSON.parse(unpackedText(path.replace(/js$/, 'json'))) as {
			node: string;
			categories: string[];
			alias: string[];
		};
		const type = basename(path, '.node.js').replace(/^./, (first) => first.toLowerCase());
		expect(node).toBe(`${manifest.name}.${type}`);
		expect(categories).toEqual(['Marketing & Content']);
		const foreign = /journey|diffusion|dall|sora|gpt|veo/i;
		expect(alias.filter((name) => foreign.test(name))).toEqual([]);
	});
});
