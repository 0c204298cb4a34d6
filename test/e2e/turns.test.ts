import { setTimeout as sleep } from 'node:timers/promises';
import type { IConnections, IDataObject, INode } from 'n8n-workflow';

import { until } from '../n8n/client';
import { shortMinute } from '../n8n/settings';
import type { Settings } from '../service/settings';
import { type SimulatedService, startService } from '../service/service';
import { call, called, inARow, node, prompts, to, webhook, withField } from './nodes';
import { atTheSameTime, errorOf, itemsOf, promptOf, Run, statesOf, succeeded } from './run';
import { AT_ONCE, openScene, type Order } from './scene';

/**
 * What a run orders in turns, and what it must not order twice: files that were uploaded, items that were mended, pauses of
 * the service that outlast a turn, callers that wait, retries. Then n8n is shut down while a run orders.
 */

const MINUTE = 60_000;
const MINUTE_HERE = 10_000;

/** n8n waits so long for the end of a turn, seconds. */
const GRACE_SECONDS = 150;

const scene = openScene({
	env: { ...shortMinute(MINUTE_HERE), N8N_GRACEFUL_SHUTDOWN_TIMEOUT: String(GRACE_SECONDS) },
	clears: false,
});

/** Ends when the test says so. */
const LATER: IDataObject = { latencyMs: 3_600_000 };

const story = atTheSameTime(test, 300, 12 * MINUTE);

/** The executions whose rows in n8n's store are looked for at the end. */
const ended: Run[] = [];

const placesOf = (run: Run) => run.tasks.map(({ record }) => promptOf(record));

async function newestOf(workflowId: string, name: string): Promise<Run> {
	const [{ id } = { id: '' }] = await scene.client.listExecutions({ workflowId });
	return new Run(scene, id, workflowId, name);
}

describe('a file that was uploaded, which n8n gives another id when the run sleeps', () => {
	/** @param start the trigger, at that path, and the field of its form */
	async function upload(name: string, start: INode, path: string, field: string) {
		const { client, service, stage } = scene;
		const video = scene.media({
			resource: 'video',
			operation: 'generate',
			prompt: `${name} 0\n${name} 1`,
			promptPerLine: true,
			imageSource: 'binary',
			binaryPropertyName: 'picture',
			downloadResults: false,
			options: { ...AT_ONCE, ifSomeFail: 'stop', additionalInput: { simulate: LATER } },
		});
		const { id } = await client.createWorkflow({ name, ...inARow(start, video) });
		await client.publish(id);
		const form = new FormData();
		form.set(field, new Blob([PNG], { type: 'image/png' }), 'picture.png');
		await until(`${path} to answer`, MINUTE, async () => {
			const answer = await fetch(stage.webhookUrl + path, { method: 'POST', body: form });
			await answer.arrayBuffer();
			return answer.status === 200;
		});
		const run = await (await newestOf(id, name)).asleep(2);
		await until('both orders', 2 * MINUTE, () => run.tasks.length === 2);
		await run.asleep(run.sleeps + 1);
		const [first = '', second = ''] = run.taskIds;
		service.complete(first);
		service.complete(second, 'FAILURE');
		expect(errorOf(await run.end())?.message).toContain(second);
		expect(placesOf(run)).toEqual([`${name} 0`, `${name} 1`]);
		// The picture itself was sent.
		const sent = run.tasks.map(({ record }) => String((record.input as IDataObject).image_url));
		expect(sent).toEqual(Array(2).fill(expect.stringMatching(/^data:image\/png;base64,/)));

		const retried = run.retry();
		await until('the order of the failed line', 2 * MINUTE, () => run.tasks.length === 3);
		service.complete(run.taskIds[2] ?? '');
		expect(statesOf(succeeded(await retried))).toEqual(['SUCCESS', 'SUCCESS']);
		expect(placesOf(run)).toEqual([`${name} 0`, `${name} 1`, `${name} 1`]);
		ended.push(run);
	}

	const PNG = Buffer.from(
		'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
		'base64',
	);

	story('by a webhook: each line is ordered once, and by a retry what has failed', async () => {
		const start = webhook('Upload');
		await upload('Posted', start, `/webhook/${start.webhookId}`, 'picture');
	});

	story('by a form: each line is ordered once, and by a retry what has failed', async () => {
		const fields = { values: [{ fieldLabel: 'picture', fieldType: 'file', multipleFiles: false }] };
		const parameters = { formTitle: 'Upload', formFields: fields, options: {} };
		const start = {
			...node('n8n-nodes-base.formTrigger', 'Upload', parameters, 2.2),
			webhookId: crypto.randomUUID(),
		};
		await upload('Filled', start, `/form/${start.webhookId}`, 'field-0');
	});
});

