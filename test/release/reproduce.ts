import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runNpm } from '../n8n/npm';

export interface Packed {
	/** The tarball's path. */
	tarball: string;
	sha512: string;
	bytes: number;
}

/**
 * Builds and packs what is in the repository, in a folder of its own: what lies about in the working copy, built or
 * forgotten, is not part of it.
 *
 * @param root the repository's folder, with its `node_modules`
 * @param folder where to do it; made
 * @param settings npm settings for this build
 */
export async function packCopy(
	root: string,
	folder: string,
	settings: Record<string, string> = {},
): Promise<Packed> {
	const copy = join(folder, 'repository');
	const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
		cwd: root,
		encoding: 'utf8',
	})
		.split('\n')
		// The lock file would have npm install anew; tests are not part of the package.
		.filter((file) => /^[^/]+$|^(nodes|credentials)\//.test(file) && file !== 'package-lock.json')
		.concat('test/setup.mjs');
	for (const file of files) {
		await mkdir(dirname(join(copy, file)), { recursive: true });
		await cp(join(root, file), join(copy, file)).catch((error: NodeJS.ErrnoException) => {
			// Deleted, and not committed yet.
			if (error.code !== 'ENOENT') throw error;
		});
	}
	await symlink(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction');
	await runNpm(['run', 'build'], copy, settings);
	const packing = join(folder, 'packed');
	await mkdir(packing);
	await runNpm(['pack', '--ignore-scripts', '--pack-destination', packing], copy, settings);
	const [name = ''] = await readdir(packing);
	const content = await readFile(join(packing, name));
	return {
		tarball: join(packing, name),
		sha512: createHash('sha512').update(content).digest('base64'),
		bytes: content.length,
	};
}

/**
 * Builds and packs twice, in two places and at two times, and compares byte for byte: whoever has the sources can then
 * make the published tarball anew and see that nothing was put into it.
 *
 * @param keep a folder that the tarball is put into
 * @returns the tarball's place there
 * @throws where the two differ
 */
export async function packTwice(root: string, keep: string): Promise<Packed> {
	const folder = await mkdtemp(join(tmpdir(), 'media-generation-release-'));
	try {
		const first = await packCopy(root, join(folder, 'first'));
		const second = await packCopy(root, join(folder, 'another place'), { umask: '0077' });
		if (first.sha512 !== second.sha512) {
			throw new Error('Two builds of the same sources gave two different tarballs.');
		}
		await mkdir(keep, { recursive: true });
		const tarball = join(keep, 'package.tgz');
		await cp(first.tarball, tarball);
		return { ...first, tarball };
	} finally {
		await rm(folder, { recursive: true, force: true });
	}
}
