import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildAndPack } from '../../test/n8n/package';

/**
 * Builds and packs what is in the repository, in a folder of its own: what lies about in the working copy, built or
 * forgotten, is not part of it.
 *
 * @returns the path of the tarball
 */
async function packCopy(
	root: string,
	folder: string,
	settings: Record<string, string>,
): Promise<string> {
	const copy = join(folder, 'repository');
	const options = ['--cached', '--others', '--exclude-standard'];
	const files = execFileSync('git', ['ls-files', ...options], { cwd: root, encoding: 'utf8' })
		.split('\n')
		// Tests are not part of the package.
		.filter((file) => /^[^/]+$|^(nodes|credentials)\//.test(file))
		// Some may be deleted, and that not committed yet.
		.filter((file) => existsSync(join(root, file)));
	for (const file of files) await cp(join(root, file), join(copy, file));
	await symlink(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction');
	const packing = join(folder, 'packed');
	await mkdir(packing);
	return await buildAndPack(copy, packing, settings);
}

/**
 * Builds and packs twice, in two places and at two times, and compares byte for byte: whoever has the sources can then
 * make the published tarball anew and see that nothing was put into it.
 *
 * @param tarball where to put it
 * @throws where the two differ
 */
export async function packTwice(root: string, tarball: string) {
	const folder = await mkdtemp(join(tmpdir(), 'media-generation-release-'));
	try {
		const first = await packCopy(root, join(folder, 'first'), {});
		const second = await packCopy(root, join(folder, 'another place'), { umask: '0077' });
		const content = await readFile(first);
		if (!content.equals(await readFile(second))) {
			throw new Error('Two builds of the same sources gave two different tarballs.');
		}
		await cp(first, tarball);
		const sha512 = createHash('sha512').update(content).digest('base64');
		return { sha512, bytes: content.length };
	} finally {
		await rm(folder, { recursive: true, force: true });
	}
}
