/**
 * `npm run release`: looks whether this can be published, builds it twice, and leaves the tarball in `release/`. It
 * publishes nothing: that does a job of its own, which a person allows (`.github/workflows/publish.yml`).
 *
 * `-- --dry-run` is for any time between two releases: what is only due at a release is listed and does not count, and
 * nothing is written into the repository. `-- --addresses` writes the repository's address wherever it is needed.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { runCommand } from '../../test/commandLine';
import {
	checkChangelog,
	checkFigures,
	checkIdentity,
	checkPages,
	checkVersion,
	type Finding,
} from './checks';
import { fillIdentity, repositoryUrl } from './identity';
import { packTwice } from './reproduce';

const ROOT = resolve(__dirname, '../..');

async function main(): Promise<boolean> {
	const { values } = parseArgs({
		options: {
			'dry-run': { type: 'boolean', default: false },
			addresses: { type: 'boolean', default: false },
		},
	});
	if (values.addresses) {
		for (const file of fillIdentity(ROOT)) console.log(`${file}: ${repositoryUrl(ROOT)}`);
	}

	const isRelease = !values['dry-run'];
	const { GITHUB_REPOSITORY, GITHUB_REF_NAME } = process.env;
	const checks: Record<string, Finding> = {
		Version: checkVersion(ROOT, isRelease ? (GITHUB_REF_NAME ?? 'none') : undefined),
		Changelog: checkChangelog(ROOT),
		Identity: checkIdentity(ROOT, GITHUB_REPOSITORY),
		Pages: checkPages(ROOT),
		Figures: checkFigures(ROOT),
	};
	for (const [title, { wrong, open }] of Object.entries(checks)) {
		if (wrong.length + open.length === 0) console.log(`✓ ${title}`);
		for (const line of open) console.log(`${isRelease ? '✗' : '…'} ${title}: ${line}`);
		for (const line of wrong) console.log(`✗ ${title}: ${line}`);
	}
	const folder = isRelease ? ROOT : mkdtempSync(join(tmpdir(), 'media-generation-dry-run-'));
	const tarball = join(folder, 'release/package.tgz');
	const { sha512, bytes } = await packTwice(ROOT, tarball);
	console.log(`✓ Two builds gave the same tarball: ${bytes} bytes, sha512-${sha512}`);
	console.log(execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim());

	console.log(
		'What a person sets once, before the first release: docs/development.md, "To release".',
	);
	const findings = Object.values(checks);
	const open = findings.flatMap((finding) => finding.open);
	if (open.length > 0) console.log(`Due before the release: ${open.length}, see above.`);
	return findings.every(({ wrong }) => wrong.length === 0) && !(isRelease && open.length > 0);
}

runCommand(main);
