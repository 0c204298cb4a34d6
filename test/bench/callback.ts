import autocannon from 'autocannon';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject, INode } from 'n8n-workflow';
import { max, median } from 'simple-statistics';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackUrl';
import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import { inARow, node } from '../e2e/stage';
import { outputItems } from '../n8n/client';
import type { Bench } from './bench';
import { forget, remember } from './remembered';
import { type Row, sampleOf } from './results';

const REMEMBERED = [0, 10_000, 100_000];
const QUICK_REMEMBERED = [0, 1_000];

const ONE_BY_ONE = 30;
/** n8n lists no more executions at once. */
const AT_ONCE = 100;
const CONNECTIONS = 10;

/** Lets n8n finish what the call started, before the next call. */
const PAUSE_MS = 150;

/** A way into n8n that callbacks are sent to. */
interface Entrance {
	name: string;
	workflowId: string;
	trigger: INode;
	/** Where accepted calls go. */
	url: string;
}

interface Entrances {
	ours: Entrance;
	least: Entrance;
	webhook: Entrance;
	/** Where calls are refused: ours by its token, the least one because it is asked to. */
	refused: { ours: string; least: string };
}

/** What one series of calls took. */
interface Series {
	/** Median, until the answer. */
	answerMs: number;
	/** n8n's CPU for one call and what it started. */
	cpuMs: number;
	/** Median, until the node after the trigger starts; where calls start something. */
	startMs?: number;
}

type Kind = 'accepted' | 'duplicate' | 'refused';

/** Figures of one run, by what was measured. */
type Figures = Map<string, number[]>;

/** Callbacks to the trigger, beside the least third-party trigger and n8n's own Webhook node. */
export async function measureCallbacks(bench: Bench): Promise<Row[]> {
	const { options, stage, log } = bench;
	const sizes = options.quick ? QUICK_REMEMBERED : REMEMBERED;
	const entrances = await openEntrances(bench);
	const figures: Figures = new Map();
	// The first calls are slower than all later ones.
	await measureOnce(bench, entrances, new Map(), 0, 5);
	for (let run = 1; run <= options.runs; run++) {
		// There and back: what n8n has stored grows from series to series.
		for (const size of run % 2 === 1 ? sizes : sizes.toReversed()) {
			const { trigger, workflowId } = entrances.ours;
			remember(stage.n8n, workflowId, trigger.id, size);
			log(`callbacks, run ${run}, ${size} tasks remembered`);
			await measureOnce(bench, entrances, figures, size, options.quick ? 8 : ONE_BY_ONE, run);
			forget(stage.n8n, workflowId);
		}
	}
	return sizes.flatMap((size) => rowsOf(figures, size));
}

/** One workflow for each trigger, with a node behind it that does nothing. */
export async function openEntrances(bench: Bench): Promise<Entrances> {
	const { stage } = bench;
	const open = async (trigger: INode, path: string): Promise<Entrance> => {
		const after = node('n8n-nodes-base.noOp', 'After', {});
		const { id } = await stage.client.createWorkflow({
			name: trigger.name,
			...inARow(trigger, after),
		});
		const webhook = stage.client.webhookPath(trigger, path);
		await stage.client.publish(id, [webhook]);
		return { name: trigger.name, workflowId: id, trigger, url: stage.n8n.url + webhook };
	};
	const ours = await open(stage.mediaNode('mediaGenerationTrigger', 'Ours', {}), 'callback');
	const least = await open(
		{
			...node('n8n-nodes-least-trigger.leastTrigger', 'Least', {}),
			webhookId: crypto.randomUUID(),
		},
		'least',
	);
	const path = crypto.randomUUID();
	const webhookNode: INode = {
		...node('n8n-nodes-base.webhook', 'Webhook', { httpMethod: 'POST', path, options: {} }, 2),
		webhookId: path,
	};
	const { id } = await stage.client.createWorkflow({
		name: webhookNode.name,
		...inARow(webhookNode, node('n8n-nodes-base.noOp', 'After', {})),
	});
	await stage.client.publish(id, [`/webhook/${path}`]);
	const bare = ours.url;
	return {
		ours: { ...ours, url: callbackAddress(bare, stage.service.apiKey) },
		least,
		webhook: {
			name: webhookNode.name,
			workflowId: id,
			trigger: webhookNode,
			url: `${stage.n8n.url}/webhook/${path}`,
		},
		refused: { ours: `${bare}?token=${'0'.repeat(64)}`, least: `${least.url}?refuse=1` },
	};
}

