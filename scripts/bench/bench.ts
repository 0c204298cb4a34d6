import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Stage } from '../../test/e2e/stage';
import { runNpm } from '../../test/n8n/npm';
import { WHOLE_MINUTE } from '../../test/n8n/settings';
import { Usage } from './usage';

/** What the benchmark's command line says. */
export interface BenchOptions {
	/** Small batches and few calls: to see that it works, not for figures. */
	quick: boolean;
	/** How many times each figure is measured. */
	runs: number;
	log: (line: string) => void;
}

/** What a part of the benchmark stands on: a real n8n of its own, the service, and what n8n takes of the machine. */
export interface Bench extends BenchOptions {
	stage: Stage;
	usage: Usage;
}

/** Starts an n8n that has this package and the least trigger installed, does something with it, and stops it. */
export async function withBench<T>(
	options: BenchOptions,
	work: (bench: Bench) => Promise<T>,
): Promise<T> {
	const packed = mkdtempSync(join(tmpdir(), 'media-generation-bench-'));
	await runNpm(['pack', '--pack-destination', packed], join(__dirname, 'least-trigger'));
	const tarballs = readdirSync(packed).map((name) => join(packed, name));
	const stage = await Stage.open({ env: WHOLE_MINUTE, furtherTarballs: tarballs }).finally(() =>
		rmSync(packed, { recursive: true, force: true }),
	);
	try {
		return await work({ ...options, stage, usage: new Usage(stage.n8n.pid) });
	} finally {
		await stage.close();
	}
}
