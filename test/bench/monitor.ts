import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { type HeapSnapshot, readHeapSnapshot } from './heapSnapshot';

const FOLDER = resolve(__dirname, '../artefacts/bench');

/** What an n8n must be started with to be asked for its state. */
export const MONITORED = {
	NODE_OPTIONS: `--require ${resolve(__dirname, 'monitor.cjs')}`,
	BENCH_MONITOR: FOLDER,
};

export interface State {
	/** The longest time that the main thread was held up since the last question, ms. */
	blockedMs: number;
	/** Memory in use after the garbage has been collected. */
	bytes: number;
}

/**
 * Asks a process of n8n, which is held up for the moment that it takes.
 *
 * @param pid of a process that was started with `MONITORED`
 */
export async function stateOf(pid: number): Promise<State> {
	return await ask(
		pid,
		'SIGUSR2',
		'json',
		(path) => JSON.parse(readFileSync(path, 'utf8')) as State,
	);
}

/** The same for all that it has in memory, which takes it some seconds. */
export async function heapOf(pid: number): Promise<HeapSnapshot> {
	return await ask(pid, 'SIGWINCH', 'heapsnapshot', (path) => readHeapSnapshot(readFileSync(path)));
}

async function ask<T>(
	pid: number,
	question: NodeJS.Signals,
	ending: string,
	read: (path: string) => T,
): Promise<T> {
	const path = resolve(FOLDER, `${pid}.${ending}`);
	mkdirSync(FOLDER, { recursive: true });
	rmSync(path, { force: true });
	process.kill(pid, question);
	while (!existsSync(path)) await sleep(20);
	try {
		return read(path);
	} finally {
		rmSync(path);
	}
}