async function measureOnce(
	bench: Bench,
	{ ours, least, webhook, refused }: Entrances,
	figures: Figures,
	remembered: number,
	oneByOne: number,
	run = 0,
): Promise<void> {
	const { options } = bench;
	const atOnce = options.quick ? 40 : AT_ONCE;
	const note = (who: string, kind: Kind, { answerMs, cpuMs, startMs }: Series) => {
		add(figures, key(remembered, who, kind, 'answer'), answerMs);
		add(figures, key(remembered, who, kind, 'cpu'), cpuMs);
		if (startMs !== undefined) add(figures, key(remembered, who, kind, 'start'), startMs);
	};
	const noteRate = (who: string, kind: Kind, perSecond: number) =>
		add(figures, key(remembered, who, kind, 'rate'), perSecond);

	bench.stage.service.clear();
	const [first = ''] = finishedTasks(bench, 1);
	await callOneByOne(bench, ours.url, [first], 200);
	const again = (count: number) => Array.from({ length: count }, () => first);
	// Whoever is always last would gain or lose by what goes on meanwhile.
	const inTurn = [ours, least, webhook];
	if (run % 2 === 0) inTurn.reverse();
	for (const entrance of inTurn) {
		const tasks = finishedTasks(bench, oneByOne);
		note(entrance.name, 'accepted', await callAndStart(bench, entrance, tasks));
	}
	const nothingStarted: Array<{ who: string; kind: Kind; url: string; status: number }> = [
		{ who: 'Ours', kind: 'duplicate', url: ours.url, status: 200 },
		{ who: 'Ours', kind: 'refused', url: refused.ours, status: 401 },
		{ who: 'Least', kind: 'refused', url: refused.least, status: 401 },
	];
	// In turn: a machine that is slower for a while is slower for all of them.
	const answers: Figures = new Map();
	for (let call = 0; call < oneByOne; call++) {
		for (const { who, kind, url, status } of nothingStarted) {
			// n8n prepares an expression engine for the next call, whoever's that is.
			await sleep(PAUSE_MS);
			add(answers, key(remembered, who, kind, 'answer'), await callOnce(url, first, status));
		}
	}
	for (const [name, ms] of answers) add(figures, name, median(ms));
	for (const { name, url, workflowId } of inTurn) {
		const tasks = finishedTasks(bench, atOnce);
		const { perSecond } = await callAtOnce(bench, url, tasks, 200, workflowId);
		noteRate(name, 'accepted', perSecond);
	}
	for (const { who, kind, url, status } of nothingStarted) {
		const { perSecond, cpuMs } = await callAtOnce(bench, url, again(atOnce), status);
		noteRate(who, kind, perSecond);
		add(figures, key(remembered, who, kind, 'cpu'), cpuMs);
	}
}

/** @returns milliseconds until the answer @throws where it is not the one that was to come */
async function callOnce(url: string, taskId: string, status: number): Promise<number> {
	const startedAt = performance.now();
	const response = await fetch(url, {
		method: 'POST',
		headers: { 'content-type': 'application/json' },
		body: JSON.stringify({ taskId }),
	});
	await response.arrayBuffer();
	if (response.status !== status) throw new Error(`${url} answered ${response.status}.`);
	return performance.now() - startedAt;
}

/** As many tasks that are finished, and whose callbacks nobody has delivered. */
export function finishedTasks({ stage: { service } }: Bench, count: number): string[] {
	return Array.from({ length: count }, (_, index) => {
		const { taskId } = service.createTask(IMAGE_MODEL, { prompt: `Task ${index}` });
		service.complete(taskId);
		return taskId;
	});
}

/** Calls one after the other, each when n8n has nothing else to do. */
export async function callOneByOne(
	{ usage }: Bench,
	url: string,
	taskIds: string[],
	status: number,
	pauseMs = 0,
	sentAt: Map<string, number> = new Map(),
): Promise<Series> {
	await usage.quiet();
	const cpu = usage.cpuMs();
	const answers: number[] = [];
	for (const taskId of taskIds) {
		sentAt.set(taskId, Date.now());
		answers.push(await callOnce(url, taskId, status));
		await sleep(pauseMs);
	}
	await usage.quiet();
	return { answerMs: median(answers), cpuMs: (usage.cpuMs() - cpu) / taskIds.length };
}

/** The same, and when the node after the trigger started. */
async function callAndStart(
	bench: Bench,
	{ url, workflowId, name }: Entrance,
	taskIds: string[],
): Promise<Series> {
	const sentAt = new Map<string, number>();
	const series = await callOneByOne(bench, url, taskIds, 200, PAUSE_MS, sentAt);
	const { client } = bench.stage;
	const started: number[] = [];
	for (const { id } of (await client.listExecutions({ workflowId })).slice(0, taskIds.length)) {
		const execution = await client.getExecution(id);
		const [item] = outputItems(execution, 'After');
		const json = name === 'Webhook' ? (item?.json.body as IDataObject | undefined) : item?.json;
		const sent = sentAt.get(String(json?.taskId));
		const ranAt = execution.data.resultData.runData.After?.[0]?.startTime;
		if (sent !== undefined && ranAt !== undefined) started.push(ranAt - sent);
	}
	if (started.length !== taskIds.length) {
		throw new Error(`${name} started ${started.length} workflows for ${taskIds.length} calls.`);
	}
	return { ...series, startMs: median(started) };
}

