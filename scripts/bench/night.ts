import { SECOND } from '../../test/durations';
import { withCollector } from '../../test/e2e/collector';
import { Stage } from '../../test/e2e/stage';
import { WHOLE_MINUTE } from '../../test/n8n/settings';
import { runToEnd } from './batch';
import { oursFor } from './batchWorkflows';
import type { BenchOptions } from './bench';
import { type Row, rowOf } from './results';

const ROWS = 1_000;
const QUICK_ROWS = 60;
const PLACES = 10;
const TASK_MS = 30 * SECOND;

/** A long batch of an account with few places, in turns and held to its end, side by side, each on an n8n of its own. */
export async function measureNight({ quick, log }: BenchOptions): Promise<Row[]> {
	const rows = quick ? QUICK_ROWS : ROWS;
	const night = async (name: string, suspendAfter: number) =>
		await withCollector(async (collector) => {
			const stage = await Stage.open({ env: WHOLE_MINUTE });
			try {
				const options = { suspendAfter, maxInFlight: PLACES };
				const workflow = oursFor(stage, collector, Array(rows).fill(TASK_MS), options);
				const seconds = await runToEnd(stage, collector, workflow, rows);
				log(`${name}: ${seconds} s`);
				return seconds;
			} finally {
				await stage.close();
			}
		});
	const [turns, held] = await Promise.all([
		night('in turns', quick ? 1 : 5),
		night('held', 24 * 60),
	]);
	const what = `${rows.toLocaleString('en')} rows, ${PLACES} places: until all are done`;
	const limit = { name: 'never a free place', value: (rows * TASK_MS) / PLACES / SECOND };
	return [
		rowOf(what, 's', [turns], { peer: { name: 'a run that never sleeps', values: [held] }, limit }),
	];
}
