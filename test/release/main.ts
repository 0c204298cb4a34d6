/**
 * `npm run release`: looks whether this can be published, builds it twice, and leaves the tarball in `release/`. It
 * publishes nothing: that does a job of its own, which a person allows (`.github/workflows/publish.yml`).
 *
 * `-- --dry-run` is for any time between two releases: what is only due at a release is listed and does not count, and
 * nothing is written into the repository.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { runCommand } from '../commandLine';
import {
	type Finding,
	checkChangelog,
	checkIdentity,
	checkProvenance,
	checkReadme,
	checkVersion,
} from './checks';
import { packTwice } from './reproduce';

const ROOT = resolve(__dirname, '../..');

/** What a person sets once, and no program can see from here. */
const BY_A_PERSON = [
	'the address: "repository.url" and "author" in package.json, then npm run identity',
	'private vulnerability reporting, in the settings of the GitHub repository',
	'the environment "npm" with reviewers, in the settings of the GitHub repository',
	'the trusted publisher, in the settings of the package on npmjs.com',
];

async function main(): Promise<boolean> {
	const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean', default: false } } });
	const isRelease = !values['dry-run'];
	const { GITHUB_REPOSITORY, GITHUB_REF_NAME } = process.env;
	const checks: Record<string, Finding> = {
		Version: checkVersion(ROOT, isRelease ? (GITHUB_REF_NAME ?? 'none') : undefined),
		Changelog: checkChangelog(ROOT),
		Identity: checkIdentity(ROOT),
		Provenance: checkProvenance(ROOT, GITHUB_REPOSITORY),
		README: checkReadme(ROOT),
	};
	const folder = isRelease
		? resolve(ROOT, 'release')
		: mkdtempSync(join(tmpdir(), 'media-generation-dry-run-'));
	for (const [title, { fine, wrong, open }] of Object.entries(checks)) {
		for (const line of wrong.length === 0 ? fine : []) console.log(`✓ ${title}: ${line}`);
		for (const line of open) console.log(`${isRelease ? '✗' : '…'} ${title}: ${line}`);
		for (const line of wrong) console.log(`✗ ${title}: ${line}`);
	}
	const { tarball, sha512, bytes } = await packTwice(ROOT, folder);
	console.log(`✓ Two builds gave the same tarball: ${bytes} bytes, sha512-${sha512}`);
	console.log(execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim());

	console.log('A person sets once, before the first release:');
	for (const line of BY_A_PERSON) console.log(`• ${line}`);

	const findings = Object.values(checks);
	const open = findings.flatMap((finding) => finding.open);
	if (open.length > 0) console.log(`Due before the release: ${open.length}, see above.`);
	return findings.every(({ wrong }) => wrong.length === 0) && !(isRelease && open.length > 0);
}

runCommand(main);
