import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { installPackage, packPackage } from '../../test/n8n/package';
import { startN8n } from '../../test/n8n/process';
import type { BenchOptions, Log } from './bench';
import { type Row, rowOf } from './results';
import { Usage } from './usage';

/** What the package adds to n8n's start. */
export async function measureStartup({ runs }: BenchOptions, log: Log): Promise<Row[]> {
	const { tarball } = await packPackage();
	const newFolder = () => mkdtempSync(join(tmpdir(), 'media-generation-start-'));
	const folders = { with: newFolder(), without: newFolder() };
	try {
		await installPackage(folders.with, tarball);
		// The first start in a folder makes the database.
		for (const folder of Object.values(folders)) await start(folder);
		const starts = { with: [] as Start[], without: [] as Start[] };
		for (let run = 1; run <= runs; run++) {
			for (const which of ['without', 'with'] as const) {
				const one = await start(folders[which]);
				starts[which].push(one);
				log(`start ${run}, ${which} the package: ${JSON.stringify(one)}`);
			}
		}
		const row = (id: string, what: string, unit: string, key: 'seconds' | 'memoryMiB') => {
			const valuesOf = (all: Start[]) => all.map((one) => one[key]);
			const peer = { name: 'n8n without the package', values: valuesOf(starts.without) };
			return rowOf(`startup-${id}`, what, unit, valuesOf(starts.with), { peer });
		};
		return [
			row('time', 'Start of n8n', 's', 'seconds'),
			row('memory', 'Start of n8n: its memory', 'MiB', 'memoryMiB'),
		];
	} finally {
		for (const folder of Object.values(folders)) rmSync(folder, { recursive: true, force: true });
	}
}

type Start = Awaited<ReturnType<typeof start>>;

async function start(userFolder: string) {
	const n8n = await startN8n({ userFolder });
	const memoryMiB = new Usage(n8n.pid).residentMiB();
	await n8n.stop();
	return { seconds: n8n.startedInMs / 1000, memoryMiB };
}
