import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { until } from '../../n8n/client';
import { shortMinute } from '../../n8n/settings';
import { call, called, inALoop, inARow, lanes, manualTrigger, prompts, webhook } from '../nodes';
import { itemsOf, promptOf, type Run, statesOf, succeeded } from '../run';
import { AT_ONCE, openScene, type Published } from '../scene';

/**
 * An n8n that has been up for a while: it knows when it looks for runs to wake, and has run everything before. Loops, nodes
 * in a row, batches with slow files, callers, stops, a service that fails for seconds and a restart happen beside each
 * other. Then the tests ask what a user would ask. Watched of n8n: its looks, its stored executions, its shutdown and start,
 * its memory.
 */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** n8n waits so long for the end of a turn. */
const GRACE_SECONDS = 90;

const { NODE_OPTIONS, ...minute } = shortMinute(6 * SECOND);
const scene = openScene({
	env: {
		...minute,
		NODE_OPTIONS: `${NODE_OPTIONS} --require ${join(__dirname, 'heap.cjs')}`,
		N8N_GRACEFUL_SHUTDOWN_TIMEOUT: String(GRACE_SECONDS),
	},
	clears: false,
});

const many = (count: number, latencyMs: number, more: IDataObject = {}) =>
	Array<IDataObject>(count).fill({ latencyMs, ...more });

/** n8n stores a run after six seconds: until then a stop or a restart would find nothing of it. */
const SOON = { suspendAfter: 0.1 };

/** Ends when the test says so. */
const LATER = 3_600_000;

/** How much memory n8n uses after it has collected what nobody needs, MiB. */
async function usedMemory(): Promise<number> {
	const { pid, userFolder } = scene.stage.n8n;
	const file = join(userFolder, 'heap');
	rmSync(file, { force: true });
	process.kill(pid, 'SIGUSR2');
	await until('n8n to say how much memory it uses', MINUTE, () => existsSync(file));
	await sleep(SECOND);
	return Number(readFileSync(file, 'utf8')) / 2 ** 20;
}

/** A workflow calls another one, which orders. @returns the run of the one, and the id of the other workflow */
async function startCaller(name: string, switches: IDataObject[]) {
	// By hand it runs nothing, until somebody looks for its tasks.
	const rows = [[called(), scene.image({ options: { maxInFlight: 4 } })], [manualTrigger()]];
	const { id } = await scene.client.createWorkflow({ name: `${name}: called`, ...lanes(...rows) });
	await scene.client.publish(id);
	return { run: await scene.start(name, prompts(name, switches), call(id)), calledId: id };
}
type Caller = Awaited<ReturnType<typeof startCaller>>;

/** Somebody calls a workflow, and hangs up before it answers. */
async function hangUp(name: string): Promise<string> {
	const hook = webhook(name, { responseMode: 'lastNode' });
	const { id } = await scene.client.createWorkflow({
		name,
		...inARow(hook, prompts(name, many(2, 6 * SECOND)), scene.image()),
	});
	const path = `/webhook/${hook.webhookId}`;
	await scene.client.publish(id, [path]);
	const signal = AbortSignal.timeout(3 * SECOND);
	await expect(fetch(scene.stage.webhookUrl + path, { method: 'POST', signal })).rejects.toThrow();
	return id;
}

/** A trigger with *Wait for Task* behind it. Some callbacks are lost. */
async function startTrigger(count: number): Promise<Published> {
	const wait = scene.media({
		resource: 'task',
		operation: 'wait',
		taskId: '={{ $json.taskId }}',
		downloadResults: true,
	});
	const switches = many(count, 2 * SECOND);
	switches.push(...many(2, 2 * SECOND, { callbackLost: true }));
	const orders = [
		prompts('Triggered', switches),
		scene.image({ completion: 'trigger' }, { name: 'Orders' }),
	];
	const lane = await scene.publish(scene.trigger(), { before: [wait], orders });
	await scene.client.run(lane.id);
	return lane;
}

interface Story {
	loop: Run;
	row: Run;
	files: Run;
	caller: Caller;
	stopped: Run;
	stoppedCaller: Caller;
	across: Run;
	sleepers: Run[];
	lane: Published;
	hungUp: string;
}

const TRIGGERED = 6;
const FILES = 16;
const FILE_MIB = 8;
const ACROSS = 60;

async function startAll(): Promise<Story> {
	const loop = inALoop(
		prompts('Loop', many(8, SECOND)).flat(),
		scene.image({ options: SOON }, { onError: 'continueRegularOutput' }),
		webhook('Start'),
	);
	const second = scene.image(
		{
			options: { ...SOON, additionalInput: { simulate: { latencyMs: 2 * SECOND } } },
			prompt: '={{ $json.input.prompt }}, second',
		},
		{ name: 'Second' },
	);
	const slow = { ...SOON, downloadResults: true, maxInFlight: 4 };
	return {
		loop: await scene.startWorkflow({ name: 'Loop', ...loop }),
		row: await scene.startImages(many(3, 2 * SECOND), {
			name: 'Row',
			byWebhook: true,
			options: SOON,
			after: [second],
		}),
		files: await scene.startImages(
			many(FILES, SECOND, { mediaDelayMs: 4 * SECOND, mediaBytes: FILE_MIB * 2 ** 20 }),
			{
				name: 'Files',
				byWebhook: true,
				options: slow,
			},
		),
		caller: await startCaller('Caller', many(8, 2 * SECOND)),
		stopped: await scene.startImages(many(40, 3 * SECOND), {
			name: 'Stopped',
			options: { ...SOON, maxInFlight: 2 },
		}),
		stoppedCaller: await startCaller('StoppedCaller', many(40, 3 * SECOND)),
		across: await scene.startImages(many(ACROSS, 3 * SECOND), {
			name: 'Across',
			byWebhook: true,
			options: { ...SOON, maxInFlight: 2 },
		}),
		sleepers: await Promise.all(
			[0, 1, 2].map(
				async (index) =>
					await scene.startImages(many(2, LATER), { name: `Sleeper${index}`, options: AT_ONCE }),
			),
		),
		lane: await startTrigger(TRIGGERED),
		hungUp: await hangUp('HungUp'),
	};
}

