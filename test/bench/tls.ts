import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackUrl';
import { Collector } from '../e2e/collector';
import { inARow, node } from '../e2e/stage';
import { latenciesOf, measureRun, oursFor } from './batch';
import { type Bench, withBench } from './bench';
import { callOneByOne, finishedTasks } from './callback';
import { keepAliveBefore, makeCertificate, networkBefore, tlsBefore, type Way } from './network';
import type { BenchOptions } from './options';
import { type Row, sampleOf } from './results';

const ROUND_TRIP_MS = 40;

const BATCH = 200;
const CALLS = 30;
const QUICK = { batch: 20, calls: 5 };

/** Lets n8n run the workflow that the call started, before the next call. */
const PAUSE_MS = 150;

/** The ways from n8n to the service. */
const NAMES = {
	near: 'plain HTTP on the same machine',
	plain: `plain HTTP, ${ROUND_TRIP_MS} ms away`,
	tls: `HTTPS, ${ROUND_TRIP_MS} ms away`,
	kept: 'a proxy beside n8n that keeps its connections',
};
type Kind = keyof typeof NAMES;

interface Measured {
	batchSeconds: number;
	batchCpuMs: number;
	callbackMs: number;
	callbackCpuMs: number;
	/** Connections to the far end, for each request of the batch. */
	connectionsEach: number;
}

/**
 * What a new connection for each request costs where the service is away and speaks TLS, and what it would be if
 * connections were kept.
 */
export async function measureTls(options: BenchOptions, log: Bench['log']): Promise<Row[]> {
	const folder = mkdtempSync(join(tmpdir(), 'media-generation-tls-'));
	try {
		const files = makeCertificate(folder);
		const env = { NODE_EXTRA_CA_CERTS: files.certificateFile };
		return await withBench(options, log, env, async (bench) => {
			const servicePort = Number(new URL(bench.stage.service.url).port);
			const tls = await tlsBefore(servicePort, files);
			const far = {
				plain: await networkBefore(servicePort, ROUND_TRIP_MS),
				tls: await networkBefore(tls.port, ROUND_TRIP_MS),
			};
			const kept = await keepAliveBefore(far.tls.port, files.certificateFile);
			const url = (protocol: string, port: number) => `${protocol}://127.0.0.1:${port}`;
			const urls: Record<Kind, string> = {
				near: bench.stage.service.url,
				plain: url('http', far.plain.port),
				tls: url('https', far.tls.port),
				kept: url('http', kept.port),
			};
			const ways: Partial<Record<Kind, Way>> = { ...far, kept: far.tls };
			try {
				return await measureAll(bench, urls, ways);
			} finally {
				for (const way of [kept, ...Object.values(far), tls]) way.close();
			}
		});
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

async function measureAll(
	bench: Bench,
	urls: Record<Kind, string>,
	ways: Partial<Record<Kind, Way>>,
): Promise<Row[]> {
	const { stage, options, log } = bench;
	const size = options.quick ? QUICK.batch : BATCH;
	const calls = options.quick ? QUICK.calls : CALLS;
	const kinds = Object.keys(NAMES) as Kind[];
	const measured = Object.fromEntries(kinds.map((kind) => [kind, []])) as unknown as Record<
		Kind,
		Measured[]
	>;
	const collector = await Collector.open();
	try {
		const targets = [];
		for (const kind of kinds) {
			const { id, name } = await stage.client.createCredential(kind, 'mediaGenerationApi', {
				baseUrl: urls[kind],
				apiKey: stage.service.apiKey,
			});
			const credentials = { mediaGenerationApi: { id, name } };
			const batch = oursFor(bench, collector, latenciesOf(size));
			const nodes = batch.nodes.map((each) => (each.credentials ? { ...each, credentials } : each));
			const trigger = stage.mediaNode('mediaGenerationTrigger', 'Trigger', {}, { credentials });
			const after = node('n8n-nodes-base.noOp', 'After', {});
			const lane = await stage.client.createWorkflow({ name: kind, ...inARow(trigger, after) });
			const path = stage.client.webhookPath(trigger, 'callback');
			await stage.client.publish(lane.id, [path]);
			const callback = callbackAddress(stage.n8n.url + path, stage.service.apiKey);
			const { id: batchId } = await stage.client.createWorkflow({ ...batch, nodes });
			targets.push({ kind, batchId, callback });
			// The first calls are slower than all later ones.
			await callOneByOne(bench, callback, finishedTasks(bench, 5), 200, PAUSE_MS);
		}
		for (let run = 1; run <= options.runs; run++) {
			for (const { kind, batchId, callback } of run % 2 === 1 ? targets : targets.toReversed()) {
				const before = ways[kind]?.connections() ?? 0;
				const { seconds, cpuMsEach, requestsEach } = await measureRun(
					bench,
					collector,
					batchId,
					size,
				);
				const connections = (ways[kind]?.connections() ?? 0) - before;
				const tasks = finishedTasks(bench, calls);
				const { answerMs, cpuMs } = await callOneByOne(bench, callback, tasks, 200, PAUSE_MS);
				const one: Measured = {
					batchSeconds: seconds,
					batchCpuMs: cpuMsEach,
					callbackMs: answerMs,
					callbackCpuMs: cpuMs,
					connectionsEach: connections / (requestsEach * size),
				};
				measured[kind].push(one);
				log(`${NAMES[kind]}, run ${run}: ${JSON.stringify(one)}`);
			}
		}
	} finally {
		collector.close();
	}
	const rows = (id: string, what: string, unit: string, figure: (one: Measured) => number): Row[] =>
		(['near', 'plain', 'kept'] as const).map((peer) => ({
			id: `tls-${id}-${peer}`,
			what,
			unit,
			ours: sampleOf(measured.tls.map(figure)),
			peer: { name: NAMES[peer], sample: sampleOf(measured[peer].map(figure)) },
		}));
	return [
		...rows('batch-time', `Batch of ${size}: until all are done`, 's', (one) => one.batchSeconds),
		...rows('batch-cpu', `Batch of ${size}: n8n's CPU a task`, 'ms', (one) => one.batchCpuMs),
		...rows(
			'batch-connections',
			`Batch of ${size}: connections a request`,
			'',
			(one) => one.connectionsEach,
		),
		...rows('callback-time', 'Callback until its answer', 'ms', (one) => one.callbackMs),
		...rows('callback-cpu', "n8n's CPU a callback", 'ms', (one) => one.callbackCpuMs),
	];
}
