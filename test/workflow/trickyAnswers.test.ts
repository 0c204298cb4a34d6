import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { type Settings, WAITS } from '../service/settings';
import {
	field,
	IMAGE_MODEL,
	imageNode,
	item,
	jsonOf,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
} from './support';

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

it('reads above what the service takes are refused, and all tasks come out', async () => {
	const limited: Settings = { readsPerSecond: { limit: 2, retryAfter: 2 } };
	const ends = await inBothModes(Array<Settings>(20).fill(limited));
	for (const { run, items, ms } of ends) {
		expect(items.map(({ state }) => state)).toEqual(Array(20).fill('SUCCESS'));
		expect(paidFor(run, items)).toEqual(Array(20).fill(ONCE));
		expect(ms).toBeLessThan(150 * SECOND);
	}
});

it('a task that cannot be read when its time is up is tried for as long again, and is not paid for again', async () => {
	const down: Settings = { readStatus: page(503, { times: 3 }), latencyMs: 0 };
	const { run, items } = await images([down], { timeout: 8 });
	expect(items).toMatchObject([{ state: 'SUCCESS', taskId: run.taskIds[0] }]);
	expect(run.tasks).toHaveLength(1);
});

it('a foreign id is read although a replica does not know it yet', async () => {
	const onTask = async (operation: string, taskId: string) => {
		const from = Date.now();
		const parameters = { resource: 'task', operation, taskId, downloadResults: false };
		const { output, error } = await (await on.start({ parameters })).end();
		return { output, error, ms: Date.now() - from };
	};
	const input = { prompt: 'Foreign', simulate: { createLagMs: 6 * SECOND, latencyMs: 0 } };
	for (const operation of ['get', 'wait']) {
		const { taskId } = on.service.createTask(IMAGE_MODEL, input);
		const { output } = await onTask(operation, taskId);
		expect(jsonOf(output)).toMatchObject([{ taskId, state: 'SUCCESS' }]);
	}
	const { error, ms } = await onTask('wait', 'nobody');
	expect(error?.message).toContain('knows no such task for this account (HTTP 404)');
	// A replica may lag: five minutes, which end in the first turn after the run has slept.
	expect(ms).toBeLessThan(7 * 60 * SECOND);
});

const BLOCKED = "The prompt 'a gymnast on a balance beam' was blocked";

it('a prompt that is refused with 403 is the error of its item alone', async () => {
	const blocked: Settings = { createStatus: { status: 403, body: { error: BLOCKED } } };
	for (const { run, items } of await inBothModes([{}, {}, blocked, {}, {}, {}])) {
		const said = items.map(({ error }) => error);
		const words = `The service does not allow this (HTTP 403): ${BLOCKED}`;
		expect(said).toEqual([undefined, undefined, words, undefined, undefined, undefined]);
		expect(paidFor(run, items).map(({ count }) => count)).toEqual([1, 1, 0, 1, 1, 1]);
	}
});

it('a limit that speaks of a quota or of billing is waited for', async () => {
	const error = {
		code: 'QUOTA_EXCEEDED',
		message: 'Too many concurrent tasks: quota of 2 running tasks',
	};
	const message = 'Slow down or upgrade your billing plan';
	const limits: Settings[] = [
		{ createStatus: { status: 429, times: 1, body: { error } } },
		{ createStatus: { status: 429, times: 1, body: { message }, retryAfter: 2 } },
		{},
	];
	for (const { run, items } of await inBothModes(limits)) {
		expect(items.map(({ state }) => state)).toEqual(Array(3).fill('SUCCESS'));
		expect(paidFor(run, items)).toEqual(Array(3).fill(ONCE));
	}
});

const DOWNLOADS = { downloadResults: true };

it('a result below the base URL comes with the key, and no other host sees it', async () => {
	const below: Settings = { mediaBelowBase: true, mediaNeedsKey: true };
	const switches = [below, { ...below, mediaRedirect: true }, {}];
	for (const { run, output } of await inBothModes(switches, DOWNLOADS)) {
		expect(filesOf(output)).toEqual(Array(3).fill('image/png'));
		const key = `Bearer ${on.service.apiKey}`;
		const asked = run.taskIds.map((taskId) =>
			run.requests
				.filter(({ path }) => path.startsWith(`/media/${taskId}`))
				.map(({ host, authorization }) => [host, authorization]),
		);
		expect(asked).toEqual([
			[['api', key]],
			[
				['api', key],
				['media', undefined],
			],
			[['media', undefined]],
		]);
	}
});

it('a file is what its bytes are, and is named after its item, prompt and task', async () => {
	const switches: Settings[] = [
		{ mediaFormat: 'jpeg', mediaType: 'image/png' },
		{ mediaFormat: 'mp4', mediaType: 'application/octet-stream' },
		{ mediaFormat: 'webp', mediaType: 'image/x-png' },
	];
	for (const { run, output } of await inBothModes(switches, DOWNLOADS)) {
		const expected = [
			['image/jpeg', 'jpg'],
			['video/mp4', 'mp4'],
			['image/webp', 'webp'],
		].map(([mimeType, extension], index) => ({
			mimeType,
			fileName: `${index + 1}-a-${index}-${run.taskIds[index]?.slice(-4)}.${extension}`,
		}));
		expect(output.map(({ binary }) => binary?.data)).toMatchObject(expected);
	}
});