story(
	'one item of four has failed, and its prompt is mended: the retry orders that item alone, within the budget',
	async () => {
		const { client } = scene;
		const failing = { latencyMs: 500, outcome: 'FAILURE', failureMessage: 'no such colour' };
		const switches = [{ latencyMs: 500 }, { latencyMs: 500 }, failing, { latencyMs: 500 }];
		const options = { ...AT_ONCE, ifSomeFail: 'stop' };
		const run = await scene.startImages(switches, { name: 'Mended', options });
		expect(errorOf(await run.end())?.message).toContain('no such colour');
		expect(run.tasks).toHaveLength(4);

		const workflow = await client.getWorkflow(run.workflowId);
		const save = async (more: IDataObject) => {
			const media = scene.image({
				prompt: '={{ $json.prompt }}, mended',
				options: { ...options, additionalInput: { simulate: { latencyMs: 500 } }, ...more },
			});
			const nodes = workflow.nodes.map((each) =>
				each.name === 'Media' ? { ...each, ...media, id: each.id } : each,
			);
			await client.updateWorkflow(run.workflowId, { nodes });
		};
		// Three are paid: 0.24 USD.
		await save({ maxCostUsd: 0.3 });
		const refused = await run.retry(true);
		expect(errorOf(refused)?.message).toMatch(/0\.32 USD/);
		expect(run.tasks).toHaveLength(4);

		await save({ maxCostUsd: 0.3, dryRun: true });
		const dry = itemsOf(succeeded(await run.retry(true)));
		expect(dry.map(({ dryRun }) => dryRun)).toEqual(Array(4).fill(true));
		const taskOf = (place: number) =>
			run.tasks.find(({ record }) => promptOf(record) === `Mended ${place}`)?.taskId;
		expect(dry.map(({ taskId }) => taskId)).toEqual([taskOf(0), taskOf(1), null, taskOf(3)]);
		expect(run.tasks).toHaveLength(4);

		await save({ maxCostUsd: 0.32 });
		const items = itemsOf(succeeded(await run.retry(true)));
		expect(items.map(({ state }) => state)).toEqual(Array(4).fill('SUCCESS'));
		expect(items.map(promptOf)).toEqual(['Mended 0', 'Mended 1', 'Mended 2, mended', 'Mended 3']);
		expect(run.tasks).toHaveLength(5);
		ended.push(run);
	},
);

const services: SimulatedService[] = [];
afterAll(async () => {
	await Promise.all(services.map(async (service) => await service.close()));
});

/** Starts a run on an account of its own. */
async function startOn(name: string, count: number, settings: Settings, options: IDataObject) {
	const service = await startService({ settings: { latencyMs: 2_000, ...settings } });
	services.push(service);
	const data = { baseUrl: service.url, apiKey: service.apiKey };
	const own = await scene.client.createCredential(name, 'mediaGenerationApi', data);
	const credentials = { mediaGenerationApi: { id: own.id, name: own.name } };
	const switches = Array<IDataObject>(count).fill({ latencyMs: 2_000 });
	const order: Order = { name, options, node: { credentials } };
	return { service, run: await scene.startImages(switches, order) };
}
type Started = Awaited<ReturnType<typeof startOn>>;

