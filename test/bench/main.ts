import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { runCommand } from '../commandLine';
import { measureLimits } from '../limits/main';
import { installN8n } from '../n8n/install';
import { measureBatches } from './batch';
import { type Bench, withBench } from './bench';
import { type BudgetEntry, checkBudget, describeVerdict } from './budget';
import { measureCallbacks } from './callback';
import { drawCharts } from './charts/batches';
import { measureCluster } from './cluster';
import { measureLarge } from './large';
import { MONITORED } from './monitor';
import { type BenchOptions, parseOptions, type Section } from './options';
import { describeMachine, readResults, type Results, type Row, writeResults } from './results';
import { measureSoak } from './soak';
import { measureStartup } from './startup';
import { measureSuspended } from './suspended';
import { printTable, writePage } from './table';
import { Usage } from './usage';

const ROOT = resolve(__dirname, '../..');

const PARTS: Record<
	Exclude<Section, 'limits' | 'soak'>,
	(options: BenchOptions, log: Bench['log']) => Promise<Row[]>
> = {
	batch: async (options, log) => await withBench(options, log, {}, measureBatches),
	callback: async (options, log) => await withBench(options, log, {}, measureCallbacks),
	suspended: async (options, log) => await withBench(options, log, {}, measureSuspended),
	startup: measureStartup,
	large: async (options, log) =>
		await withBench(options, log, MONITORED, measureLarge, { credits: 10_000_000 }),
	cluster: measureCluster,
};

const startedAt = performance.now();

function log(line: string): void {
	const seconds = Math.round((performance.now() - startedAt) / 1000);
	console.log(
		`${String(Math.floor(seconds / 60)).padStart(2)}:${String(seconds % 60).padStart(2, '0')}  ${line}`,
	);
}

async function main(): Promise<void> {
	const options = parseOptions();
	if (options.only.includes('limits') && !options.checkOnly && !options.drawOnly) {
		log('Measuring: limits');
		measureLimits();
		if (options.only.length === 1) return;
	}
	const folder =
		options.output ?? join(ROOT, options.quick ? 'test/artefacts/bench' : 'docs/bench');
	const results = await resultsOf(options, folder);
	printTable(results);
	await drawCharts(folder, results);
	if (folder === join(ROOT, 'docs/bench')) writePage(join(ROOT, 'docs/benchmarks.md'), results);
	if (options.check && !holdsBudget(results)) process.exitCode = 1;
}

/** Measures what was asked for, over what is stored already. */
async function resultsOf(options: BenchOptions, folder: string): Promise<Results> {
	const stored = readResults(folder);
	if (options.checkOnly || options.drawOnly) {
		if (stored === undefined) throw new Error(`There are no results in ${folder} yet.`);
		return stored;
	}
	if (!Usage.isAvailable) {
		throw new Error('CPU time and memory are read from /proc: the benchmark needs Linux.');
	}
	const { version, nodeBinary } = await installN8n({ log });
	const nodeVersion = execFileSync(nodeBinary, ['--version'], { encoding: 'utf8' }).trim();
	const results: Results = {
		measured: {},
		rows: {},
		...stored,
		machine: describeMachine(nodeVersion, version),
	};
	for (const section of options.only) {
		if (section === 'limits') continue;
		log(`Measuring: ${section}`);
		if (section === 'soak') {
			const { rows, minutes } = await measureSoak(options, log);
			results.rows.soak = rows;
			results.soak = minutes;
		} else results.rows[section] = await PARTS[section](options, log);
		results.measured[section] = { at: new Date().toISOString(), runs: options.runs };
		writeResults(folder, results);
	}
	return results;
}

function holdsBudget(results: Results): boolean {
	const path = join(__dirname, 'budget.json');
	if (!existsSync(path)) throw new Error(`${path} is missing.`);
	const verdicts = checkBudget(results, JSON.parse(readFileSync(path, 'utf8')) as BudgetEntry[]);
	for (const verdict of verdicts) console.log(describeVerdict(verdict));
	return verdicts.every(({ isKept }) => isKept);
}

runCommand(main);
