import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { missingIdentity, repositoryUrl, outdatedAddresses } from './identity';
import { brokenLinks, targetsOf } from './links';

/** What a look at the repository found. */
export interface Finding {
	/** What is as it should be, for the log. */
	fine: string[];
	/** What is wrong, at any time. */
	wrong: string[];
	/** What has to be done before a release, and only then. */
	open: string[];
}

const finding = (parts: Partial<Finding>): Finding => ({ fine: [], wrong: [], open: [], ...parts });

const read = (root: string, file: string) => readFileSync(join(root, file), 'utf8');

export function versionOf(root: string): string {
	return (JSON.parse(read(root, 'package.json')) as { version: string }).version;
}

/**
 * @param tag the tag that is released; undefined where none is
 */
export function checkVersion(root: string, tag?: string): Finding {
	const version = versionOf(root);
	const { packages } = JSON.parse(read(root, 'package-lock.json')) as {
		packages: Record<string, { version: string }>;
	};
	const locked = packages['']?.version;
	return finding({
		fine: [`version ${version}`],
		wrong: [
			...(/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version) ? [] : [`${version} is no version`]),
			...(locked === version ? [] : [`package-lock.json has version ${locked}: npm install`]),
			...(tag === undefined || tag === `v${version}`
				? []
				: [`The tag is ${tag}, but package.json has version ${version}`]),
		],
	});
}

/** The entries of the changelog below one heading; undefined where there is no such heading. */
function entriesOf(changelog: string, title: string): string[] | undefined {
	const sections = changelog.split(/^## /m);
	const section = sections.find((text) => text.startsWith(`[${title}]`));
	return section?.split('\n').filter((line) => line.startsWith('- '));
}

export function checkChangelog(root: string): Finding {
	const changelog = read(root, 'CHANGELOG.md');
	const version = versionOf(root);
	const released = entriesOf(changelog, version);
	const unreleased = entriesOf(changelog, 'Unreleased') ?? [];
	if (released === undefined) {
		return finding({
			open: [
				`CHANGELOG.md has no section [${version}]; ${unreleased.length} entries stand under Unreleased`,
			],
			wrong: unreleased.length > 0 ? [] : ['CHANGELOG.md has nothing to release'],
		});
	}
	return finding({
		fine: [`${released.length} entries under [${version}]`],
		wrong: released.length > 0 ? [] : [`CHANGELOG.md has nothing under [${version}]`],
		open: unreleased.length > 0 ? ['CHANGELOG.md still has entries under Unreleased'] : [],
	});
}

export function checkIdentity(root: string): Finding {
	const open = missingIdentity(root);
	const wrong = [...outdatedAddresses(root).keys()].map(
		(file) => `${file} had another address: npm run identity`,
	);
	return finding({ open, wrong, fine: open.length > 0 ? [] : [repositoryUrl(root)] });
}

interface Workflow {
	permissions?: Record<string, string>;
	jobs: Record<
		string,
		{
			environment?: unknown;
			permissions?: Record<string, string>;
			/** Missing where it runs another workflow. */
			steps?: Array<{ run?: string; uses?: string }>;
		}
	>;
}

/**
 * What npm puts into the provenance has to come from one job: the only one that may publish, and that runs nothing of
 * this repository.
 *
 * @param forgeRepository `owner/name`, as the forge gives it to its actions; undefined elsewhere
 */
export function checkProvenance(root: string, forgeRepository?: string): Finding {
	const workflow = parse(read(root, '.github/workflows/publish.yml')) as Workflow;
	const publishes = ({ steps = [] }: Workflow['jobs'][string]) =>
		steps.some(({ run = '' }) => run.includes('npm publish'));
	const wrong = Object.entries(workflow.jobs).flatMap(([name, job]) => {
		const mayPublish = job.permissions?.['id-token'] === 'write';
		if (!publishes(job)) return mayPublish ? [`${name} has the permission to publish`] : [];
		const { steps = [] } = job;
		const commands = steps.flatMap(({ run }) => (run === undefined ? [] : [run]));
		return [
			...(mayPublish ? [] : [`${name} has no id-token: there would be no provenance`]),
			...(job.environment === undefined ? [`${name} asks no person`] : []),
			...(commands.every((run) => /^npm publish \S+\.tgz .*--provenance/.test(run))
				? []
				: [`${name} runs more than npm publish of a tarball`]),
			...(steps.some(({ uses = '' }) => uses.startsWith('actions/checkout@'))
				? [`${name} has the sources, though it publishes what another job has packed`]
				: []),
		];
	});
	if (workflow.permissions?.['id-token'] !== undefined) wrong.push('Every job could publish');
	if (!Object.values(workflow.jobs).some(publishes)) wrong.push('Nothing is published');
	const url = repositoryUrl(root);
	const isOther = forgeRepository !== undefined && url !== `https://github.com/${forgeRepository}`;
	return finding({
		fine: ['one job can publish, with provenance, and asks a person first'],
		wrong,
		open: isOther ? [`package.json names ${url}, and this is ${forgeRepository}`] : [],
	});
}

/** The README on npm: relative links are resolved against the repository, so what they name must be in it. */
export function checkReadme(root: string): Finding {
	const tracked = new Set(
		execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n'),
	);
	const exists = (file: string) => {
		const path = file.replace(/\/$/, '');
		return tracked.has(path) || [...tracked].some((name) => name.startsWith(`${path}/`));
	};
	const targets = targetsOf(read(root, 'README.md'));
	const insecure = targets.filter((target) => target.startsWith('http:'));
	return finding({
		fine: [`${targets.length} links and pictures of the README lead somewhere`],
		wrong: [
			...brokenLinks(root, 'README.md', exists).map((target) => `README.md leads to ${target}`),
			...insecure.map((target) => `README.md leads to ${target} without TLS`),
		],
	});
}
