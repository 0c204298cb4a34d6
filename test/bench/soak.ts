import { linearRegression, median } from 'simple-statistics';
import { setTimeout as sleep } from 'node:timers/promises';

import { Collector } from '../e2e/collector';
import { finish, oursFor } from './batch';
import type { Bench } from './bench';
import { callOneByOne, finishedTasks, openEntrances } from './callback';
import { stateOf } from './monitor';
import { type Row, sampleOf } from './results';

const MINUTE = 60_000;
const MIB = 1024 ** 2;

/** Until n8n has loaded what it needs, and V8 has compiled what runs often. */
const WARM_MINUTES = 3;

/** Of every minute: a batch that is waited for, and callbacks that each start a workflow. */
const BATCH = Array.from({ length: 20 }, (_, index) => 500 + index * 200);
const CALLBACKS = 40;
const PAUSE_MS = 500;

/** One minute of the soak. */
export interface SoakMinute {
	/** Minutes since the start. */
	at: number;
	/** Memory in use after the garbage has been collected, MiB. */
	usedMiB: number;
	/** What the process holds of the machine's memory, MiB. */
	residentMiB: number;
	/** Median until a callback is answered, ms. */
	answerMs: number;
}

/** The same load minute by minute, for as long as is asked for: what grows, and whether anything becomes slower. */
export async function measureSoak(bench: Bench): Promise<Row[]> {
	const { stage, usage, options, log } = bench;
	const collector = await Collector.open();
	const minutes: SoakMinute[] = [];
	try {
		const { ours } = await openEntrances(bench);
		const batch = await stage.client.createWorkflow(oursFor(bench, collector, BATCH));
		const startedAt = performance.now();
		while (performance.now() - startedAt < options.minutes * MINUTE) {
			const endsAt = performance.now() + MINUTE;
			const running = await stage.client.run(batch.id);
			const tasks = finishedTasks(bench, CALLBACKS);
			const { answerMs } = await callOneByOne(bench, ours.url, tasks, 200, PAUSE_MS);
			await finish(stage.client, batch.id, [running]);
			await usage.quiet();
			minutes.push({
				at: (performance.now() - startedAt) / MINUTE,
				usedMiB: (await stateOf(bench)).bytes / MIB,
				residentMiB: usage.residentMiB(),
				answerMs,
			});
			log(`soak: ${JSON.stringify(minutes.at(-1))}`);
			stage.service.clear();
			collector.reset();
			await sleep(Math.max(0, endsAt - performance.now()));
		}
	} finally {
		collector.close();
	}
	return rowsOf(minutes);
}

/** @throws where there are too few minutes to tell a growth from */
function rowsOf(minutes: readonly SoakMinute[]): Row[] {
	const warm = minutes.filter(({ at }) => at > WARM_MINUTES);
	const third = Math.floor(warm.length / 3);
	if (third === 0) throw new Error(`The soak takes more than ${WARM_MINUTES + 3} minutes.`);
	const first = warm.slice(0, third);
	const last = warm.slice(-third);
	const growth = (of: (minute: SoakMinute) => number) =>
		linearRegression(warm.map((minute) => [minute.at, of(minute)])).m;
	const row = (id: string, what: string, unit: string, value: number, more = {}): Row => ({
		id: `soak-${id}`,
		what,
		unit,
		ours: sampleOf([value]),
		...more,
	});
	const answers = (some: SoakMinute[]) => median(some.map(({ answerMs }) => answerMs));
	return [
		row('minutes', 'How long', 'min', minutes.length),
		row('callbacks', 'Callbacks that started a workflow', '', minutes.length * CALLBACKS),
		row('tasks', 'Tasks of batches', '', minutes.length * BATCH.length),
		row('used', 'Memory in use at the end, garbage collected', 'MiB', warm.at(-1)?.usedMiB ?? NaN, {
			limit: { name: `after ${WARM_MINUTES} min`, value: warm[0]?.usedMiB ?? NaN },
		}),
		row(
			'growth',
			'Memory in use, growth a minute',
			'MiB',
			growth(({ usedMiB }) => usedMiB),
		),
		row(
			'resident',
			'Memory of the process, growth a minute',
			'MiB',
			growth(({ residentMiB }) => residentMiB),
		),
		row('answer', 'A callback until its answer, the last third', 'ms', answers(last), {
			limit: { name: 'the first third', value: answers(first) },
		}),
	];
}
