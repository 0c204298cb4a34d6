import { read } from './repository';

interface LockedPackage {
	integrity?: string;
	resolved?: string;
}

// lockfile-lint lets both of these pass where a lock file names no registry.
it.each(['.', 'scripts/scanner', 'test/n8n/versions/2.41.1'])(
	'the lock file in %s has the digest of every package, and no address of a registry',
	(folder) => {
		const { packages } = JSON.parse(read(`${folder}/package-lock.json`)) as {
			packages: Record<string, LockedPackage>;
		};
		const { '': root, ...locked } = packages;
		expect(root).toBeDefined();
		const isOpen = ([, { integrity, resolved }]: [string, LockedPackage]) =>
			integrity === undefined || resolved !== undefined;
		expect(Object.entries(locked).filter(isOpen)).toEqual([]);
	},
);
