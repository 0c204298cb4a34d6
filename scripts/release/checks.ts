import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { missingIdentity, outdatedAddresses, repositoryUrl, said } from './identity';

/** What a look at the repository found. */
export interface Finding {
	/** What is wrong, at any time. */
	wrong: string[];
	/** What has to be done before a release, and only then. */
	open: string[];
}

const read = (root: string, file: string) => readFileSync(join(root, file), 'utf8');

const versionIn = (root: string, file: string) =>
	(JSON.parse(read(root, file)) as { version: string }).version;

/** @param tag the tag that is released; undefined where none is */
export function checkVersion(root: string, tag?: string): Finding {
	const version = versionIn(root, 'package.json');
	const locked = versionIn(root, 'package-lock.json');
	const wrong = said(
		[locked !== version, `package-lock.json has version ${locked}: npm install`],
		[(tag ?? `v${version}`) !== `v${version}`, `The tag is ${tag}, and the version ${version}`],
	);
	return { wrong, open: [] };
}

/** The changelog has entries for this version, and none that wait for another. */
export function checkChangelog(root: string): Finding {
	const sections = read(root, 'CHANGELOG.md').split(/^## /m);
	const entriesOf = (title: string) =>
		sections.find((text) => text.startsWith(`[${title}]`))?.match(/^- /gm)?.length ?? 0;
	const version = versionIn(root, 'package.json');
	const unreleased = entriesOf('Unreleased');
	const isThere = sections.some((text) => text.startsWith(`[${version}]`));
	return {
		wrong: said(
			[isThere && entriesOf(version) === 0, `CHANGELOG.md has nothing under [${version}]`],
			[!isThere && unreleased === 0, 'CHANGELOG.md has nothing to release'],
		),
		open: said(
			[!isThere, `CHANGELOG.md has no section [${version}]`],
			[unreleased > 0, `${unreleased} entries stand under Unreleased in CHANGELOG.md`],
		),
	};
}

/** @param forgeRepository `owner/name`, as the forge gives it to its actions; undefined elsewhere */
export function checkIdentity(root: string, forgeRepository?: string): Finding {
	const wrong = [...outdatedAddresses(root).keys()].map(
		(file) => `${file} has another address: npm run release -- --addresses`,
	);
	const url = repositoryUrl(root);
	// npm refuses a provenance from another repository.
	const isOther = forgeRepository !== undefined && url !== `https://github.com/${forgeRepository}`;
	const other = said([isOther, `package.json names ${url}, and this is ${forgeRepository}`]);
	return { wrong, open: [...missingIdentity(root), ...other] };
}

/** The pages that say how the package is installed no longer tell that it is not on npm. */
export function checkPages(root: string): Finding {
	const pages = ['README.md', 'docs/installation.md'];
	const early = pages.filter((page) => read(root, page).includes('not on npm yet'));
	return {
		wrong: [],
		open: early.map((page) => `${page} says that the package is not on npm yet`),
	};
}

/** @param measured when each part of the benchmark was measured */
export function outdatedFigures(
	measured: Record<string, { at: string }>,
	changedAt: Date,
): string[] {
	return Object.entries(measured)
		.filter(([, { at }]) => new Date(at) < changedAt)
		.map(
			([part]) => `"${part}" was measured before the code changed: npm run bench -- --only ${part}`,
		);
}

/** The figures are those of the code that is released, as far as the history of this clone tells. */
export function checkFigures(root: string): Finding {
	const log = ['log', '-1', '--format=%cI', '--', 'nodes', 'credentials'];
	const changedAt = execFileSync('git', log, { cwd: root, encoding: 'utf8' }).trim();
	const { measured } = JSON.parse(read(root, 'scripts/bench/results.json')) as {
		measured: Record<string, { at: string }>;
	};
	return { wrong: [], open: outdatedFigures(measured, new Date(changedAt)) };
}
