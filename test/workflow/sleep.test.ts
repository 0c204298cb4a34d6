import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { LedgerRow } from '../../nodes/MediaGeneration/n8n/ledgerRow';
import { Downloader } from '../../nodes/MediaGeneration/report/download';
import { ServiceClient } from '../../nodes/MediaGeneration/service/client';
import { ServiceError } from '../../nodes/MediaGeneration/service/serviceError';
import { clock, Stopped } from '../../nodes/MediaGeneration/shared/clock';
import { isTerminal } from './n8n/database';
import { uploadedId } from './n8n/uploads';
import {
	errorsOf,
	fails,
	field,
	hasErrorOutput,
	imageNode,
	images,
	item,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
	threeTries,
} from './support';
import { pass, passUntil } from './time';

/** Runs that sleep and are woken: how long they are awake, when their items leave, and what does not change meanwhile. */

const on = stage();

afterEach(() => jest.restoreAllMocks());

/** A prompt whose task takes so many minutes. */
const slow = (prompt: string, minutes = 7) => item(prompt, { latencyMs: minutes * MINUTE });

/** A run of one image for each prompt, after its first turn. */
async function asleep(items: Parameters<typeof prompts>, options: IDataObject = {}, more = {}) {
	const run = await on.start(imageNode(options, more), prompts(...items));
	expect(run.isAsleep).toBe(true);
	return run;
}

/** Begins a run some seconds after n8n has begun to look. */
async function begin(options: IDataObject, items: INodeExecutionData[]) {
	await pass(10 * SECOND);
	return on.begin(imageNode(options, keepsGoing), items);
}

describe('how long a run is awake', () => {
	it.each([45, 280])('a picture of %d s is at most five seconds late', async (seconds) => {
		const run = await begin({}, images(1, seconds));
		const from = on.elapsed;
		await run.end();
		expect(run.sleeps).toEqual([]);
		expect(on.elapsed - from - seconds * SECOND).toBeLessThanOrEqual(5 * SECOND);
	});

	it('a picture of 400 s sleeps after five minutes, for a quarter of the time waited', async () => {
		const run = await begin({}, images(1, 400));
		const from = on.elapsed;
		await run.end();
		const slept = run.sleeps.map(({ from: at, until }) => until - at);
		expect(slept).toHaveLength(2);
		expect(slept[0]).toBeGreaterThanOrEqual(75 * SECOND);
		expect(slept[0]).toBeLessThan(90 * SECOND);
		expect(on.elapsed - from).toBeLessThan(500 * SECOND);
	});

	it('the rounds of a loop are one run: they sleep together, five minutes after the execution began', async () => {
		const rounds = images(10, 45).map((each) => [each]);
		const from = Date.now();
		const run = await on.start(imageNode(), undefined, { rounds });
		const awakeMs = (run.sleeps[0]?.from ?? 0) - from;
		expect(awakeMs).toBeGreaterThanOrEqual(5 * MINUTE);
		expect(awakeMs).toBeLessThan(5 * MINUTE + 10 * SECOND);
		expect(on.created).toBe(7);
		await run.end();
		expect(on.created).toBe(10);
	});

	it('while something is left to order, each later turn lasts 55 s, and begins at the look of n8n after the turn before', async () => {
		const run = await (await begin({ maxInFlight: 4, suspendAfter: 1 }, images(60, 20))).rests();
		for (let turn = 0; turn < 2; turn++) {
			const { from } = run.sleeps.at(-1) ?? { from: NaN };
			await passUntil(() => run.row.wakes > turn);
			expect(Date.now() - from).toBeLessThanOrEqual(MINUTE);
			const wokenAt = Date.now();
			await run.rests();
			expect(Date.now() - wokenAt).toBeGreaterThanOrEqual(55 * SECOND);
			expect(Date.now() - wokenAt).toBeLessThan(58 * SECOND);
		}
	});

	it('a turn orders its window and no more: ten at first, then twice what the turn before has ordered', async () => {
		const run = await on.start(imageNode({ suspendAfter: 0, maxInFlight: 100 }), images(70, 30));
		const orders: number[] = [];
		for (let turn = 0; turn < 3; turn++) {
			const before = on.created;
			await run.wake();
			orders.push(on.created - before);
		}
		expect(orders).toEqual([10, 20, 40]);
	});

	it('with 0 minutes n8n stores the run before its first create and wakes it at once, and the time until then is not taken off the time of a task', async () => {
		const run = await asleep(['a'], { suspendAfter: 0, timeout: 15 });
		expect([on.created, run.sleepMs]).toEqual([0, 0]);
		await pass(MINUTE);
		expect(field((await run.end()).output, 'state')).toEqual(['SUCCESS']);
	});

	it("the workflow's time limit ends the wait before n8n cancels the run: the items leave with their ids", async () => {
		const settings = { executionTimeout: 1200 };
		const run = await on.start(imageNode({}, keepsGoing), prompts(slow('a', 60)), { settings });
		expect(run.isAsleep).toBe(true);
		const { output } = await run.end();
		expect(output).toMatchObject([{ json: { taskId: on.taskIds[0], timedOut: true } }]);
		expect(on.elapsed).toBeLessThan(20 * MINUTE);
		expect(on.elapsed).toBeGreaterThan(18 * MINUTE);
	});

	it.each([
		['of its own', 0, 31],
		['that exists', 1, 41],
	])(
		'a read that never ends holds the wait for a task %s no longer than its time, as long again, and seconds',
		async (_whose, exists, atMost) => {
			jest
				.spyOn(ServiceClient.prototype, 'readTask')
				.mockImplementation(async (_taskId, limitMs = Infinity) => {
					// As long as a read of the service lasts that comes in drops.
					await clock.sleep(Math.min(30 * SECOND, limitMs), undefined);
					throw new ServiceError('noAnswer', 'The answer did not end in time');
				});
			const options = { timeout: 10 };
			const task = { resource: 'task', operation: 'wait', taskId: 'task-1', options };
			const { error } = exists
				? await on.run({ parameters: task })
				: await on.images(['a'], options);
			expect(error?.message).toContain('The answer did not end in time');
			expect(on.elapsed / SECOND).toBeGreaterThanOrEqual(20);
			expect(on.elapsed / SECOND).toBeLessThanOrEqual(atMost);
		},
	);
});