describe('a pause of the service that outlasts a turn fails no item', () => {
	/** @returns when the run had ended, all of its items with a result, and each ordered once */
	async function expectAll(name: string, count: number, { service, run }: Started) {
		const items = itemsOf(succeeded(await run.end(11 * MINUTE)));
		expect(items.map(({ state }) => state)).toEqual(Array(count).fill('SUCCESS'));
		const expected = Array.from({ length: count }, (_, place) => `${name} ${place}`);
		expect(items.map(promptOf)).toEqual(expected);
		const ordered = [...service.tasks.values()].map(({ record }) => promptOf(record));
		expect(ordered.sort()).toEqual(expected.sort());
		ended.push(run);
	}

	story('Retry-After: 60, a moment before the run would sleep', async () => {
		const refusal = { status: 429, after: 30, times: 1, retryAfter: 60 };
		const options = { suspendAfter: 0.5, maxInFlight: 4 };
		const started = await startOn('Sixty', 50, { createStatus: refusal }, options);
		await expectAll('Sixty', 50, started);
		expect(started.run.sleeps).toBeGreaterThan(0);
	});

	story('Retry-After: 299 after ten orders', async () => {
		const refusal = { status: 429, after: 10, times: 1, retryAfter: 299 };
		const started = await startOn('Late', 30, { createStatus: refusal }, {});
		await expectAll('Late', 30, started);
		expect(started.run.sleeps).toBeGreaterThan(0);
	});

	story('503 with Retry-After: 3600 at the first order', async () => {
		const refusal = { status: 503, retryAfter: 3_600 };
		const options = { suspendAfter: 0.1 };
		const { run, service } = await startOn('Hour', 10, { createStatus: refusal }, options);
		const creates = () =>
			service.requests.filter(({ method, host }) => host === 'api' && method === 'POST').length;
		await run.asleep();
		const before = creates();
		await sleep(3 * MINUTE_HERE);
		expect(creates()).toBe(before);
		// Nothing has failed.
		expect((await run.now()).status).toMatch(/waiting|running/);
		await run.stop();
	});

	story('a window of 30 orders a minute', async () => {
		const refusal = { status: 429, after: 30, retryAfter: 60 };
		const started = await startOn(
			'Window',
			75,
			{ createStatus: refusal },
			{
				suspendAfter: 0.5,
				maxInFlight: 1_000,
			},
		);
		const windows = setInterval(() => started.service.configure({ createStatus: refusal }), MINUTE);
		await expectAll('Window', 75, started).finally(() => clearInterval(windows));
		expect(started.run.sleeps).toBeGreaterThan(0);
	});
});

describe('a sub-workflow whose caller waits, with two lanes into the node', () => {
	/** A run that sleeps, n8n tells the caller only half of. */
	async function startCaller(name: string, options: IDataObject, latencyMs: number) {
		const { client } = scene;
		const lane = withField('Other lane', 'prompt', `={{ $json.prompt }}, other`);
		const row = inARow(called(), scene.image({ options }), behind());
		const connections: IConnections = {
			...row.connections,
			Called: { main: to('Media', lane.name) },
			[lane.name]: { main: to('Media') },
		};
		const nodes = [...row.nodes, lane];
		const child = await client.createWorkflow({ name: `${name}: called`, nodes, connections });
		await client.publish(child.id);
		const run = await scene.start(name, prompts(name, [{ latencyMs }]), call(child.id));
		return { run, childId: child.id };
	}
	const behind = () => node('n8n-nodes-base.noOp', 'Behind', {});

	const hintsOf = async (childId: string) => {
		const [{ id } = { id: '' }] = await scene.client.listExecutions({ workflowId: childId });
		const { data } = await scene.client.getExecution(id);
		return (data.resultData.runData.Media ?? []).flatMap(({ hints = [] }) => hints);
	};

	story('is held for longer than five minutes', async () => {
		const { run, childId } = await startCaller('Held', {}, 320_000);
		// One lane comes after the other.
		await until('the other lane', 8 * MINUTE, () => run.tasks.length === 2);
		scene.service.complete(run.taskIds[1] ?? '');
		const execution = succeeded(await run.end(11 * MINUTE));
		const child = await newestOf(childId, 'Held');
		expect(child.sleeps).toBe(0);
		const runs = (await child.now()).data.resultData.runData.Media ?? [];
		const states = runs.flatMap(({ data }) => data?.main?.[0] ?? []).map(({ json }) => json.state);
		expect(states).toEqual(['SUCCESS', 'SUCCESS']);
		expect(itemsOf(execution, 'Call').every(({ state }) => state === 'SUCCESS')).toBe(true);
		ended.push(child);
	});

	story('sleeps where Sleep After is set by hand, and a hint says what n8n loses', async () => {
		const { run, childId } = await startCaller('Chosen', AT_ONCE, 3_000);
		succeeded(await run.end());
		expect((await newestOf(childId, 'Chosen')).sleeps).toBeGreaterThan(0);
		const said = (await hintsOf(childId)).map(({ message }) => message).join('\n');
		expect(said).toContain("'Sleep After' is set");
		expect(said).toContain('n8n gives the waiting workflow the last run of the last node only');
	});
});

