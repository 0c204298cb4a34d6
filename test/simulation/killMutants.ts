import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { markdownTable, writeSection } from '../page';
import { type Mutant, mutants } from './mutants';
import { inParallel } from './parallel';
import { historyOf } from './search';
import { simulate } from './simulate';
import { NodeSources, ROOT } from './world/nodeSources';

/** Within so many seeds every mutant is found. */
const MAX_SEEDS = 2_000;

interface Kill {
	name: string;
	/** The first seed that finds it, which finds nothing without it; undefined where none does. */
	seed: number | undefined;
	sentence: string | undefined;
}

const { values } = parseArgs({
	options: {
		mutant: { type: 'string' },
		processes: { type: 'string', default: String(availableParallelism()) },
	},
});

async function main(): Promise<void> {
	const one = mutants.find(({ name }) => name === values.mutant);
	if (one) return console.log(JSON.stringify(await kill(one)));
	const kills: Kill[] = [];
	const lists = mutants.map(({ name }) => ['--mutant', name]);
	await inParallel<Kill>(__filename, lists, Number(values.processes), (found) => {
		kills.push(found);
		console.log(`${found.seed ?? 'NOT FOUND'}: ${found.name}: ${found.sentence ?? ''}`);
	});
	writeSection(resolve(ROOT, 'docs/simulation.md'), 'mutants', tableOf(kills));
	process.exitCode = kills.every(({ seed }) => seed !== undefined) ? 0 : 1;
}

async function kill(mutant: Mutant): Promise<Kill> {
	const [whole, mutated] = [new NodeSources(), new NodeSources([mutant])];
	for (let seed = 1; seed <= MAX_SEEDS; seed++) {
		const history = historyOf(seed);
		const [violation] = (await simulate(history, mutated)).violations;
		if (!violation || (await simulate(history, whole)).violations.length > 0) continue;
		return { name: mutant.name, seed, sentence: violation.sentence };
	}
	return { name: mutant.name, seed: undefined, sentence: undefined };
}

/** The rows of those that were run; the others stay to be run. */
const tableOf = (kills: readonly Kill[]): string =>
	markdownTable(
		['What was made wrong', 'Seeds until found', 'What was no longer true'],
		mutants.flatMap(({ name }) => {
			const found = kills.find((entry) => entry.name === name);
			if (!found) return [];
			return [[name, String(found.seed ?? 'not found'), found.sentence ?? '']];
		}),
		(column) => column === 1,
	);

void main();
