import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { type Collector, withCollector } from '../../test/e2e/collector';
import { inARow, node, Stage, to } from '../../test/e2e/stage';
import { HOUR, MINUTE, SECOND } from '../../test/durations';
import { until } from '../../test/n8n/until';
import { startWith } from './batchWorkflows';
import type { BenchOptions, Log } from './bench';
import { median, type Row, rowOf } from './results';
import { MONITORED, Usage } from './usage';

const ROWS = 1_000;
const QUICK_ROWS = 60;
const PLACES = 10;
const TASK_MS = 30 * SECOND;

/** Of the loop that users build. */
const ROUND = 50;

/** How often n8n is asked for its memory. */
const ASK_MS = 20 * SECOND;

const LONGEST_MS = 3 * HOUR;

interface Measured {
	seconds: number;
	cpuMsEach: number;
	/** In use after the collection of garbage. */
	medianMiB: number;
	mostMiB: number;
}

/**
 * A long batch of an account with few places, three times side by side, each on an n8n of its own: in turns, held to its
 * end, and in the loop that users build for batches that are too long to be held.
 */
export async function measureNight({ quick }: BenchOptions, log: Log): Promise<Row[]> {
	const rows = quick ? QUICK_ROWS : ROWS;
	const night = async (name: string, suspendAfter: number, isLoop = false) =>
		await withCollector(async (collector) => {
			const measured = await measure(collector, rows, { suspendAfter }, isLoop);
			log(`${name}: ${JSON.stringify(measured)}`);
			return measured;
		});
	const [turns, held, loop] = await Promise.all([
		night('in turns', quick ? 1 : 5),
		night('held', 24 * 60),
		night(`a loop of ${ROUND}`, 24 * 60, true),
	]);
	const what = `${rows.toLocaleString('en')} rows, ${PLACES} places`;
	const row = (key: keyof Measured, title: string, unit: string, peers: 'held' | 'loop') => {
		const [name, peer] =
			peers === 'held' ? ['a run that never sleeps', held] : [`a loop of ${ROUND} rows`, loop];
		const id = `night-${peers}-${key}`;
		return rowOf(id, `${what}: ${title}`, unit, [turns[key]], {
			peer: { name, values: [peer[key]] },
			...(key === 'seconds' && {
				limit: { name: 'never a free place', value: (rows * TASK_MS) / PLACES / SECOND },
			}),
		});
	};
	return (['held', 'loop'] as const).flatMap((peers) => [
		row('seconds', 'until all are done', 's', peers),
		row('cpuMsEach', "n8n's CPU a task", 'ms', peers),
		row('medianMiB', 'memory in use, median', 'MiB', peers),
		row('mostMiB', 'memory in use, most', 'MiB', peers),
	]);
}

async function measure(
	collector: Collector,
	rows: number,
	options: IDataObject,
	isLoop: boolean,
): Promise<Measured> {
	const stage = await Stage.open({ env: MONITORED });
	try {
		const { start, pinData } = startWith(Array<number>(rows).fill(TASK_MS));
		const generate = stage.image({ options: { ...options, maxInFlight: PLACES } });
		// One request at the end of the batch.
		const done = { ...collector.node('Done'), executeOnce: true };
		const loop = node(
			'n8n-nodes-base.splitInBatches',
			'Loop',
			{ batchSize: ROUND, options: {} },
			3,
		);
		const wired = isLoop
			? {
					nodes: [start, loop, generate, done],
					connections: {
						[start.name]: { main: to(loop.name) },
						[loop.name]: { main: [...to(done.name), ...to(generate.name)] },
						[generate.name]: { main: to(loop.name) },
					},
				}
			: inARow(start, generate, done);
		const { id } = await stage.client.createWorkflow({ name: 'Night', ...wired, pinData });
		const usage = new Usage(stage.n8n.pid);
		await usage.quiet();
		const [cpu, at] = [usage.cpuMs(), Date.now()];
		await stage.client.run(id);
		const used: number[] = [];
		while (collector.times.length === 0) {
			if (Date.now() - at > LONGEST_MS) throw new Error('The night does not end.');
			await sleep(ASK_MS);
			used.push(await usage.usedMiB());
		}
		const states = [...stage.service.tasks.values()].map(({ record }) => record.state);
		const finished = states.filter((state) => state === 'SUCCESS').length;
		if (states.length !== rows || finished !== rows) {
			throw new Error(`Of ${rows} rows ${states.length} were ordered, and ${finished} finished.`);
		}
		await until('n8n to store the end', MINUTE, async () => {
			return (await stage.client.listExecutions({ status: ['running', 'waiting'] })).length === 0;
		});
		return {
			seconds: ((collector.times[0] ?? NaN) - at) / SECOND,
			cpuMsEach: (usage.cpuMs() - cpu) / rows,
			medianMiB: median(used),
			mostMiB: Math.max(...used),
		};
	} finally {
		await stage.close();
	}
}
