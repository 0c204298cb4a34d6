import { read } from './repository';

interface LockedPackage {
	version: string;
	integrity?: string;
	resolved?: string;
	optionalDependencies?: Record<string, string>;
}

const { packages } = JSON.parse(read('package-lock.json')) as {
	packages: Record<string, LockedPackage>;
};
const { '': root, ...installed } = packages;

/** Whether a package finds another one in its own folder or one further up, as Node.js looks for it. */
function isLocked(parent: string, name: string): boolean {
	const folders = parent.split('/node_modules/');
	return folders.some((_, depth) => {
		const folder = folders.slice(0, folders.length - depth).join('/node_modules/');
		return `${folder}/node_modules/${name}` in packages || `node_modules/${name}` in packages;
	});
}

describe('the lock file', () => {
	it('knows the digest of every package, so that nobody can exchange one', () => {
		const without = Object.keys(installed).filter((path) => !installed[path]?.integrity);
		expect(root).toBeDefined();
		expect(without).toEqual([]);
	});

	it('holds the native packages of every system, not only of the one it was made on', () => {
		const missing = Object.entries(installed).flatMap(([path, { optionalDependencies = {} }]) =>
			Object.keys(optionalDependencies).filter((name) => !isLocked(path, name)),
		);
		expect(missing).toEqual([]);
	});

	it('names no registry, so that each machine takes its own', () => {
		expect(Object.values(installed).filter(({ resolved }) => resolved !== undefined)).toEqual([]);
	});
});