/** A callback for each task, over several connections at once. */
export function callbacksAtOnce(url: string, taskIds: string[]): autocannon.Options {
	const queue = taskIds.values();
	return {
		url,
		connections: Math.min(CONNECTIONS, taskIds.length),
		amount: taskIds.length,
		timeout: 60,
		requests: [
			{
				method: 'POST',
				headers: { 'content-type': 'application/json' },
				setupRequest: (request) => ({
					...request,
					body: JSON.stringify({ taskId: queue.next().value }),
				}),
			},
		],
	};
}

/**
 * Calls over several connections at once.
 *
 * @param workflowId where each call starts the workflow: then it counts when the last one has ended
 */
async function callAtOnce(
	{ stage: { client }, usage }: Bench,
	url: string,
	taskIds: string[],
	status: number,
	workflowId?: string,
): Promise<{ perSecond: number; cpuMs: number }> {
	await usage.quiet();
	const cpu = usage.cpuMs();
	const options = callbacksAtOnce(url, taskIds);
	const startedAt = Date.now();
	let endedAt = startedAt;
	const { statusCodeStats } = await new Promise<autocannon.Result>((resolve, reject) => {
		const load = autocannon(options, (error: Error | null, result) =>
			error ? reject(error) : resolve(result),
		);
		// It says that it has ended with the next full second.
		load.on('response', () => {
			endedAt = Date.now();
		});
	});
	const answered = statusCodeStats?.[`${status}`]?.count ?? 0;
	if (answered !== taskIds.length) {
		throw new Error(`Of ${taskIds.length} calls ${answered} were answered ${status}.`);
	}
	await usage.quiet();
	const cpuMs = (usage.cpuMs() - cpu) / taskIds.length;
	if (workflowId !== undefined) {
		const executions = (await client.listExecutions({ workflowId })).slice(0, taskIds.length);
		endedAt = max(executions.map(({ stoppedAt = '' }) => Date.parse(stoppedAt)));
	}
	return { perSecond: taskIds.length / ((endedAt - startedAt) / 1000), cpuMs };
}

const key = (...parts: Array<string | number>) => parts.join(' ');

function add(figures: Figures, name: string, value: number): void {
	figures.set(name, [...(figures.get(name) ?? []), value]);
}

function rowsOf(figures: Figures, remembered: number): Row[] {
	const sample = (who: string, kind: Kind, what: string, size = remembered) =>
		sampleOf(figures.get(key(size, who, kind, what)) ?? []);
	const behind = remembered === 0 ? '' : `, ${remembered.toLocaleString('en')} tasks remembered`;
	const row = (
		kind: Kind,
		what: string,
		text: string,
		unit: string,
		peer: { who: string; kind: Kind; name: string },
	): Row => ({
		id: `callback-${kind}-${what}-${remembered}${peer.who === 'Webhook' ? '-webhook' : ''}`,
		what: `${text}${behind}`,
		unit,
		ours: sample('Ours', kind, what),
		peer: { name: peer.name, sample: sample(peer.who, peer.kind, what) },
		...(remembered > 0 && {
			limit: {
				name: 'ours, nothing remembered',
				value: sample('Ours', kind, what, 0).median,
			},
		}),
	});
	const least = { who: 'Least', kind: 'accepted', name: 'least third-party trigger' } as const;
	const webhook = { who: 'Webhook', kind: 'accepted', name: "n8n's Webhook node" } as const;
	const refusal = { who: 'Least', kind: 'refused', name: 'least refusal' } as const;
	return [
		row('accepted', 'answer', 'Callback until its answer', 'ms', least),
		row('accepted', 'answer', 'Callback until its answer', 'ms', webhook),
		row('accepted', 'start', 'Callback until the workflow goes on', 'ms', least),
		row('accepted', 'start', 'Callback until the workflow goes on', 'ms', webhook),
		row('accepted', 'rate', 'Callbacks a second', '/s', least),
		row('accepted', 'rate', 'Callbacks a second', '/s', webhook),
		row('accepted', 'cpu', "n8n's CPU a callback", 'ms', least),
		row('duplicate', 'answer', 'Duplicate until its answer', 'ms', refusal),
		row('duplicate', 'rate', 'Duplicates a second', '/s', refusal),
		row('duplicate', 'cpu', "n8n's CPU a duplicate", 'ms', refusal),
		row('refused', 'answer', 'Refusal until its answer', 'ms', refusal),
		row('refused', 'rate', 'Refusals a second', '/s', refusal),
		row('refused', 'cpu', "n8n's CPU a refusal", 'ms', refusal),
	];
}
