import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { installPackage, MAX_TARBALL_KIB, packPackage } from '../n8n/package';
import { startN8n } from '../n8n/process';
import type { BenchOptions } from './options';
import { limitOf, type Row, rowsBeside, rowsOf } from './results';
import { Usage } from './usage';

interface Start {
	seconds: number;
	cpuSeconds: number;
	memoryMiB: number;
}

/** What the package adds to n8n's start, and its size. */
export async function measureStartup(
	options: BenchOptions,
	log: (line: string) => void,
): Promise<Row[]> {
	const { tarball, sizeBytes } = await packPackage({ log });
	const folders = { with: newFolder(), without: newFolder() };
	try {
		await installPackage(folders.with, tarball);
		// The first start in a folder makes the database.
		for (const folder of Object.values(folders)) await start(folder);
		const starts: Record<keyof typeof folders, Start[]> = { with: [], without: [] };
		for (let run = 1; run <= options.runs; run++) {
			for (const which of ['without', 'with'] as const) {
				const one = await start(folders[which]);
				starts[which].push(one);
				log(`start ${run}, ${which} the package: ${one.cpuSeconds.toFixed(2)} s of CPU`);
			}
		}
		const rowOf = rowsOf('startup');
		const row = rowsBeside(rowOf, starts.with, 'n8n without the package', starts.without);
		const largest = limitOf('the most it may be', MAX_TARBALL_KIB);
		return [
			row('time', 'Start of n8n', 's', ({ seconds }) => seconds),
			row('cpu', 'Start of n8n: its CPU', 's', ({ cpuSeconds }) => cpuSeconds),
			row('memory', 'Start of n8n: its memory', 'MiB', ({ memoryMiB }) => memoryMiB),
			rowOf('tarball', 'The packed package', 'KiB', sizeBytes / 1024, largest),
		];
	} finally {
		for (const folder of Object.values(folders)) rmSync(folder, { recursive: true, force: true });
	}
}

const newFolder = () => mkdtempSync(join(tmpdir(), 'media-generation-start-'));

async function start(userFolder: string): Promise<Start> {
	const n8n = await startN8n({ userFolder });
	const usage = new Usage(n8n.pid);
	const measured = {
		seconds: n8n.startedInMs / 1000,
		cpuSeconds: usage.cpuMs() / 1000,
		memoryMiB: usage.residentMiB(),
	};
	await n8n.stop();
	return measured;
}