describe('a file that takes four minutes', () => {
	/** One download of the run takes so long. */
	function slowDown(which: number): void {
		const downloader = Downloader.prototype as unknown as {
			tryOnce: (...given: unknown[]) => Promise<unknown>;
		};
		const { tryOnce } = downloader;
		let downloads = 0;
		const slowOne = async function (this: unknown, ...given: unknown[]) {
			if (++downloads === which) await clock.sleep(4 * MINUTE, undefined);
			return await tryOnce.apply(this, given);
		};
		jest.spyOn(downloader, 'tryOnce').mockImplementation(slowOne);
	}
	const options = { maxInFlight: 4, suspendAfter: 1, downloadResults: true };

	it.each([
		['first', 3],
		['later', 40],
	])('in the %s turn holds up nothing but its own item', async (_which, which) => {
		slowDown(which);
		const run = await begin(options, images(80, 10));
		const { output } = await run.end();
		expect([errorsOf(output), on.created]).toEqual([[], 80]);
		const at = on.tasks.map(({ createdAt }) => createdAt);
		const gaps = at.slice(1).map((each, index) => each - (at[index] ?? 0));
		expect(Math.max(...gaps)).toBeLessThanOrEqual(MINUTE + 10 * SECOND);
	});

	it('has a turn go on, which is killed: what its windows may have ordered is not ordered again', async () => {
		slowDown(30);
		const run = await begin(options, images(150, 10));
		// In a turn that has gone on twice.
		let asleepAt = Infinity;
		await passUntil(() => {
			if (run.isAsleep) asleepAt = Date.now();
			return Date.now() > asleepAt + 160 * SECOND;
		});
		await run.kill();
		await (await run.retry()).end();
		expect(new Set(on.ordered).size).toBe(on.created);
	});
});

