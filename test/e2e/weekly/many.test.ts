import type { IDataObject } from 'n8n-workflow';

import { hasEnded, outputItems, until } from '../../n8n/client';
import { WHOLE_MINUTE } from '../../n8n/settings';
import { inARow, webhook } from '../nodes';
import { itemsOf, promptOf, type Run, succeeded } from '../run';
import { openScene, type Scene } from '../scene';

/** Many executions at once, and long batches, where minutes are those on the clock. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

const many = (count: number, switches: IDataObject) => Array<IDataObject>(count).fill(switches);

/** How late a picture may be among a hundred. */
const MEDIAN_LATE_MS = 5 * SECOND;
const LATE_MS = 20 * SECOND;

/** A run that sleeps is so much of its time late at most: a sleep is a quarter of the time waited, and a tenth of it more. */
const ASLEEP_LATE = 0.3;

const HUNDRED = 100;

/** So long n8n waits for the end of a turn: what the page advises. */
const GRACE_MS = 90 * SECOND;

interface Crowd {
	/** *Sleep After*, minutes. */
	suspendAfter?: number;
	/** Happens when all executions have begun. */
	meanwhile?: () => Promise<void>;
	/** So many may be listed as crashed, although their items have come. */
	mayCrash?: number;
}

/**
 * Calls a webhook a hundred times at once: each execution orders a picture, which takes so long.
 *
 * @returns how late they are, ms, sorted
 */
async function hundred(
	scene: Scene,
	name: string,
	seconds: number,
	{ suspendAfter = 5, meanwhile, mayCrash = 0 }: Crowd = {},
): Promise<number[]> {
	const { client, collector, stage } = scene;
	collector.reset();
	const start = webhook('Start');
	const additionalInput = '={{ { simulate: $json.body.simulate } }}';
	const options = { additionalInput, suspendAfter };
	const picture = scene.image({ prompt: '={{ $json.body.prompt }}', options });
	const wired = inARow(start, picture, collector.node());
	const { id } = await client.createWorkflow({ name, ...wired });
	const path = `/webhook/${start.webhookId}`;
	await client.publish(id, [path]);
	const from = Date.now();
	const call = async (index: number) => {
		const simulate = { latencyMs: seconds * SECOND };
		const body = JSON.stringify({ prompt: `${name} ${index}`, simulate });
		const headers = { 'content-type': 'application/json' };
		const answer = await fetch(stage.webhookUrl + path, { method: 'POST', headers, body });
		await answer.arrayBuffer();
		return answer.status;
	};
	const answers = await Promise.all([...Array(HUNDRED).keys()].map(call));
	expect(answers).toEqual(Array(HUNDRED).fill(200));
	const calledMs = Date.now() - from;
	await meanwhile?.();
	let counts: Record<string, number> = {};
	await until(
		() => `all of ${name} to end, which are ${JSON.stringify(counts)}`,
		Math.min(2 * seconds, 600) * SECOND + 5 * MINUTE,
		async () => {
			const all = await client.listExecutions({ workflowId: id });
			counts = {};
			for (const { status } of all) counts[status] = (counts[status] ?? 0) + 1;
			return all.length === HUNDRED && all.every(({ status }) => hasEnded(status));
		},
		SECOND,
	);
	const tasks = scene.tasks.filter(({ record }) => promptOf(record).startsWith(`${name} `));
	const late = tasks
		.map(({ taskId, createdAt }) => {
			const cameAt = collector.times[collector.seen.indexOf(taskId)] ?? NaN;
			return cameAt - createdAt - seconds * SECOND;
		})
		.sort((a, b) => a - b);
	console.log(
		`${name}: ${JSON.stringify(counts)} in ${(Date.now() - from) / SECOND} s, called within ${calledMs} ms`,
	);
	if (!meanwhile) {
		const [least, median, most] = [late[0], late[HUNDRED / 2], late.at(-1)];
		console.log(`${name}: late by ${least} to ${most} ms, median ${median} ms`);
	}
	const { success = 0, crashed = 0 } = counts;
	expect(success + crashed).toBe(HUNDRED);
	expect(crashed).toBeLessThanOrEqual(mayCrash);
	await collector.settle(HUNDRED);
	expect(new Set(tasks.map(({ record }) => promptOf(record))).size).toBe(HUNDRED);
	expect(tasks).toHaveLength(HUNDRED);
	expect([...collector.seen].sort()).toEqual(tasks.map(({ taskId }) => taskId).sort());
	return late;
}

