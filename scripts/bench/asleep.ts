import { setTimeout as sleep } from 'node:timers/promises';

import { withCollector } from '../../test/e2e/collector';
import { webhook } from '../../test/e2e/stage';
import { MINUTE, SECOND } from '../../test/durations';
import { until } from '../../test/n8n/until';
import { type Bench, callOften, FOREVER_MS, publish } from './bench';
import { type Row, rowOf } from './results';
import { Usage } from './usage';

const SLEEPERS = 1_000;
const QUICK_SLEEPERS = 100;
const MINUTES = 60;
const QUICK_MINUTES = 3;

/** How long n8n's idle time is measured. */
const IDLE_MS = 30 * SECOND;

const GROUP = 100;

const LOOK_MS = 500;
const LONGEST_MS = 30 * MINUTE;

/** Many runs of one task each that sleep while nothing ends; then n8n is off until all are due, with their tasks ended. */
export async function measureAsleep(bench: Bench): Promise<Row[]> {
	return await withCollector(async (collector) => {
		const { stage, options, log } = bench;
		const count = options.quick ? QUICK_SLEEPERS : SLEEPERS;
		const minutes = options.quick ? QUICK_MINUTES : MINUTES;
		await bench.usage.quiet();
		const idle = bench.usage.cpuMs();
		await sleep(IDLE_MS);
		const idlePart = (bench.usage.cpuMs() - idle) / IDLE_MS;
		const generate = stage.image({
			prompt: 'A lighthouse',
			downloadResults: true,
			options: { suspendAfter: 0, additionalInput: undefined },
		});
		const { url } = await publish(stage, webhook('Start: sleepers'), [generate, collector.node()]);
		stage.service.configure({ latencyMs: FOREVER_MS });
		// In groups that are asleep before the next group begins: n8n wakes all that are due at once.
		for (let begun = 0; begun < count; begun += GROUP) {
			await callOften(url, Math.min(GROUP, count - begun));
			const created = () => stage.service.tasks.size === Math.min(begun + GROUP, count);
			await until(`${begun + GROUP} tasks`, LONGEST_MS, created);
		}
		await bench.usage.quiet();
		log(`${count} runs sleep for ${minutes} minutes …`);
		const [cpu, at] = [bench.usage.cpuMs(), Date.now()];
		const asleep = await mostOf(bench.usage, () => Date.now() - at >= minutes * MINUTE);
		const core = 100 * ((bench.usage.cpuMs() - cpu) / (Date.now() - at) - idlePart);
		log(`${core.toFixed(1)} % of a core beyond n8n's idle time, ${asleep.toFixed(0)} MiB at most`);

		await stage.kill();
		for (const taskId of stage.service.tasks.keys()) stage.service.complete(taskId);
		const now = new Date().toISOString().replace('T', ' ').replace('Z', '');
		await stage.database.execute(
			`update execution_entity set "waitTill" = '${now}' where status = 'waiting'`,
		);
		const startedAt = Date.now();
		await stage.restart();
		await until(`${count} ends`, LONGEST_MS, () => collector.times.length >= count);
		const due = new Usage(stage.n8n.pid).mostResidentMiB();
		const seconds = (Math.max(...collector.times) - startedAt) / SECOND;
		log(
			`all due at once: ${seconds.toFixed(0)} s until all are out, ${due.toFixed(0)} MiB at most`,
		);
		const name = `${count.toLocaleString('en')} runs asleep`;
		return [
			rowOf('asleep-core', `${name}, ${minutes} minutes: part of a core`, '%', [core]),
			rowOf('asleep-memory', `${name}, ${minutes} minutes: most memory`, 'MiB', [asleep]),
			rowOf('asleep-due-memory', `${name}, all due at n8n's start: most memory`, 'MiB', [due]),
			rowOf('asleep-due-time', `${name}, all due at n8n's start: until all are out`, 's', [
				seconds,
			]),
		];
	});
}

/** @returns the most memory until something has come to pass, MiB */
async function mostOf(usage: Usage, isOver: () => boolean): Promise<number> {
	let most = 0;
	while (!isOver()) {
		most = Math.max(most, usage.residentMiB());
		await sleep(LOOK_MS);
	}
	return most;
}
