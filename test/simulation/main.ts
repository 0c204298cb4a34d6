import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';

import { readOptions } from '../commandLine';
import { markdownTable, writeSection } from '../page';
import { inParallel } from './parallel';
import { type Found, replay, search } from './search';
import { NodeSources, ROOT } from './world/nodeSources';

const USAGE = `Usage: npm run simulate -- [options]

  --seeds <n>       how many histories, one for each seed (default 1000)
  --from <n>        the first seed (default 1)
  --seed <n>        replay one history, made as short as it can be where it violates the contract
  --sources <path>  the folder of another version of the nodes (default: this one)
  --processes <n>   how many work side by side (default: one for each processor)
  --write           write the counts into docs/simulation.md`;

const values = readOptions(USAGE, {
	seeds: { type: 'string', default: '1000' },
	from: { type: 'string', default: '1' },
	seed: { type: 'string' },
	sources: { type: 'string', default: ROOT },
	processes: { type: 'string', default: String(availableParallelism()) },
	json: { type: 'boolean', default: false },
	write: { type: 'boolean', default: false },
});

/** Of each sentence. */
const MAX_SHOWN = 5;

/** So many histories at a time go to whichever process is free. */
const SHARE = 250;

async function main(): Promise<void> {
	const root = resolve(values.sources);
	if (values.seed !== undefined) {
		const { text, isGreen } = await replay(Number(values.seed), new NodeSources([], root));
		console.log(text);
		process.exitCode = isGreen ? 0 : 1;
		return;
	}
	const [from, count, processes] = [values.from, values.seeds, values.processes].map(Number);
	if (values.json) {
		console.log(JSON.stringify(await search(from ?? 1, count ?? 0, new NodeSources([], root))));
		return;
	}
	const startedAt = Date.now();
	report(await share(from ?? 1, count ?? 0, processes ?? 1), count ?? 0, startedAt);
}

/** Shares the seeds out among processes: each takes the next part of them when it is done with one. */
async function share(from: number, histories: number, processes: number): Promise<Found> {
	const found: Found = { violations: [], faults: {}, exceptions: {} };
	const parts = Array.from({ length: Math.ceil(histories / SHARE) }, (_, part) => {
		const seeds = Math.min(SHARE, histories - part * SHARE);
		const given = { from: from + part * SHARE, seeds, sources: values.sources };
		return ['--json', ...Object.entries(given).map(([name, value]) => `--${name}=${value}`)];
	});
	await inParallel<Found>(__filename, parts, processes, (part) => {
		for (const { seed, sentence } of part.violations) console.error(`seed ${seed}: ${sentence}`);
		found.violations.push(...part.violations);
		add(found.faults, part.faults);
		add(found.exceptions, part.exceptions);
	});
	found.violations.sort((one, other) => one.seed - other.seed);
	return found;
}

function add(sums: Record<string, number>, counts: Record<string, number>): void {
	for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
}

const byCount = (counts: Record<string, number>) =>
	Object.entries(counts).sort(([, one], [, other]) => other - one);

function report({ violations, faults, exceptions }: Found, count: number, startedAt: number): void {
	console.log('Histories that had this fault:');
	for (const [fault, histories] of byCount(faults)) {
		console.log(`${String(histories).padStart(7)}  ${fault}`);
	}
	if (Object.keys(exceptions).length > 0)
		console.log('Known exceptions, which n8n leaves no way around:');
	for (const [exception, histories] of byCount(exceptions)) {
		console.log(`${String(histories).padStart(7)}  ${exception}`);
	}
	for (const sentence of new Set(violations.map((violation) => violation.sentence))) {
		const against = violations.filter((violation) => violation.sentence === sentence);
		const histories = new Set(against.map(({ seed }) => seed)).size;
		console.log(`Not so in ${histories} histories: ${sentence}`);
		for (const { seed, what } of against.slice(0, MAX_SHOWN))
			console.log(`  seed ${seed}: ${what}`);
		const seeds = [...new Set(against.map(({ seed }) => seed))];
		if (seeds.length > 1) console.log(`  seeds ${seeds.slice(0, 20).join(', ')}`);
	}
	const known = Object.values(exceptions).reduce((sum, histories) => sum + histories, 0);
	const bad = new Set(violations.map(({ seed }) => seed)).size;
	const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
	console.log(`${count} histories in ${seconds} s: ${count - bad} green, ${bad} with a violation`);
	process.exitCode = bad === 0 ? 0 : 1;
	if (values.write) {
		const table = (what: string, counts: Record<string, number>) =>
			markdownTable(
				[what, 'In so many histories'],
				byCount(counts).map(([name, histories]) => [name, String(histories)]),
				(column) => column === 1,
			);
		const { from } = values;
		writeSection(
			resolve(ROOT, 'docs/simulation.md'),
			'counts',
			[
				`${count} histories, seeds ${from} to ${Number(from) + count - 1}: ${bad} with a violation of the contract; in up to ${known} of the others a known exception occurred.`,
				table('What happened', faults),
				table('Known exception', exceptions),
			].join('\n\n'),
		);
	}
}

void main();
