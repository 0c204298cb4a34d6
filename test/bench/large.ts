import { setTimeout as sleep } from 'node:timers/promises';
import type { INode, INodeParameters } from 'n8n-workflow';

import { type Collector, withCollector } from '../e2e/collector';
import { inARow, node } from '../e2e/stage';
import { finish, timeRun } from './batch';
import { bestPossible } from './batchFigures';
import { oursFor, startWith } from './batchWorkflows';
import { type Bench, FOREVER_MS } from './bench';
import { openWebhook } from './entrances';
import { stateOf } from './monitor';
import { PING_EVERY_MS, Pings } from './pings';
import { limitOf, peerOf, type Row, rowsOf } from './results';

const POLLED = 10_000;
const RETURNED = 50_000;
const QUICK = { awaited: 300, returned: 600 };

const MAX_IN_FLIGHT = 500;

const KIB = 1024;

/** How long the tasks take: 2 to 20 s, evenly, in an order that has no order. */
const latenciesOf = (size: number) =>
	Array.from({ length: size }, (_, index) => 2000 + ((index * 7919) % 18_001));

/** What one run took. */
interface Measured {
	seconds: number;
	cpuMsEach: number;
	/** The most memory during the run above what it was before, garbage and all, KiB a task. */
	peakKibEach: number;
}

/** What one run held of the memory, and how it held others up. */
interface Watched {
	/** With the node at work, all but a few tasks done: memory in use above before, KiB a task. */
	insideKibEach?: number;
	/** With the items handed on. */
	behindKibEach: number;
	/** The longest time that another workflow's webhook took to answer, above the same without a batch. */
	pingMs: number;
	/** The longest time that the main thread was held up, by n8n's own watch. */
	blockedMs: number;
}

/**
 * Batches of ten thousand and more: the time, what they take of n8n, and what the rest of n8n notices. The peer is the
 * same items through n8n's own Edit Fields, which makes items of the same form at once: what they cost n8n itself.
 */
export async function measureLarge(bench: Bench): Promise<Row[]> {
	const { quick } = bench.options;
	return await withCollector(async (collector) => {
		const webhook = await openWebhook(bench.stage, 'Webhook');
		const awaited = await measureBatch(bench, collector, webhook.url, {
			size: quick ? QUICK.awaited : POLLED,
			completion: 'wait',
		});
		const returned = await measureBatch(bench, collector, webhook.url, {
			size: quick ? QUICK.returned : RETURNED,
			completion: 'return',
		});
		return [...awaited, ...returned];
	});
}

async function measureBatch(
	bench: Bench,
	collector: Collector,
	pingUrl: string,
	{ size, completion }: { size: number; completion: 'wait' | 'return' },
): Promise<Row[]> {
	const { stage, log, options } = bench;
	const isAwaited = completion === 'wait';
	const latencies = isAwaited ? latenciesOf(size) : Array.from({ length: size }, () => FOREVER_MS);
	const given = { maxInFlight: MAX_IN_FLIGHT, completion };
	const oursNode = oursFor(bench, collector, latencies, given);
	const start = (await stage.client.createWorkflow(oursNode)).id;
	const asPeer = (...behind: INode[]) => {
		const { start: first, pinData } = startWith(latencies);
		return { name: `Items: ${size}`, ...inARow(first, sameItems(isAwaited), ...behind), pinData };
	};
	const peer = await stage.client.createWorkflow(
		asPeer({ ...collector.node('Done'), executeOnce: true }),
	);
	const barrier: INode = { ...collector.barrierNode(), executeOnce: true };
	const watchedOurs = oursFor(bench, collector, latencies, { ...given, before: barrier });
	const ids = {
		ours: start,
		peer: peer.id,
		watchedOurs: (await stage.client.createWorkflow(watchedOurs)).id,
		watchedPeer: (await stage.client.createWorkflow(asPeer(barrier, collector.node('Done')))).id,
	};
	log(`${size} items, ${completion} …`);
	const ours = await measureRun(bench, collector, ids.ours, size);
	log(`${size} items, ours: ${JSON.stringify(ours)}`);
	const theirs = await measureRun(bench, collector, ids.peer, size);
	log(`${size} items, Edit Fields: ${JSON.stringify(theirs)}`);
	const oursWatched = await watchRun(bench, collector, ids.watchedOurs, size, pingUrl, true);
	log(`${size} items, ours, watched: ${JSON.stringify(oursWatched)}`);
	const peerWatched = await watchRun(bench, collector, ids.watchedPeer, size, pingUrl, false);
	log(`${size} items, Edit Fields, watched: ${JSON.stringify(peerWatched)}`);

	const name = `${size.toLocaleString('en')} items, ${isAwaited ? 'waited for' : 'Return Immediately'}`;
	const row = rowsOf(`large-${options.quick ? 'quick' : size}`, name);
	const same = (value: number) => peerOf('the same items through Edit Fields', value);
	const limit =
		isAwaited &&
		limitOf(`${MAX_IN_FLIGHT} at a time`, bestPossible(latencies, MAX_IN_FLIGHT) / 1000);
	const { insideKibEach = NaN, behindKibEach, pingMs, blockedMs } = oursWatched;
	const others = same(peerWatched.behindKibEach);
	const peak = 'most memory, garbage included, a task';
	const ping = "another workflow's webhook, longest answer";
	return [
		row('time', 'until all are done', 's', ours.seconds, { ...limit }),
		row('cpu', "n8n's CPU a task", 'ms', ours.cpuMsEach, same(theirs.cpuMsEach)),
		row('peak', peak, 'KiB', ours.peakKibEach, same(theirs.peakKibEach)),
		row('inside', 'memory in use while the node works, a task', 'KiB', insideKibEach, others),
		row('behind', 'memory in use behind it, a task', 'KiB', behindKibEach, others),
		row('ping', ping, 'ms', pingMs, same(peerWatched.pingMs)),
		row('blocked', 'main thread held up, longest', 'ms', blockedMs, same(peerWatched.blockedMs)),
	];
}

