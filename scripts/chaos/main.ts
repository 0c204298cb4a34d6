import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

import { elapsed, partsOf, readOptions, runCommand, wholeNumber } from '../../test/commandLine';
import { markdownTable, writeSection } from '../../test/page';
import type { Log, Outcome } from './campaign';
import { runChaos, runHeld, runKills } from './parts';

const PAGE = resolve(__dirname, 'README.md');

/** What each part came to when it was run last. */
const STORED = resolve(__dirname, 'results.json');

/** In the order and under the names of the page. */
const PARTS = {
	kills: { title: 'No callback ever, n8n killed', run: runKills },
	held: { title: 'Suspended after a minute, n8n killed', run: runHeld },
	chaos: { title: 'Queue mode, random kills', run: runChaos },
};
const NAMES = Object.keys(PARTS) as Array<keyof typeof PARTS>;

/** The rows that must be zero, whatever is killed: nothing is paid for twice, started twice, or lost. */
const NEVER = ['… out twice', '… twice', '… paid for twice', '… named nowhere'];

const USAGE = `Usage: npx tsx scripts/chaos/main.ts [options]

  --minutes <n>   how long processes are killed at random (default 30)
  --seed <n>      what is started, what goes wrong, and when (default 1)
  --only <names>  these parts, with commas between (default chaos): ${NAMES.join(', ')}
  --quick         small figures: to see that it works; nothing is written

Ends with status 1 where a task was paid for twice, started or came out twice, or is named nowhere.`;

async function main(): Promise<boolean> {
	const values = readOptions(USAGE, {
		minutes: { type: 'string', default: '30' },
		seed: { type: 'string', default: '1' },
		only: { type: 'string', default: 'chaos' },
		quick: { type: 'boolean', default: false },
	});
	const { quick } = values;
	const minutes = wholeNumber('minutes', values.minutes);
	const seed = wholeNumber('seed', values.seed);
	let isWell = true;
	for (const name of partsOf(NAMES, values.only)) {
		const startedAt = Date.now();
		const log: Log = (line) => console.log(`${name}, ${elapsed(startedAt)}: ${line}`);
		log(`seed ${seed}`);
		const { cells, exceptions } = await PARTS[name].run({ minutes, seed, quick }, log);
		const on = new Date().toISOString().slice(0, 10);
		const outcome = { cells: { 'Measured on': on, Seed: seed, ...cells }, exceptions };
		log(JSON.stringify(outcome, undefined, 1));
		isWell &&= NEVER.every((row) => cells[row] === 0);
		if (quick) continue;
		// Another part may have been stored meanwhile.
		writeFileSync(STORED, `${JSON.stringify({ ...stored(), [name]: outcome }, undefined, 2)}\n`);
		await writePage();
	}
	return isWell;
}

const stored = (): Partial<Record<keyof typeof PARTS, Outcome>> =>
	existsSync(STORED) ? (JSON.parse(readFileSync(STORED, 'utf8')) as Record<string, Outcome>) : {};

/** Writes what is stored into the page. */
async function writePage(): Promise<void> {
	const all = stored();
	const columns = NAMES.flatMap((name) => {
		const outcome = all[name];
		return outcome ? [{ title: PARTS[name].title, ...outcome }] : [];
	});
	const rows = Object.keys(columns[0]?.cells ?? {}).map((row) => [
		row,
		...columns.map(({ cells }) => String(cells[row])),
	]);
	const table = await markdownTable(['', ...columns.map(({ title }) => title)], rows);
	const lines = columns.flatMap(({ title, exceptions }) =>
		exceptions.map((line) => `- ${title}: ${line}`),
	);
	writeSection(PAGE, 'campaigns', table);
	writeSection(PAGE, 'exceptions', lines.join('\n') || 'Nothing.');
}

runCommand(main);
