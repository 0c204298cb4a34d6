import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { withCollector } from '../../test/e2e/collector';
import { Stage } from '../../test/e2e/stage';
import { finish } from './batch';
import { oursFor } from './batchWorkflows';
import { type BenchOptions, call, type Log } from './bench';
import { openOurs } from './callback';
import { type Row, rowOf } from './results';
import { growth, median } from './statistics';
import { MINUTE } from '../../test/durations';

/** Until n8n has loaded what it needs, and V8 has compiled what runs often. */
const WARM_MINUTES = 3;

/** Of every minute: a batch that is waited for, and callbacks that each start a workflow. */
const BATCH = Array.from({ length: 20 }, (_, index) => 500 + index * 200);
const CALLBACKS = 60;
const PAUSE_MS = 500;

const STATES = resolve(__dirname, '../../test/artefacts/bench');

/** What an n8n must be started with to be asked for its memory. */
const MONITORED = {
	NODE_OPTIONS: `--require ${resolve(__dirname, 'monitor.cjs')}`,
	BENCH_MONITOR: STATES,
};

/** What one minute of the soak came to. */
interface SoakMinute {
	/** Median until a callback is answered. */
	answerMs: number;
	/** Rows in which the trigger remembers tasks. */
	rows: number;
	/** The memory in use of each process of n8n, MiB. */
	used: Record<string, number>;
}

/** The same load minute by minute in queue mode: what grows, and whether anything becomes slower. */
export async function measureSoak({ minutes: count }: BenchOptions, log: Log): Promise<Row[]> {
	if (count < WARM_MINUTES + 3) {
		throw new Error(`The soak takes ${WARM_MINUTES + 3} minutes at least.`);
	}
	mkdirSync(STATES, { recursive: true });
	const stage = await Stage.openInQueueMode({ env: MONITORED, workers: 1, webhooks: 1 });
	try {
		return await withCollector(async (collector) => {
			const { workflowId, url } = await openOurs(stage);
			const batch = await stage.client.createWorkflow(oursFor(stage, collector, BATCH));
			const minutes: SoakMinute[] = [];
			while (minutes.length < count) {
				const endsAt = Date.now() + MINUTE;
				const running = await stage.client.run(batch.id);
				const answers: number[] = [];
				for (const taskId of stage.finishedTasks(CALLBACKS)) {
					answers.push(await call(url, taskId));
					await sleep(PAUSE_MS);
				}
				await finish(stage.client, batch.id, [running]);
				await stage.cluster.settle(workflowId);
				const [rows] = stage.cluster.query('select count(*) from processed_data');
				const used = {
					'main process': await usedMiB(stage.n8n.pid),
					'webhook processor': await usedMiB(stage.receiver.pid),
					worker: await usedMiB(stage.runner.pid),
				};
				minutes.push({ answerMs: median(answers), rows: Number(rows), used });
				log(`soak: ${JSON.stringify(minutes.at(-1))}`);
				stage.service.clear();
				collector.reset();
				await sleep(Math.max(0, endsAt - Date.now()));
			}
			return rowsOf(minutes);
		});
	} finally {
		await stage.close();
	}
}

function rowsOf(minutes: SoakMinute[]): Row[] {
	const warm = minutes.slice(WARM_MINUTES);
	const third = Math.floor(warm.length / 3);
	const [early = NaN, late = NaN] = [warm.slice(0, third), warm.slice(-third)].map((some) =>
		median(some.map(({ answerMs }) => answerMs)),
	);
	const callbacks = minutes.length * CALLBACKS;
	return [
		rowOf('soak-minutes', 'How long', 'min', [minutes.length]),
		rowOf('soak-ledger', 'What the trigger keeps', 'rows', [minutes.at(-1)?.rows ?? NaN], {
			limit: { name: 'one a callback', value: callbacks },
		}),
		rowOf('soak-answer', 'A callback until its answer, the last third', 'ms', [late], {
			limit: { name: 'the first third', value: early },
		}),
		...Object.keys(warm[0]?.used ?? {}).map((name) => {
			const values = warm.map(({ used }) => used[name] ?? NaN);
			const what = `The ${name}: growth a minute of the memory in use`;
			return rowOf(`soak-${name.replaceAll(' ', '-')}-growth`, what, 'MiB', [growth(values)]);
		}),
	];
}

/** Asks a process of n8n that was started with `MONITORED`; it is held up for the moment that it takes. */
async function usedMiB(pid: number): Promise<number> {
	const path = resolve(STATES, `${pid}.txt`);
	rmSync(path, { force: true });
	process.kill(pid, 'SIGUSR2');
	while (!existsSync(path)) await sleep(20);
	const bytes = Number(readFileSync(path, 'utf8'));
	rmSync(path);
	return bytes / 2 ** 20;
}
