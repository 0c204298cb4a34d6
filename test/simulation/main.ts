import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

import { readOptions, wholeNumber } from '../commandLine';
import { groupBy } from '../groupBy';
import { markdownTable, writeSection } from '../page';
import { plantAll } from './mistakes';
import { add, type Found, replay, search } from './search';
import { NodeSources, ROOT } from './world/nodeSources';

const USAGE = `Usage: npm run simulate -- [options]

  --seeds <n>       how many histories, one for each seed (default 1000)
  --from <n>        the first seed (default 1)
  --seed <n>        replay one history, made as short as it can be where it violates the contract
  --sentence <words> of a history that violates several sentences: the one that is meant
  --sources <path>  the folder of another version of the nodes (default: this one)
  --mistakes        make mistakes on purpose, one for each sentence, and tell which seed notices it
  --write           write the counts into test/simulation/results.md`;

const values = readOptions(USAGE, {
	seeds: { type: 'string', default: '1000' },
	from: { type: 'string', default: '1' },
	seed: { type: 'string' },
	sentence: { type: 'string' },
	sources: { type: 'string', default: ROOT },
	json: { type: 'boolean', default: false },
	mistakes: { type: 'boolean', default: false },
	write: { type: 'boolean', default: false },
});

/** Of each sentence. */
const MAX_SHOWN = 5;

const MOST_ROWS = 15;

/** So many histories at a time go to whichever process is free. */
const SHARE = 250;

const run = promisify(execFile);

async function main(): Promise<void> {
	const sources = new NodeSources(resolve(values.sources));
	if (values.seed !== undefined) {
		const { text, isGreen } = await replay(Number(values.seed), sources, values.sentence);
		console.log(text);
		process.exitCode = isGreen ? 0 : 1;
		return;
	}
	if (values.mistakes) return await plantAll(300, values.sentence);
	const from = wholeNumber('from', values.from);
	const seeds = wholeNumber('seeds', values.seeds);
	if (values.json) console.log(JSON.stringify(await search(from, seeds, sources)));
	else await report(await share(from, seeds), from, seeds);
}

/** Shares the seeds out among processes: each takes the next part of them when it is done with one. */
async function share(from: number, seeds: number): Promise<Found> {
	const found: Found = { violations: [], faults: [], exceptions: [] };
	const parts = Array.from({ length: Math.ceil(seeds / SHARE) }, (_, part) => [
		`--from=${from + part * SHARE}`,
		`--seeds=${Math.min(SHARE, seeds - part * SHARE)}`,
	]).values();
	const work = async () => {
		for (const part of parts) {
			const own = ['--json', `--sources=${values.sources}`, ...part];
			const all = [...process.execArgv, __filename, ...own];
			const { stdout } = await run(process.execPath, all, { maxBuffer: 2 ** 28 });
			add(found, JSON.parse(stdout) as Found);
		}
	};
	await Promise.all(Array.from({ length: availableParallelism() }, work));
	found.violations.sort((one, other) => one.seed - other.seed);
	return found;
}

/** Of what happened the rarest. */
const tableOf = async (what: string, names: string[]) =>
	await markdownTable(
		[what, 'In so many histories'],
		[...groupBy(names, (name) => name)]
			.map(([name, { length }]) => [name, length] as const)
			.sort(([, one], [, other]) => one - other)
			.slice(0, MOST_ROWS)
			.map(([name, length]) => [name, String(length)]),
		(column) => column === 1,
	);

const seedsOf = (list: Found['violations']) => [...new Set(list.map(({ seed }) => seed))];

async function report(
	{ violations, faults, exceptions }: Found,
	from: number,
	count: number,
): Promise<void> {
	const bad = seedsOf(violations).length;
	const page = [
		`${count} histories, seeds ${from} to ${from + count - 1}: ${bad} with a violation of the contract; in up to ${exceptions.length} of the others a known exception occurred.`,
		`${new Set(faults).size} kinds of faults occurred. The rarest:`,
		await tableOf('What happened', faults),
		await tableOf('Known exception', exceptions),
	].join('\n\n');
	console.log(page);
	for (const [sentence, against] of groupBy(violations, (violation) => violation.sentence)) {
		const seeds = seedsOf(against);
		console.log(`Not so in ${seeds.length} histories, for ${against[0]?.user}: ${sentence}`);
		for (const { seed, what } of against.slice(0, MAX_SHOWN)) {
			console.log(`  seed ${seed}: ${what}`);
		}
		if (seeds.length > 1) console.log(`  seeds ${seeds.slice(0, 20).join(', ')}`);
	}
	console.log(`${count} histories: ${count - bad} green, ${bad} with a violation`);
	process.exitCode = bad === 0 ? 0 : 1;
	if (values.write) writeSection(resolve(__dirname, 'results.md'), 'counts', page);
}

void main();
