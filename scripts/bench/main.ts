import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';

import { elapsed, partsOf, readOptions, runCommand } from '../../test/commandLine';
import { measureLimits } from '../../test/limits/main';
import { installN8n } from '../../test/n8n/install';
import { measureAsleep } from './asleep';
import { measureBatches } from './batch';
import { type BenchOptions, type Log, withBench } from './bench';
import { holdsBudget } from './budget';
import { measureCallbacks } from './callback';
import { measureCluster } from './cluster';
import { measureNight } from './night';
import { describeMachine, readResults, type Results, type Row, writeResults } from './results';
import { measureStartup } from './startup';
import { measureSuspended } from './suspended';
import { tableOf, writePage } from './table';

const ROOT = resolve(__dirname, '../..');

/** What is measured where nothing else is asked for; `limits` needs no n8n. */
const USUAL = ['batch', 'callback', 'suspended', 'startup', 'limits'] as const;

/** What takes longer, or more of the machine: only where it is asked for by name. */
const NAMED = ['cluster', 'asleep', 'night'] as const;

const PARTS: Record<string, (options: BenchOptions, log: Log) => Promise<Row[]>> = {
	batch: async (options, log) => await withBench(options, log, measureBatches),
	callback: async (options, log) => await withBench(options, log, measureCallbacks),
	suspended: async (options, log) => await withBench(options, log, measureSuspended),
	startup: measureStartup,
	cluster: measureCluster,
	asleep: async (options, log) => await withBench(options, log, measureAsleep),
	night: measureNight,
};

const USAGE = `Usage: npm run bench -- [options]

  --only <names>   measure only these, with commas between: ${USUAL.join(', ')}; and
                   what is not measured unless it is named: ${NAMED.join(', ')}
  --quick          small batches and few calls, once, written to test/artefacts/bench
  --check          compare the results with the budget: 1 where one is exceeded`;

const startedAt = Date.now();
const log: Log = (line) => console.log(`${elapsed(startedAt)}: ${line}`);

async function main(): Promise<boolean> {
	const { only, quick, check } = readOptions(USAGE, {
		only: { type: 'string', default: USUAL.join() },
		quick: { type: 'boolean', default: false },
		check: { type: 'boolean', default: false },
	});
	if (process.platform !== 'linux') throw new Error('The benchmark reads /proc: it needs Linux.');
	const options = { quick, runs: quick ? 1 : 3 };
	const folder = quick ? join(ROOT, 'test/artefacts/bench') : __dirname;
	const results = readResults(folder);
	for (const part of partsOf([...USUAL, ...NAMED], only)) {
		log(`Measuring: ${part}`);
		if (part === 'limits') await measureLimits();
		else await measure(part, options, folder, results);
	}
	console.log(await tableOf(results));
	if (!quick) await writePage(join(ROOT, 'docs/benchmarks.md'), results);
	return !check || holdsBudget(results);
}

/** Measures one part, and stores it over what is stored already. */
async function measure(
	part: string,
	options: BenchOptions,
	folder: string,
	results: Results,
): Promise<void> {
	const { version, nodeBinary } = await installN8n();
	const node = execFileSync(nodeBinary, ['--version'], { encoding: 'utf8' }).trim();
	results.machine = describeMachine(node, version);
	results.rows[part] = (await PARTS[part]?.(options, log)) ?? [];
	results.measured[part] = { at: new Date().toISOString(), runs: options.runs };
	writeResults(folder, results);
}

runCommand(main);
