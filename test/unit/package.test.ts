import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { ICredentialType, INodeType } from 'n8n-workflow';

import { MAX_TARBALL_KIB, packPackage } from '../n8n/package';
import { filesIn, read, ROOT } from './repository';

const manifest = JSON.parse(read('package.json')) as {
	name: string;
	version: string;
	license: string;
	keywords: string[];
	dependencies?: object;
	optionalDependencies?: object;
	bundleDependencies?: string[];
	peerDependencies: object;
	scripts: Record<string, string>;
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
	await promisify(execFile)('tar', ['-xzf', packed.tarball, '-C', folder]);
	unpacked = join(folder, 'package');
	const entries = await readdir(unpacked, { recursive: true, withFileTypes: true });
	files = entries
		.filter((entry) => entry.isFile())
		.map((entry) => join(entry.parentPath, entry.name).slice(unpacked.length + 1))
		.map((path) => path.replaceAll('\\', '/'));
}, 300_000);
afterAll(async () => {
	await rm(folder, { recursive: true, force: true });
});

describe('package.json', () => {
	it('names no dependency that n8n would have to install', () => {
		expect(Object.keys(manifest.dependencies ?? {})).toEqual([]);
		expect(Object.keys(manifest.optionalDependencies ?? {})).toEqual([]);
		expect(manifest.bundleDependencies ?? []).toEqual([]);
		expect(Object.keys(manifest.peerDependencies)).toEqual(['n8n-workflow']);
	});

	it('runs nothing where it is installed', () => {
		for (const script of ['preinstall', 'install', 'postinstall', 'prepare']) {
			expect(manifest.scripts).not.toHaveProperty(script);
		}
	});

	it('is found and shown as a community package', () => {
		expect(manifest.name).toBe('n8n-nodes-media-generation');
		expect(manifest.license).toBe('MIT');
		expect(manifest.keywords).toContain('n8n-community-node-package');
	});

	it('lists every node and every credential there is', () => {
		const sources = [...filesIn('credentials'), ...filesIn('nodes')].filter((path) =>
			/\.(node|credentials)\.ts$/.test(path),
		);
		const built = sources.map((path) => `dist/${path.replace(/ts$/, 'js')}`);
		expect([...listed].sort()).toEqual(built.sort());
	});
});

describe('the tarball', () => {
	it('has the build, the texts and nothing else', () => {
		const texts = ['CHANGELOG.md', 'LICENSE.md', 'README.md', 'package.json'];
		const others = files.filter(
			(path) => !/^dist\/.+(\.(js|svg|node\.json)|\/__schema__\/v1\.0\.0.*\.json)$/.test(path),
		);
		expect(others.filter((path) => !texts.includes(path))).toEqual([]);
		expect(others).toEqual(expect.arrayContaining(['LICENSE.md', 'README.md', 'package.json']));
	});

	it('has no tests', () => {
		expect(files.filter((path) => /test|jest|mock|examples/i.test(path))).toEqual([]);
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
		['code made of text', /\beval\s*\(|\bnew Function\b|\bFunction\s*\(|\bvm\b.*require/],
		['another process', /child_process|\bexecSync\b|\bspawn\s*\(/],
		['the environment', /process\.env/],
		['text that hides what it is', /\\x[0-9a-f]{2}\\x[0-9a-f]{2}|[A-Za-z0-9+/]{200,}/i],
	])('has nothing that looks like malware: %s', (_what, pattern) => {
		const found = files
			.filter((path) => !path.endsWith('.svg'))
			.filter((path) => pattern.test(unpackedText(path)));
		expect(found).toEqual([]);
	});

	it('imports nothing that n8n does not have', () => {
		const imports = files
			.filter((path) => path.endsWith('.js'))
			.flatMap((path) => [...unpackedText(path).matchAll(/\brequire\(['"]([^'"]+)['"]\)/g)])
			.map(([, name = '']) => name)
			.filter((name) => !name.startsWith('.'));
		expect([...new Set(imports)].sort()).toEqual(['crypto', 'n8n-workflow']);
	});
});

describe('the fields before the first run', () => {
	it('are where n8n looks for them: version, resource and operation, beside the nodes', () => {
		const sources = filesIn('nodes', '.json')
			.filter((path) => path.includes('/__schema__/'))
			.map((path) => `dist/${path}`);
		expect(sources.length).toBeGreaterThan(0);
		expect(files.filter((path) => path.includes('/__schema__/')).sort()).toEqual(sources.sort());
	});
});

describe.each(listed)('%s', (path) => {
	const className = basename(path).split('.', 1)[0] ?? '';
	const type = () => {
		// eslint-disable-next-line @typescript-eslint/no-require-imports
		const module = require(join(unpacked, path)) as Record<string, new () => unknown>;
		return new module[className]!() as ICredentialType | INodeType;
	};
	const iconOf = (described: ICredentialType | INodeType) =>
		'description' in described ? described.description.icon : described.icon;

	it('can be loaded, with both icons in the tarball', () => {
		const icon = iconOf(type());
		expect(icon).toEqual({ light: expect.any(String), dark: expect.any(String) });
		for (const file of Object.values(icon as object) as string[]) {
			const icons = join(unpacked, dirname(path), file.replace(/^file:/, ''));
			expect(readFileSync(icons, 'utf8')).toContain('<svg');
		}
	});
});

describe.each(manifest.n8n.nodes)('%s', (path) => {
	it('has its codex file, which names it, in a category that n8n has, and by no name of another product', () => {
		const { node, categories, alias } = JSON.parse(unpackedText(path.replace(/js$/, 'json'))) as {
			node: string;
			categories: string[];
			alias: string[];
		};
		const type = basename(path, '.node.js').replace(/^./, (first) => first.toLowerCase());
		expect(node).toBe(`${manifest.name}.${type}`);
		expect(categories).toEqual(['Marketing & Content']);
		const foreign = /journey|diffusion|dall|sora|gpt|runway|flux|veo/i;
		expect(alias.filter((name) => foreign.test(name))).toEqual([]);
	});
});