describe('on an n8n that has run nothing before, and on the same n8n after that', () => {
	const scene = openScene({ env: WHOLE_MINUTE, clears: false });

	const inTime = async (when: string): Promise<void> => {
		const late = await hundred(scene, when, 90);
		expect(late[HUNDRED / 2]).toBeLessThanOrEqual(MEDIAN_LATE_MS);
		expect(late.at(-1)).toBeLessThanOrEqual(LATE_MS);
	};

	it.each(['first', 'later'])(
		'a hundred pictures of 90 s that begin at once all come out (%s)',
		inTime,
		15 * MINUTE,
	);

	it(
		'a hundred pictures of 330 s that begin at once, and sleep at the same time, all come out',
		async () => {
			const late = await hundred(scene, 'asleep', 330);
			expect(late.at(-1)).toBeLessThanOrEqual(ASLEEP_LATE * 330 * SECOND + LATE_MS);
		},
		20 * MINUTE,
	);

	it('and a hundred of 90 s once more after those', async () => await inTime('last'), 15 * MINUTE);

	it(
		'48 tasks with files of 12 s, at four places, take little longer than without files',
		async () => {
			const startFour = async (name: string, options: IDataObject) =>
				await scene.startImages(many(48, { latencyMs: 10 * SECOND, mediaDelayMs: 12 * SECOND }), {
					name,
					options: { maxInFlight: 4, ...options },
					byWebhook: true,
				});
			const runs = await Promise.all([
				startFour('Bare', {}),
				startFour('Files', { downloadResults: true }),
				startFour('BareAsleep', { suspendAfter: 1 }),
				startFour('FilesAsleep', { suspendAfter: 1, downloadResults: true }),
			]);
			const took = await Promise.all(runs.map(secondsOf));
			for (const [index, run] of runs.entries()) {
				console.log(`${run.name}: ${took[index]} s, ${run.sleeps} sleeps`);
				const ended = succeeded(await run.now());
				expect(itemsOf(ended).map(({ state }) => state)).toEqual(Array(48).fill('SUCCESS'));
				expect(run.tasks).toHaveLength(48);
				const files = outputItems(ended, 'Media').flatMap(({ binary = {} }) =>
					Object.values(binary),
				);
				expect(files).toHaveLength(run.name.startsWith('Files') ? 48 : 0);
			}
			const [bare = NaN, files = NaN, bareAsleep = NaN, filesAsleep = NaN] = took;
			expect(files - bare).toBeLessThanOrEqual(30);
			expect(filesAsleep - bareAsleep).toBeLessThanOrEqual(90);
		},
		15 * MINUTE,
	);
});

/** From the first order of a run to its end. */
async function secondsOf(run: Run): Promise<number> {
	const { stoppedAt } = succeeded(await run.end(90 * MINUTE));
	return (new Date(stoppedAt ?? NaN).getTime() - (run.tasks[0]?.createdAt ?? NaN)) / SECOND;
}

describe('n8n is stopped, and away until a hundred runs that sleep are due and their tasks have ended', () => {
	const scene = openScene({
		env: { ...WHOLE_MINUTE, N8N_GRACEFUL_SHUTDOWN_TIMEOUT: String(GRACE_MS / SECOND) },
		clears: false,
	});

	it(
		'all come out, each once; the retry of those that n8n lists as crashed orders nothing',
		async () => {
			const { client, service, stage } = scene;
			const meanwhile = async () => {
				const line = /1 task created.*asleep until \S+ \(execution (\d+),/g;
				const asleep = () => new Set([...scene.log.matchAll(line)].map(([, id]) => id));
				await until('all to order, and to sleep', 10 * MINUTE, () => asleep().size === HUNDRED);
				await stage.n8n.stop(GRACE_MS + MINUTE);
				for (const taskId of scene.taskIds) service.complete(taskId);
				const awake = `select count(*) as count from execution_entity where status <> 'waiting' or "waitTill" > `;
				await until('all to be due', 10 * MINUTE, async () => {
					const now = new Date().toISOString().replace('T', ' ').replace('Z', '');
					const [row] = await stage.database.rows(`${awake} '${now}'`);
					return row?.count === 0;
				});
				await stage.restart();
				await client.login();
			};
			// When it starts, n8n takes a run for crashed that it has just woken, and whose end it has stored meanwhile.
			await hundred(scene, 'away', 3_600, { suspendAfter: 1, meanwhile, mayCrash: 10 });
			const crashed = await client.listExecutions({ status: ['crashed'] });
			for (const { id } of crashed) {
				const retry = await client.waitForExecution(await client.retryExecution(id), 5 * MINUTE);
				console.log(`The retry of execution ${id}: ${retry.status}`);
				expect(itemsOf(succeeded(retry)).map(({ state }) => state)).toEqual(['SUCCESS']);
			}
			expect(scene.tasks).toHaveLength(HUNDRED);
		},
		30 * MINUTE,
	);
});

describe('a night', () => {
	const scene = openScene({ env: WHOLE_MINUTE, clears: false });
	const ROWS = 600;
	const PLACES = 10;
	const TASK_SECONDS = 30;

	it(
		'of 600 rows takes at most 1.1 times what it takes without a sleep',
		async () => {
			const startNight = async (name: string, options: IDataObject) =>
				await scene.startImages(many(ROWS, { latencyMs: TASK_SECONDS * SECOND }), {
					name,
					options: { ...options, maxInFlight: PLACES },
					byWebhook: true,
				});
			const runs = await Promise.all([
				startNight('Held', { suspendAfter: 24 * 60 }),
				startNight('Asleep', {}),
			]);
			const [held = NaN, asleep = NaN] = await Promise.all(runs.map(secondsOf));
			const least = (ROWS / PLACES) * TASK_SECONDS;
			console.log(
				`${ROWS} rows: ${asleep} s with ${runs[1]?.sleeps} sleeps, ${held} s held: ${asleep / held}; ${least} s where no place is ever free: ${asleep / least}`,
			);
			for (const run of runs) {
				const states = itemsOf(await run.now()).map(({ state }) => state);
				expect(states).toEqual(Array(ROWS).fill('SUCCESS'));
				expect(run.tasks).toHaveLength(ROWS);
			}
			expect(runs[0]?.sleeps).toBe(0);
			expect(asleep / held).toBeLessThanOrEqual(1.1);
		},
		100 * MINUTE,
	);
});