/** Items of the form that ours have at the end, made at once. */
function sameItems(isFinished: boolean): INode {
	const task = isFinished
		? "state: 'SUCCESS', resultUrls: ['http://127.0.0.1:4011/results/' + $itemIndex + '/0.png'], creditsConsumed: 8"
		: "state: 'PENDING', resultUrls: [], creditsConsumed: null";
	const sent =
		"model: 'imagevendor/image-model-2-text-to-image', input: { prompt: $json.prompt, simulate: $json.simulate }";
	const record = isFinished
		? `{ taskId: 'task-' + $itemIndex, ${task}, ${sent} }`
		: "{ taskId: 'task-' + $itemIndex }";
	const parameters: INodeParameters = {
		mode: 'raw',
		jsonOutput: `={{ JSON.stringify({ taskId: 'task-' + $itemIndex, ${task}, ${sent}, estimatedCostUsd: 0.08, record: ${record} }) }}`,
		options: {},
	};
	return node('n8n-nodes-base.set', 'Items', parameters, 3.4);
}

async function measureRun(
	bench: Bench,
	collector: Collector,
	workflowId: string,
	size: number,
): Promise<Measured> {
	const { seconds, cpuMs, memoryMiB } = await timeRun(bench, collector, workflowId);
	return { seconds, cpuMsEach: cpuMs / size, peakKibEach: (memoryMiB * KIB) / size };
}

/** The same with an eye on the rest of n8n, which costs time: so neither is measured here. */
async function watchRun(
	bench: Bench,
	collector: Collector,
	workflowId: string,
	size: number,
	pingUrl: string,
	isOurs: boolean,
): Promise<Watched> {
	const { stage, usage } = bench;
	const { service, client } = stage;
	service.clear();
	collector.reset();
	await usage.quiet();
	// What one collection leaves behind, the next one takes.
	await stateOf(stage.n8n.pid);
	await usage.quiet();
	const before = await stateOf(stage.n8n.pid);
	const kibEach = (bytes: number) => (bytes - before.bytes) / KIB / size;
	await usage.quiet();
	const pings = new Pings(pingUrl);
	await sleep(20 * PING_EVERY_MS);
	const usual = pings.longestMs;
	pings.longestMs = 0;
	const execution = await client.run(workflowId);
	let insideKibEach: number | undefined;
	let blockedMs = 0;
	if (isOurs) {
		const almost = size - Math.ceil(size / 50);
		const done = () =>
			[...service.tasks.values()].filter(({ record }) => record.state === 'SUCCESS').length;
		const isAwaited = () =>
			service.requests.some(({ method, host }) => host === 'api' && method === 'GET');
		while ((isAwaited() ? done() : service.tasks.size) < almost) await sleep(PING_EVERY_MS);
		const inside = await pings.without(async () => await stateOf(stage.n8n.pid));
		insideKibEach = kibEach(inside.bytes);
		blockedMs = inside.blockedMs;
	}
	await collector.untilHeld(1, 10 * 60_000);
	const behind = await pings.without(async () => await stateOf(stage.n8n.pid));
	collector.openBarrier();
	await finish(client, workflowId, [execution]);
	await pings.stop();
	const after = await stateOf(stage.n8n.pid);
	return {
		...(insideKibEach !== undefined && { insideKibEach }),
		behindKibEach: kibEach(behind.bytes),
		pingMs: pings.longestMs - usual,
		blockedMs: Math.max(blockedMs, behind.blockedMs, after.blockedMs),
	};
}
