import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { INode } from 'n8n-workflow';

import { deliver, inARow, Stage } from '../../test/e2e/stage';
import { runNpm } from '../../test/n8n/npm';
import { WHOLE_MINUTE } from '../../test/n8n/settings';
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
	await runNpm(['pack', '--pack-destination', packed], join(__dirname, 'least-trigger'));
	const tarballs = readdirSync(packed).map((name) => join(packed, name));
	const stage = await Stage.open({ env: WHOLE_MINUTE, furtherTarballs: tarballs }).finally(() =>
		rmSync(packed, { recursive: true, force: true }),
	);
	try {
		return await work({ stage, usage: new Usage(stage.n8n.pid), options, log });
	} finally {
		await stage.close();
	}
}

/**
 * Publishes a workflow that calls start.
 *
 * @param path of the webhook, where the trigger has one beside its id
 * @returns its id, and where it is called
 */
export async function publish(
	{ client, webhookUrl }: Stage,
	trigger: INode,
	behind: INode[],
	path?: string,
) {
	const address = path ? client.webhookPath(trigger, path) : `/webhook/${trigger.webhookId}`;
	const workflow = { name: trigger.name, ...inARow(trigger, ...behind) };
	const { id: workflowId } = await client.createWorkflow(workflow);
	await client.publish(workflowId, [address]);
	return { workflowId, url: webhookUrl + address };
}

/** @returns milliseconds until the answer @throws where it is not 200 */
export async function call(url: string, taskId?: string): Promise<number> {
	const startedAt = performance.now();
	const response = await deliver(url, { taskId });
	const body = await response.text();
	if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${body}`);
	return performance.now() - startedAt;
}

/** Calls an address for each of some tasks, or so many times; at most ten calls at once. */
export async function callOften(url: string, tasks: string[] | number): Promise<void> {
	const queue = Array.from(typeof tasks === 'number' ? { length: tasks } : tasks).values();
	const callInTurn = async () => {
		for (const taskId of queue) await call(url, taskId);
	};
	await Promise.all(Array.from({ length: AT_ONCE }, callInTurn));
}