/** Output without what no two runs share. */
const comparable = (items: unknown) =>
	JSON.parse(
		JSON.stringify(items)
			.replace(/task-[0-9a-f-]{36}/g, 'task')
			.replace(/-[0-9a-f]{4}((?:-\d+)?\.\w+")/g, '-task$1')
			.replace(/"20\d\d-[^"]+"/g, '"time"'),
	) as unknown;

it.each<[string, IDataObject, object]>([
	['as a rule', {}, {}],
	[
		'with Split Results, downloads, Retry Failed Tasks and a reference',
		{
			...{ splitResults: true, downloadResults: true },
			...{ retryFailed: 1, reference: '={{ $json.prompt }}' },
		},
		{},
	],
	['with the error output', {}, hasErrorOutput],
	[
		'with Always Output Data and Execute Once',
		{ includeInput: false },
		{ alwaysOutputData: true, executeOnce: true },
	],
	['with an error that stops', { ifSomeFail: 'stop' }, {}],
])('the output is the same, held or woken: %s', async (_what, options, more) => {
	on.service.configure({ resultCount: 2 });
	const binary = { note: { data: btoa('a note'), mimeType: 'text/plain' } };
	const refused = item('d', { createStatus: 400 });
	const items = prompts(slow('a'), refused, slow('b', 2), fails('c')).map(({ json }) => ({
		json,
		binary,
	}));
	const run = await on.start(imageNode(options, more), items);
	expect(run.isAsleep).toBe(true);
	const woken = await run.end();
	expect(woken.run.data.resultData.runData.Media).toHaveLength(1);
	on.service.clear();
	const held = await on.run(imageNode({ suspendAfter: 60, ...options }, more), items);
	expect(held.run.status).not.toBe('waiting');
	const told = ({ output, errors, error }: typeof held) => [output, errors, error?.message];
	expect(comparable(told(woken))).toEqual(comparable(told(held)));
});

describe('while a run sleeps', () => {
	it.each([
		['a failed task is free', {}, 0.16],
		['the service has charged for a failed task', { creditsConsumed: 8 }, 0.24],
	])('its hint says how far it is, and what it cost: %s', async (_what, extraFields, usd) => {
		on.service.configure({ extraFields });
		const run = await asleep([slow('a'), fails('b'), 'c'], { ifSomeFail: 'keep' });
		const [hint] = run.ran.hints;
		expect(hint).toContain('3 tasks created, 1 finished, 1 failed');
		expect(hint).toContain(`cost so far about ${usd} USD`);
	});

	it('an expression comes to give something else, and an upload gets another id: no order is planned or sent again', async () => {
		const additionalInput =
			'={{ JSON.stringify({ seed: Math.random(), at: $now.toMillis(), simulate: $json.simulate }) }}';
		const file = { data: 'filesystem-v2', mimeType: 'image/png', id: uploadedId('x') };
		const items = prompts(slow('a'), slow('b', 20)).map((each) => ({ ...each, binary: { file } }));
		const run = await on.start(imageNode({ additionalInput, suspendAfter: 0 }), items);
		const plannedUntil = Date.now();
		run.row.data = run.row.data.replaceAll('executions/temp/', 'executions/1/');
		const { output } = await run.end();
		expect(on.created).toBe(2);
		const seeds = output.map(({ json }) => (json.input as IDataObject).seed);
		expect(seeds).toEqual(on.inputs.map(({ seed }) => seed));
		for (const { at } of on.inputs) expect(at).toBeLessThanOrEqual(plannedUntil);
	});

	it('its credential is lost: it is looked up at each wake', async () => {
		const run = await asleep([slow('a', 6)]);
		const { test } = run.n8n;
		Object.assign(test, { credential: { ...on.credential, apiKey: '' } });
		await run.wake();
		await run.wake();
		expect(run.isAsleep).toBe(true);
		Object.assign(test, { credential: on.credential });
		expect(field((await run.end()).output, 'state')).toEqual(['SUCCESS']);
	});

	it('a media host is down: it is asked again in later turns, and each file is downloaded once', async () => {
		on.service.configure({ mediaStatus: { status: 503, retryAfter: 1800 } });
		const run = await asleep([slow('a', 6)], { downloadResults: true });
		const asked = () => on.service.requests.filter(({ host }) => host === 'media');
		while (asked().length === 0) await run.wake();
		while (on.elapsed < 40 * MINUTE) await run.wake();
		expect(asked().length).toBeLessThanOrEqual(2);
		on.service.resetSettings();
		const { output } = await run.end();
		expect(output[0]?.binary?.data?.mimeType).toBe('image/png');
		expect(asked().filter(({ status }) => status === 200)).toHaveLength(1);
	});
});

describe('in a woken turn', () => {
	it('a stop while it looks at its task ends the run', async () => {
		const run = await asleep([slow('a', 60)]);
		jest.spyOn(ServiceClient.prototype, 'readTask').mockRejectedValue(new Stopped());
		await passUntil(() => isTerminal(run.row.status));
		expect(run.row.sleeps).toBe(1);
	});

	it('Retry On Fail pays for nothing twice, and comes to its end, although n8n counts its tries anew at each wake', async () => {
		const run = await asleep([slow('a', 300), slow('b')], { timeout: 600 }, threeTries);
		const { output } = await run.end();
		expect(output[0]?.json.error).toContain('is not finished');
		expect(on.elapsed).toBeLessThan(60 * MINUTE);
		expect(on.created).toBe(2);
	});

	it('the database loses its answer to the row of the turn: no item is lost', async () => {
		const options = { suspendAfter: 1, maxInFlight: 2 };
		const run = await on.start(imageNode(options, keepsGoing), images(30, 40));
		const real = LedgerRow.prototype.insert;
		jest.spyOn(LedgerRow.prototype, 'insert').mockImplementationOnce(async function (
			this: LedgerRow,
			...given
		) {
			await real.apply(this, given);
			throw new Error('Connection terminated unexpectedly');
		});
		expect(errorsOf((await run.end()).output)).toEqual([]);
	});
});
