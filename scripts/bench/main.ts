import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';

import { elapsed, partsOf, readOptions, runCommand } from '../../test/commandLine';
import { installN8n } from '../../test/n8n/install';
import { measureBatches } from './batch';
import { type BenchOptions, withBench } from './bench';
import { measureCallbacks } from './callback';
import { measureNight } from './night';
import { describeMachine, readResults, type Results, type Row, writeResults } from './results';
import { tableOf, writePage } from './table';

const ROOT = resolve(__dirname, '../..');

/** The last one takes hours, and is measured only where it is named. */
const PARTS: Record<string, (options: BenchOptions) => Promise<Row[]>> = {
	batch: async (options) => await withBench(options, measureBatches),
	callback: async (options) => await withBench(options, measureCallbacks),
	night: measureNight,
};

const USAGE = `Usage: npm run bench -- [options]

  --only <names>   measure these, with commas between: ${Object.keys(PARTS).join(', ')};
                   default: batch, callback
  --quick          small batches and few calls, once, written to test/artefacts/bench`;

const startedAt = Date.now();
const log = (line: string) => console.log(`${elapsed(startedAt)}: ${line}`);

async function main(): Promise<void> {
	const { only, quick } = readOptions(USAGE, {
		only: { type: 'string', default: 'batch,callback' },
		quick: { type: 'boolean', default: false },
	});
	if (process.platform !== 'linux') throw new Error('The benchmark reads /proc: it needs Linux.');
	const options = { quick, runs: quick ? 1 : 3, log };
	const folder = quick ? join(ROOT, 'test/artefacts/bench') : __dirname;
	const results = readResults(folder);
	for (const part of partsOf(Object.keys(PARTS), only)) {
		log(`Measuring: ${part}`);
		await measure(part, options, folder, results);
	}
	console.log(tableOf(results));
	if (!quick) writePage(join(ROOT, 'docs/benchmarks.md'), results);
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
	results.rows[part] = (await PARTS[part]?.(options)) ?? [];
	results.measured[part] = { at: new Date().toISOString(), runs: options.runs };
	writeResults(folder, results);
}

runCommand(main);
