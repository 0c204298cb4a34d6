import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Bench } from './bench';

const FOLDER = resolve(__dirname, '../artefacts/bench');
const FILE = resolve(FOLDER, 'monitor.json');

/** What an n8n must be started with to be asked for its state. */
export const MONITORED = {
	NODE_OPTIONS: `--require ${resolve(__dirname, 'monitor.cjs')}`,
	BENCH_MONITOR: FILE,
};

export interface State {
	/** The longest time that the main thread was held up since the last question, ms. */
	blockedMs: number;
	/** Memory in use after the garbage has been collected. */
	bytes: number;
}

/** Asks n8n, which is held up for the moment that it takes. */
export async function stateOf({ stage }: Bench): Promise<State> {
	mkdirSync(FOLDER, { recursive: true });
	rmSync(FILE, { force: true });
	process.kill(stage.n8n.pid, 'SIGUSR2');
	while (!existsSync(FILE)) await sleep(20);
	return JSON.parse(readFileSync(FILE, 'utf8')) as State;
}