let story: Story;
const stoppedRuns = () => [story.stopped, story.stoppedCaller.run];
let orderedAtStop: number[] = [];
const memory = { before: 0, after: 0 };
const took: Record<string, number> = {};

const since = (from: number) => Math.round((Date.now() - from) / SECOND);

beforeAll(async () => {
	const { client, service, stage } = scene;
	let from = Date.now();
	const warm = await scene.startImages(many(3, 500), {
		name: 'Warm',
		options: { ...AT_ONCE, downloadResults: true },
	});
	succeeded(await warm.end());
	memory.before = await usedMemory();
	took.warm = since(from);
	from = Date.now();
	story = await startAll();
	took.started = since(from);
	service.configure({ createStatus: { status: 429 }, readStatus: { status: 502 } });
	await sleep(5 * SECOND);
	service.resetSettings();
	await Promise.all(stoppedRuns().map(async (run) => await run.stop()));
	orderedAtStop = stoppedRuns().map(({ tasks }) => tasks.length);
	const { loop, row, files, caller } = story;
	await Promise.all([loop, row, files, caller.run].map(async (run) => await run.end()));
	await client.waitForExecutions(story.hungUp, 1);
	await until('the trigger to start', MINUTE, () => scene.collector.seen.length >= TRIGGERED + 2);
	took.ended = since(from);
	memory.after = await usedMemory();

	from = Date.now();
	await stage.n8n.stop(GRACE_SECONDS * SECOND);
	took.stopping = since(from);
	await stage.restart();
	await client.login();
	took.restarted = since(from);
	for (const { taskIds } of story.sleepers) for (const id of taskIds) service.complete(id);
	await Promise.all([story.across, ...story.sleepers].map(async (run) => await run.end()));
	took.all = since(from);
	const sleeps = [loop, row, files, story.stopped, story.across].map((run) => run.sleeps);
	console.log(JSON.stringify({ memory, took, sleeps, tasks: scene.tasks.length }));
}, 10 * MINUTE);

/** Everything that n8n has stored of executions, as text. */
async function everythingStored(): Promise<string> {
	const all = await scene.client.listExecutions();
	expect(all.length).toBeLessThan(100);
	const stored = await Promise.all(all.map(async ({ id }) => await scene.client.getExecution(id)));
	return JSON.stringify(stored);
}

test('each item has one task, and each run has all of its results', async () => {
	const ordered = scene.tasks.map(({ record }) => promptOf(record));
	expect(ordered).toHaveLength(new Set(ordered).size);
	const { row, files, across, sleepers, caller } = story;
	const states = async (run: Run, node?: string) =>
		new Set(statesOf(succeeded(await run.now()), node));
	for (const run of [row, files, across, ...sleepers]) {
		expect(await states(run)).toEqual(new Set(['SUCCESS']));
	}
	expect(await states(row, 'Second')).toEqual(new Set(['SUCCESS']));
	expect(await states(caller.run, 'Call')).toEqual(new Set(['SUCCESS']));
	expect(itemsOf(await across.now())).toHaveLength(ACROSS);
});

test('every paid task is in an output, an error or a record', async () => {
	// A workflow that is called is awake to its end: its stop leaves an execution that holds its tasks.
	const { items } = await story.stopped.fetched();
	const said = (await everythingStored()) + JSON.stringify(items);
	expect(scene.taskIds.filter((id) => !said.includes(id))).toEqual([]);
});

test('nothing is running or waiting', async () => {
	const open = await scene.client.listExecutions({ status: ['new', 'running', 'waiting'] });
	expect(open).toEqual([]);
});

test('nothing is in doubt: nothing was killed', async () => {
	const stored = await everythingStored();
	expect(stored.includes('not known whether the task was created')).toBe(false);
});

test('each task has started the workflow of its trigger once', async () => {
	const triggered = scene.tasks.filter(({ record }) => promptOf(record).startsWith('Triggered'));
	await scene.expectArrived(triggered.map(({ taskId }) => taskId));
});

test('a stopped run, and one whose caller was stopped, have ordered nothing since', () => {
	for (const [index, before] of orderedAtStop.entries()) {
		expect((stoppedRuns()[index]?.tasks.length ?? 0) - before).toBeLessThanOrEqual(2);
	}
	expect(orderedAtStop.every((count) => count > 0)).toBe(true);
});

test('memory has come back', () => {
	// n8n has loaded further nodes meanwhile.
	expect(memory.after - memory.before).toBeLessThan((FILES * FILE_MIB) / 2);
});