describe('two executions of one run', () => {
	const COUNT = 12;

	/** Starts a run that orders some items and then sleeps for two minutes, because the service asks for a pause. */
	async function startPaused(name: string): Promise<Started> {
		const refusal = { status: 429, after: 2, times: 1, retryAfter: 120 };
		const options = { suspendAfter: 0, maxInFlight: 2 };
		const started = await startOn(name, COUNT, { createStatus: refusal }, options);
		const { run, service } = started;
		await until('the refusal', 2 * MINUTE, () =>
			service.requests.some((each) => each.status === 429),
		);
		await run.suspended();
		// An order may be under way beside the one that is refused.
		expect(service.tasks.size).toBeLessThanOrEqual(3);
		return started;
	}

	const orderedOn = ({ service }: Started) =>
		[...service.tasks.values()].map(({ record }) => promptOf(record)).sort();

	const placesNamed = (name: string) =>
		Array.from({ length: COUNT }, (_, place) => `${name} ${place}`).sort();

	story('the retry of a run that sleeps, by the API: one of the two goes on', async () => {
		const started = await startPaused('Slept');
		const { run } = started;
		const retry = await run.beginRetry();
		const [first, second] = [await run.end(6 * MINUTE), await retry.end(6 * MINUTE)];
		const errors = [first, second].map((execution) => errorOf(execution)?.message ?? '');
		expect(errors.filter((message) => message === '')).toHaveLength(1);
		expect(errors.join('')).toMatch(/retry of (this )?execution/);
		expect(orderedOn(started)).toEqual(placesNamed('Slept'));
		ended.push(run);
	});

	story('two retries of a stopped run, at once, and a third one later: one goes on', async () => {
		const started = await startPaused('Twice');
		const { run } = started;
		await run.stop();
		const retries = [await run.beginRetry(), await run.beginRetry()];
		const ends = await Promise.all(retries.map(async (retry) => await retry.end(6 * MINUTE)));
		const errors = ends.map((execution) => errorOf(execution)?.message ?? '');
		expect(errors.sort()).toEqual(['', expect.stringContaining('Another retry of execution')]);
		expect(orderedOn(started)).toEqual(placesNamed('Twice'));
		expect(errorOf(await run.retry())?.message).toContain('Another retry of execution');
		expect(orderedOn(started)).toEqual(placesNamed('Twice'));
		ended.push(run);
	});

	story('a run that n8n wakes a second time while it orders', async () => {
		const run = await (await scene.startTurns('Doubled', COUNT)).inALaterTurn();
		const now = new Date().toISOString().replace('T', ' ').replace('Z', '');
		await scene.stage.database.execute(
			`update execution_entity set status = 'waiting', "waitTill" = '${now}' where id = ${run.id}`,
		);
		const execution = succeeded(await run.end(8 * MINUTE));
		expect(statesOf(execution)).toEqual(Array(COUNT).fill('SUCCESS'));
		expect(placesOf(run).sort()).toEqual(placesNamed('Doubled'));
		ended.push(run);
	});
});

test(
	'the rows of runs that have ended are gone from the store of n8n, but for the claim of a retry',
	async () => {
		expect(ended.length).toBeGreaterThan(5);
		const ids = ended.map(({ workflowId }) => `'${workflowId}'`).join(', ');
		const query = `select "workflowId" from processed_data where "workflowId" in (${ids})`;
		// Of several retries of an execution one orders, also after its end: a row is the claim, and one tells the claimant.
		const retried = ['Posted', 'Filled', 'Mended', 'Slept', 'Twice'];
		const claims = ended.filter(({ name }) => retried.includes(name));
		const expected = claims.flatMap(({ workflowId }) => [workflowId, workflowId]).sort();
		let rows: unknown[] = [];
		await until(
			() => `the rows of ${claims.length} claims, not ${JSON.stringify(rows)}`,
			30_000,
			async () => (rows = await scene.stage.database.rows(query)).length === expected.length,
		);
		expect(rows.map((row) => (row as IDataObject).workflowId).sort()).toEqual(expected);
	},
	MINUTE,
);

describe('n8n is shut down while a run orders', () => {
	const COUNT = 40;
	let run: Run;
	let account: string;
	let tookMs: number;

	beforeAll(async () => {
		const { stage } = scene;
		run = await (await scene.startTurns('Calm', COUNT)).inALaterTurn();
		const from = Date.now();
		await stage.n8n.stop(GRACE_SECONDS * 1_000 + MINUTE);
		tookMs = Date.now() - from;
		account = await stage.n8n.exited;
		await stage.restart();
		await scene.client.login();
	}, 6 * MINUTE);

	test('n8n ends when the turn has ended, and cleanly', () => {
		console.log(`n8n ${account} after ${tookMs} ms`);
		expect(account).toBe('exited with 0');
		expect(tookMs).toBeLessThan(GRACE_SECONDS * 1_000);
	});

	test(
		'the run comes out, each item once, and nobody does anything',
		async () => {
			const items = itemsOf(succeeded(await run.end(8 * MINUTE)));
			expect(items.map(({ state }) => state)).toEqual(Array(COUNT).fill('SUCCESS'));
			expect(run.tasks).toHaveLength(COUNT);
		},
		10 * MINUTE,
	);
});