it('results keep their places in a list of which some places are empty', async () => {
	const gaps: Settings = { resultCount: 4, resultShape: ['$1', null, '$3', ''] };
	const { output, hints } = await images([gaps], { ...DOWNLOADS, splitResults: true });
	expect(field(output, 'resultIndex')).toEqual([0, 2]);
	expect(filesOf(output)).toEqual(['image/png', 'image/png']);
	expect(hints.join()).toContain('2 of 4 results missing');
});

it('files go out as what they are, whatever they are called', async () => {
	const jpeg = Buffer.from('ffd8ffe0', 'hex').toString('base64');
	const text = Buffer.from('something').toString('base64');
	const rows = [
		{ data: text, mimeType: 'image/x-png', fileName: 'a.png' },
		{ data: text, mimeType: 'image/jpg', fileName: 'a' },
		{ data: jpeg, mimeType: 'application/octet-stream', fileName: 'a' },
	].map((data) => ({ json: {}, binary: { data } }));
	const parameters = {
		...{ resource: 'task', operation: 'create', model: 'any/model', downloadResults: false },
		input: '{ "prompt": "Called", "simulate": { "latencyMs": 0 } }',
		options: { files: { file: [{ inputField: 'frame', binaryPropertyName: 'data' }] } },
	};
	const { output } = await on.run({ parameters }, rows);
	const sent = output.map(
		({ json }) => on.service.tasks.get(String(json.taskId))?.record.input.frame,
	);
	expect(sent).toEqual([
		`data:image/png;base64,${text}`,
		`data:image/jpeg;base64,${text}`,
		`data:image/jpeg;base64,${jpeg}`,
	]);
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

/** What a service may write as the links of a result. */
const SHAPES: Record<string, [shape: unknown, links: number]> = {
	list: [['$1', '$2'], 2],
	text: ['$1', 1],
	'JSON text': ['["$1","$2"]', 2],
	commas: ['$1, $2', 2],
	lines: ['$1\n$2', 2],
	'an object of links': [{ first: '$1', second: '$2' }, 2],
	'objects with another key': [[{ image_url: '$1' }, { image_url: '$2' }], 2],
	'a link without a host': ['$path', 1],
	'an empty text': [[''], 0],
	null: [null, 0],
	nothing: ['$nothing', 0],
};

it('links in any shape are results, and a success without them is never silent', async () => {
	const switches = Object.values(SHAPES).map(([resultShape]): Settings => ({
		resultCount: 2,
		resultShape,
	}));
	const { output, hints, items, run } = await images(switches, {
		suspendAfter: 30,
		downloadResults: true,
	});
	const found = output.map(({ json, binary = {} }, index) => [
		Object.keys(SHAPES)[index],
		[json.resultUrls].flat().length,
		Object.keys(binary).length,
	]);
	const expected = Object.entries(SHAPES).map(([name, [, links]]) => [name, links, links]);
	expect(found).toEqual(expected);
	expect(paidFor(run, items)).toEqual(output.map(() => ONCE));
	expect(hints.join()).toContain(
		'3 tasks succeeded, and the service named no result that can be used',
	);
});

it('an empty account that is answered as 429 ends the batch within seconds, in its own words', async () => {
	const body = { error: { type: 'insufficient_quota', message: 'You exceeded your quota.' } };
	on.service.configure({ createStatus: { status: 429, after: 2, body } });
	const { run, items, ms } = await images(Array<Settings>(8).fill({}));
	expect(run.tasks).toHaveLength(2);
	expect(items.slice(0, 2).map(({ state }) => state)).toEqual(['SUCCESS', 'SUCCESS']);
	const words =
		'The account has not enough credits for this task (HTTP 429): You exceeded your quota.';
	const said = items.slice(2).map(({ error }) => error);
	const sent = on.creates.length - 2;
	// Those that were on their way together.
	expect(sent).toBeLessThanOrEqual(3);
	expect(said.filter((each) => each === words)).toHaveLength(sent);
	expect(said.filter((each) => each === `This item was not sent. ${words}`)).toHaveLength(6 - sent);
	expect(ms).toBeLessThan(30 * SECOND);
});

it('a wrong key that is answered as 400 gets five requests of a batch of 200', async () => {
	on.service.configure({ createStatus: { status: 400, body: { message: 'Invalid API key' } } });
	const { items } = await images(Array<Settings>(200).fill({}));
	expect(items[0]?.error).toContain('Invalid API key');
	expect(on.creates).toHaveLength(5);
});

it('an input that contains itself is an error that names the parameter', async () => {
	const circle = '={{ [{ seed: 7 }].map((a) => Object.assign(a, { self: a }))[0] }}';
	const { items } = await images([{}], { additionalInput: circle });
	expect(items[0]?.error).toMatch(/is a value that cannot be written as JSON/);
	expect(on.creates).toEqual([]);
});
