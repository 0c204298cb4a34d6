import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { ICredentialType, INodeType } from 'n8n-workflow';

import { runNpm } from '../n8n/npm';
import { MAX_TARBALL_KIB } from '../n8n/package';

const ROOT = resolve(__dirname, '../..');

/** Never copied: what is installed or built, and the lock file, which would have npm install anew. */
const LEFT_OUT = new Set([
	'.git',
	'node_modules',
	'dist',
	'coverage',
	'artefacts',
	'package-lock.json',
]);

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
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

/** A copy of the repository, so that the build of another process is left alone. */
let folder: string;
/** The unpacked tarball. */
let unpacked: string;
let sizeBytes: number;
/** The paths in the tarball. */
let files: string[];

beforeAll(async () => {
	folder = await mkdtemp(join(tmpdir(), 'media-generation-pack-'));
	await cp(ROOT, join(folder, 'repository'), {
		recursive: true,
		filter: (path) => path === ROOT || !LEFT_OUT.has(basename(path)),
	});
	const repository = join(folder, 'repository');
	await symlink(join(ROOT, 'node_modules'), join(repository, 'node_modules'), 'junction');
	await runNpm(['run', 'build'], repository);
	await runNpm(['pack', '--ignore-scripts', '--pack-destination', folder], repository);

	const tarball = join(folder, `${manifest.name}-${manifest.version}.tgz`);
	sizeBytes = statSync(tarball).size;
	// Below the copy, where n8n-workflow is found.
	const parent = join(repository, 'unpacked');
	await mkdir(parent);
	await promisify(execFile)('tar', ['-xzf', tarball, '-C', parent]);
	unpacked = join(parent, 'package');
	const entries = await readdir(unpacked, { recursive: true, withFileTypes: true });
	files = entries
		.filter((entry) => entry.isFile())
		.map((entry) => join(entry.parentPath, entry.name).slice(unpacked.length + 1))
		.map((path) => path.replaceAll('\\', '/'));
}, 120_000);
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

	it('lists every node and every credential there is', async () => {
		const sources = [
			...(await readdir(join(ROOT, 'credentials'))).map((name) => `credentials/${name}`),
			...(await readdir(join(ROOT, 'nodes'), { recursive: true })).map((name) => `nodes/${name}`),
		]
			.map((path) => path.replaceAll('\\', '/'))
			.filter((path) => /\.(node|credentials)\.ts$/.test(path));
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

	it('imports nothing that n8n does not have', () => {
		const imports = files
			.filter((path) => path.endsWith('.js'))
			.flatMap((path) => [
				...readFileSync(join(unpacked, path), 'utf8').matchAll(/\brequire\("([^"]+)"\)/g),
			])
			.map(([, name = '']) => name)
			.filter((name) => !name.startsWith('.'));
		expect([...new Set(imports)].sort()).toEqual(['crypto', 'n8n-workflow']);
	});
});

describe('the fields before the first run', () => {
	it('are where n8n looks for them: version, resource and operation, beside the nodes', () => {
		const sources = readdirSync(join(ROOT, 'nodes'), { recursive: true, encoding: 'utf8' })
			.map((path) => `dist/nodes/${path.replaceAll('\\', '/')}`)
			.filter((path) => path.includes('/__schema__/') && path.endsWith('.json'));
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

	it('has its source', () => {
		expect(existsSync(join(ROOT, path.replace(/^dist\//, '').replace(/js$/, 'ts')))).toBe(true);
	});

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
	it('has its codex file, which names it', () => {
		const codex = JSON.parse(
			readFileSync(join(unpacked, path.replace(/js$/, 'json')), 'utf8'),
		) as Record<string, unknown>;
		const className = basename(path, '.node.js');
		const type = className.charAt(0).toLowerCase() + className.slice(1);
		expect(codex.node).toBe(`${manifest.name}.${type}`);
	});

	it('is in a category that n8n has, and is not found by the name of another product', () => {
		const { categories, alias } = JSON.parse(
			readFileSync(join(unpacked, path.replace(/js$/, 'json')), 'utf8'),
		) as { categories: string[]; alias: string[] };
		expect(categories).toEqual(['Marketing & Content']);
		expect(
			alias.filter((name) => /journey|diffusion|dall|sora|gpt|runway|flux|veo/i.test(name)),
		).toEqual([]);
	});
});
