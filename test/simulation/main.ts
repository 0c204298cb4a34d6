import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';

import { type Found, replay, search } from './search';
import { NodeSources } from './world/nodeSources';

const USAGE = `Usage: npm run simulate -- [options]

  --seeds <n>       how many histories, one for each seed (default 1000)
  --from <n>        the first seed (default 1)
  --seed <n>        replay one history, made as short as it can be where it violates the contract
  --sources <path>  the folder of another version of the nodes (default: this one)
  --processes <n>   how many work side by side (default: one for each processor)`;

const { values } = parseArgs({
	options: {
		seeds: { type: 'string', default: '1000' },
		from: { type: 'string', default: '1' },
		seed: { type: 'string' },
		sources: { type: 'string', default: resolve(__dirname, '../..') },
		processes: { type: 'string', default: String(availableParallelism()) },
		json: { type: 'boolean', default: false },
		help: { type: 'boolean', default: false },
	},
});

/** Of each sentence. */
const MAX_SHOWN = 5;

async function main(): Promise<void> {
	if (values.help) return console.log(USAGE);
	const root = resolve(values.sources);
	if (values.seed !== undefined) {
		const { text, isGreen } = await replay(Number(values.seed), new NodeSources(root));
		console.log(text);
		process.exitCode = isGreen ? 0 : 1;
		return;
	}
	const [from, count, processes] = [values.from, values.seeds, values.processes].map(Number);
	if (values.json) {
		console.log(JSON.stringify(await search(from ?? 1, count ?? 0, new NodeSources(root))));
		return;
	}
	const startedAt = Date.now();
	report(await share(from ?? 1, count ?? 0, processes ?? 1), count ?? 0, startedAt);
}

/** Shares the seeds out among processes, each of which takes its own part of them. */
async function share(from: number, count: number, processes: number): Promise<Found> {
	const part = Math.ceil(count / processes);
	const starts = Array.from({ length: processes }, (_, index) => from + index * part);
	const parts = await Promise.all(
		starts.map(async (start) => {
			const seeds = Math.max(0, Math.min(part, from + count - start));
			const args = ['--from', String(start), '--seeds', String(seeds), '--json'];
			const { stdout } = await promisify(execFile)(
				process.execPath,
				[...process.execArgv, __filename, ...args, '--sources', values.sources],
				{ maxBuffer: 2 ** 28 },
			);
			return JSON.parse(stdout) as Found;
		}),
	);
	const faults: Found['faults'] = {};
	for (const [fault, histories] of parts.flatMap((found) => Object.entries(found.faults))) {
		faults[fault] = (faults[fault] ?? 0) + histories;
	}
	return { faults, violations: parts.flatMap(({ violations }) => violations) };
}

function report({ violations, faults }: Found, count: number, startedAt: number): void {
	console.log('Histories that had this fault:');
	for (const [fault, histories] of Object.entries(faults).sort(([, a], [, b]) => b - a)) {
		console.log(`${String(histories).padStart(7)}  ${fault}`);
	}
	for (const sentence of new Set(violations.map((violation) => violation.sentence))) {
		const against = violations.filter((violation) => violation.sentence === sentence);
		const histories = new Set(against.map(({ seed }) => seed)).size;
		console.log(`Not so in ${histories} histories: ${sentence}`);
		for (const { seed, what } of against.slice(0, MAX_SHOWN))
			console.log(`  seed ${seed}: ${what}`);
	}
	const bad = new Set(violations.map(({ seed }) => seed)).size;
	const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
	console.log(`${count} histories in ${seconds} s: ${count - bad} green, ${bad} with a violation`);
	process.exitCode = bad === 0 ? 0 : 1;
}

void main();
