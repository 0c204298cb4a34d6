import autocannon from 'autocannon';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';
import { max, median } from 'simple-statistics';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/estimateCost';
import { outputItems } from '../n8n/client';
import type { Bench } from './bench';
import type { Entrance } from './entrances';

const CONNECTIONS = 10;

/** Lets n8n finish what the call started, before the next call. */
export const PAUSE_MS = 150;

/** What one series of calls took. */
export interface Series {
	/** Median, until the answer. */
	answerMs: number;
	/** n8n's CPU for one call and what it started. */
	cpuMs: number;
	/** Median, until the node after the trigger starts; where calls start something. */
	startMs?: number;
}

/** @returns milliseconds until the answer @throws where it is not the one that was to come */
export async function callOnce(url: string, taskId: string, status: number): Promise<number> {
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
export async function callAndStart(
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
export async function callAtOnce(
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

/** Calls an address so often, at most so many calls at once. */
export async function postOften(url: string, amount: number, connections: number): Promise<void> {
	const many = { url, method: 'POST', amount, timeout: 120 } as const;
	await autocannon({ ...many, connections: Math.min(connections, amount) });
}
