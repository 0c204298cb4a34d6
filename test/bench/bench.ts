import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { INode } from 'n8n-workflow';

import { inARow, Stage } from '../e2e/stage';
import { runNpm } from '../n8n/npm';
import { WHOLE_MINUTE } from '../n8n/settings';
import { Usage } from './usage';

/** The latency of a task that does not finish by itself, ms. */
export const FOREVER_MS = 24 * 3_600_000;

const AT_ONCE = 10;

/** What the benchmark's command line says. */
export interface BenchOptions {
	/** Small batches and few calls: to see that it works, not for figures. */
	quick: boolean;
	/** How many times each figure is measured. */
	runs: number;
	/** How long the soak takes. */
	minutes: number;
}

export type Log = (line: string) => void;

/** What every part of the benchmark stands on: a real n8n of its own, the service, and what n8n takes of the machine. */
export interface Bench {
	stage: Stage;
	usage: Usage;
	options: BenchOptions;
	log: Log;
}

/** Starts an n8n that has this package and the least trigger installed, does something with it, and stops it. */
export async function withBench<T>(
	options: BenchOptions,
	log: Log,
	work: (bench: Bench) => Promise<T>,
): Promise<T> {
	const packed = mkdtempSync(join(tmpdir(), 'media-generation-bench-'));
	try {
		await runNpm(['pack', '--pack-destination', packed], join(__dirname, 'least-trigger'));
		const tarballs = readdirSync(packed).map((name) => join(packed, name));
		const stage = await Stage.open(WHOLE_MINUTE, undefined, tarballs);
		try {
			return await work({ stage, usage: new Usage(stage.n8n.pid), options, log });
		} finally {
			await stage.close();
		}
	} finally {
		rmSync(packed, { recursive: true, force: true });
	}
}

/**
 * Publishes a workflow that calls start.
 *
 * @param path of its trigger's address
 * @param behind the nodes behind the trigger
 * @returns its id
 */
export async function publish(
	{ client }: Stage,
	trigger: INode,
	path: string,
	behind: INode[],
): Promise<string> {
	const { name } = trigger;
	const { id } = await client.createWorkflow({ name, ...inARow(trigger, ...behind) });
	await client.publish(id, [path]);
	return id;
}

/** @returns milliseconds until the answer @throws where it is not 200 */
export async function call(url: string, taskId?: string): Promise<number> {
	const startedAt = performance.now();
	const response = await fetch(url, {
		method: 'POST',
		headers: { 'content-type': 'application/json' },
		body: JSON.stringify({ taskId }),
	});
	await response.arrayBuffer();
	if (response.status !== 200) throw new Error(`${url} answered ${response.status}.`);
	return performance.now() - startedAt;
}

/** Calls an address so often, at most ten calls at once. */
export async function callOften(url: string, taskIds: Array<string | undefined>): Promise<void> {
	const queue = taskIds.values();
	const callInTurn = async () => {
		for (const taskId of queue) await call(url, taskId);
	};
	await Promise.all(Array.from({ length: AT_ONCE }, callInTurn));
}
