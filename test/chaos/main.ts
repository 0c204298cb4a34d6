import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { runCommand } from '../commandLine';
import type { Log } from './campaign';
import { type ChaosOptions, parseOptions, type PartName } from './options';
import { writePage } from './page';
import { runChaos, runHeld, runLost, runQueue, runSilent } from './parts';
import { readResults, type Results, writeResults } from './results';

const ROOT = resolve(__dirname, '../..');

const PARTS: { [Name in PartName]: (options: ChaosOptions, log: Log) => Promise<Results[Name]> } = {
	silent: async (options, log) => await runSilent(options, log, 0),
	kills: async (options, log) => await runSilent(options, log, 5),
	held: runHeld,
	queue: runQueue,
	lost: runLost,
	chaos: runChaos,
};

async function main(): Promise<void> {
	const options = parseOptions();
	const folder = join(ROOT, options.quick ? 'test/artefacts/chaos' : 'docs/bench');
	mkdirSync(folder, { recursive: true });
	if (!options.drawOnly) {
		for (const name of options.only) await runPart(name, options, folder);
	}
	await writePage(folder, readResults(folder));
}

async function runPart(name: PartName, options: ChaosOptions, folder: string): Promise<void> {
	const startedAt = Date.now();
	const log: Log = (line) => {
		const seconds = Math.round((Date.now() - startedAt) / 1000);
		console.log(`${name}, ${seconds} s: ${line}`);
	};
	log(`seed ${options.seed}`);
	const result = await PARTS[name](options, log);
	log(JSON.stringify(result, undefined, 1));
	// Another part may have been stored meanwhile.
	await writeResults(folder, {
		...readResults(folder),
		[name]: { ...result, seed: options.seed, on: new Date().toISOString().slice(0, 10) },
	});
}

runCommand(main);
