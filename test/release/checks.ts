import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
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

export function checkIdentity(root: string): Finding {
	const wrong = [...outdatedAddresses(root).keys()].map(
		(file) => `${file} had another address: npm run identity`,
	);
	return { wrong, open: missingIdentity(root) };
}

interface Job {
	environment?: unknown;
	permissions?: Record<string, string>;
	/** Missing where it runs another workflow. */
	steps?: Array<{ run?: string; uses?: string }>;
}

/**
 * What npm puts into the provenance has to come from one job: the only one that may publish, and that runs nothing of
 * this repository.
 *
 * @param forgeRepository `owner/name`, as the forge gives it to its actions; undefined elsewhere
 */
export function checkProvenance(root: string, forgeRepository?: string): Finding {
	const workflow = parse(read(root, '.github/workflows/publish.yml')) as {
		permissions?: Record<string, string>;
		jobs: Record<string, Job>;
	};
	const publishes = ({ steps = [] }: Job) =>
		steps.some(({ run = '' }) => run.includes('npm publish'));
	const wrong = Object.entries(workflow.jobs).flatMap(([name, job]) => {
		const { environment, permissions = {}, steps = [] } = job;
		const mayPublish = permissions['id-token'] === 'write';
		if (!publishes(job)) return said([mayPublish, `${name} has the permission to publish`]);
		const isOther = ({ run }: { run?: string }) =>
			run !== undefined && !/^npm publish \S+\.tgz .*--provenance/.test(run);
		const hasSources = steps.some(({ uses = '' }) => uses.startsWith('actions/checkout@'));
		return said(
			[!mayPublish, `${name} has no id-token: there would be no provenance`],
			[environment === undefined, `${name} asks no person`],
			[steps.some(isOther), `${name} runs more than npm publish of a tarball`],
			[hasSources, `${name} has the sources, though it publishes what another job has packed`],
		);
	});
	const anyMay = workflow.permissions?.['id-token'] !== undefined;
	const url = repositoryUrl(root);
	const isOther = forgeRepository !== undefined && url !== `https://github.com/${forgeRepository}`;
	return {
		wrong: wrong.concat(
			said(
				[anyMay, 'Every job could publish'],
				[!Object.values(workflow.jobs).some(publishes), 'Nothing is published'],
			),
		),
		open: said([isOther, `package.json names ${url}, and this is ${forgeRepository}`]),
	};
}
