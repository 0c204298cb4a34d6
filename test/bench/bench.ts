import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Stage } from '../e2e/stage';
import { runNpm } from '../n8n/npm';
import { WHOLE_MINUTE } from '../n8n/settings';
import { startService } from '../service/service';
import type { BenchOptions } from './options';
import { Usage } from './usage';

/** The latency of a task that does not finish by itself, ms. */
export const FOREVER_MS = 24 * 3_600_000;

/** What every part of the benchmark stands on: a real n8n of its own, the service, and what n8n takes of the machine. */
export interface Bench {
	stage: Stage;
	usage: Usage;
	options: BenchOptions;
	log: (line: string) => void;
}

/**
 * Starts an n8n that has this package and the least trigger installed, does something with it, and stops it.
 *
 * @param account.credits what the service lets be spent, where that is more than usual
 */
export async function withBench<T>(
	options: BenchOptions,
	log: Bench['log'],
	env: Record<string, string>,
	work: (bench: Bench) => Promise<T>,
	{ credits }: { credits?: number } = {},
): Promise<T> {
	const packed = mkdtempSync(join(tmpdir(), 'media-generation-bench-'));
	try {
		await runNpm(['pack', '--pack-destination', packed], join(__dirname, 'least-trigger'));
		const service = credits === undefined ? undefined : await startService({ credits });
		const stage = await Stage.open(
			{ ...WHOLE_MINUTE, ...env },
			service,
			readdirSync(packed).map((name) => join(packed, name)),
		);
		try {
			return await work({ stage, usage: new Usage(stage.n8n.pid), options, log });
		} finally {
			await stage.close();
			await service?.close();
		}
	} finally {
		rmSync(packed, { recursive: true, force: true });
	}
}
