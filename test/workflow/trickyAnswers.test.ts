import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { type Settings, WAITS } from '../service/settings';
import { imageNode, item, jsonOf, keepsGoing, MINUTE, prompts, SECOND, stage } from './support';

/**
 * A service that trickles its answers, has a proxy before it, lags behind itself and refuses reads: what is paid for, what
 * comes out, after how long, and what is said.
 */

const on = stage();

const PAGE = '<html><h1>Guru Meditation</h1></html>';

/** An answer of something before the service, which has nothing to do with what the service does. */
const page = (status: number, more: object = {}) => ({ status, body: PAGE, ...more });

const MODES: Record<string, IDataObject> = {
	held: { suspendAfter: 30 },
	asleep: { suspendAfter: 0, maxInFlight: 1_000 },
};

/** Runs an image for each of these. @returns what has left, how long it took without its sleeps, and what the service has seen of it */
async function images(switches: Settings[], options: IDataObject = {}) {
	on.service.clear();
	const from = Date.now();
	const items = switches.map((each, index) => item(`a ${index}`, { latencyMs: SECOND, ...each }));
	const started = await on.start(imageNode(options, keepsGoing), prompts(...items));
	const { output, hints } = await started.end();
	const { tasks, taskIds } = on;
	const requests = [...on.service.requests];
	return {
		output,
		hints,
		items: jsonOf(output),
		ms: Date.now() - from - started.sleeps.length * MINUTE,
		run: { tasks, taskIds, requests },
	};
}
type Run = Awaited<ReturnType<typeof images>>['run'];

/** The same, held and asleep. */
async function inBothModes(switches: Settings[], options: IDataObject = {}) {
	const ends = [];
	for (const [mode, more] of Object.entries(MODES)) {
		ends.push({ mode, ...(await images(switches, { ...more, ...options })) });
	}
	return ends;
}

const filesOf = (output: readonly INodeExecutionData[]) =>
	output.map(({ binary }) => binary?.data?.mimeType);

/** How many tasks each item has, and whether the item names one of them. */
const paidFor = ({ tasks }: Run, items: readonly IDataObject[]) =>
	items.map((json, index) => {
		const own = tasks.filter(({ record }) => record.input.prompt === `a ${index}`);
		return { count: own.length, isNamed: own.some(({ taskId }) => taskId === json.taskId) };
	});

const ONCE = { count: 1, isNamed: true };

const STATUSES = [503, 502, 520, 499];

it('a page of a proxy may cover a task: the create is sent once', async () => {
	const covered = STATUSES.map((status): Settings => ({
		createStatus: page(status, { retryAfter: 1, taken: true }),
	}));
	for (const { mode, run, items, ms } of await inBothModes([...covered, {}])) {
		const said = items.map(({ error }) => error);
		const expected = STATUSES.map(
			(status) =>
				`It is not known whether the task was created. The service is not working at the moment (HTTP ${status})`,
		);
		expect({ mode, said }).toEqual({ mode, said: [...expected, undefined] });
		expect(paidFor(run, items).map(({ count }) => count)).toEqual([1, 1, 1, 1, 1]);
		expect(items.at(-1)).toMatchObject({ state: 'SUCCESS', taskId: run.taskIds.at(-1) });
		// After three orders in a row without a known outcome the run rests for one minute, then for two.
		expect(ms).toBeLessThan(300 * SECOND);
	}
});

it('a create that is refused is sent again when the answer says so, wherever it says it', async () => {
	const switches = WAITS.map((retryAfterIn): Settings => ({
		createStatus: { status: 429, times: 1, body: {}, retryAfter: 3, retryAfterIn },
	}));
	for (const { run, items, ms } of await inBothModes(switches)) {
		expect(items.map(({ state }) => state)).toEqual(Array(5).fill('SUCCESS'));
		expect(paidFor(run, items)).toEqual(Array(5).fill(ONCE));
		expect(ms).toBeLessThan(90 * SECOND);
	}
});

/** What reads may be answered before the record of a task that exists. */
const TROUBLES: Record<string, Settings> = {
	'a replica lags': { createLagMs: 5 * SECOND },
	'a proxy': { readStatus: page(503, { times: 2, retryAfter: 1 }) },
	'520 of a proxy': { readStatus: page(520, { times: 2 }) },
	'499': { readStatus: page(499, { times: 1 }) },
	'each second one fails': { readStatus: page(502, { every: 2 }), latencyMs: 6 * SECOND },
	...Object.fromEntries(
		[402, 405, 409, 423, 425].map((status) => [`${status}`, { readStatus: { status, times: 1 } }]),
	),
	nothing: { readStatus: { status: 204, body: '', times: 4 } },
	'an empty 200': { readStatus: { status: 200, body: '', times: 4 } },
	'not yet, in its own way': {
		readStatus: { status: 200, body: { code: 500, data: null }, times: 4 },
	},
	'a record without a state': { readStatus: { status: 200, body: { progress: 7 }, times: 4 } },
	'no connection': { readWay: { fate: 'lost', times: 2 } },
	'half of it': { readWay: { fate: 'cut short', times: 2 } },
};

it('a task that is paid for is read until its time is up, whatever single reads are answered', async () => {
	for (const { mode, run, items, ms } of await inBothModes(Object.values(TROUBLES))) {
		const ends = Object.keys(TROUBLES).map((name, index) => [name, items[index]?.state]);
		const expected = Object.keys(TROUBLES).map((name) => [name, 'SUCCESS']);
		expect({ mode, ends }).toEqual({ mode, ends: expected });
		expect(paidFor(run, items)).toEqual(items.map(() => ONCE));
		expect(ms).toBeLessThan(150 * SECOND);
	}
});

it('a task that cannot be read when its time is up is tried for as long again, and is not paid for again', async () => {
	const down: Settings = { readStatus: page(503, { times: 3 }), latencyMs: 0 };
	const { run, items } = await images([down], { timeout: 8 });
	expect(items).toMatchObject([{ state: 'SUCCESS', taskId: run.taskIds[0] }]);
	expect(run.tasks).toHaveLength(1);
});

/** What a media host may answer before the file. */
const HOSTS: Record<string, Settings> = {
	'a proxy': { mediaStatus: page(503, { times: 1, retryAfter: 2 }) },
	...Object.fromEntries(
		[404, 403, 520, 522, 499, 425].map((status) => [
			`${status}`,
			{ mediaStatus: page(status, { times: 1 }) },
		]),
	),
	'a page': { mediaStatus: page(200, { times: 1 }) },
	nothing: { mediaStatus: { status: 200, body: '', contentType: 'image/png', times: 1 } },
	JSON: { mediaStatus: { status: 200, body: { error: 'not ready' }, times: 1 } },
	'half of it': { mediaWay: { fate: 'cut short', times: 1 } },
};

it('a fresh file is fetched until it comes, whatever its host answers first', async () => {
	const options = { downloadResults: true };
	for (const { mode, run, output, items, ms } of await inBothModes(Object.values(HOSTS), options)) {
		const files = filesOf(output).map((type, index) => [Object.keys(HOSTS)[index], type]);
		const expected = Object.keys(HOSTS).map((name) => [name, 'image/png']);
		expect({ mode, files }).toEqual({ mode, files: expected });
		expect(paidFor(run, items)).toEqual(items.map(() => ONCE));
		expect(ms).toBeLessThan(200 * SECOND);
	}
});
