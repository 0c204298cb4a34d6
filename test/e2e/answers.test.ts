import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/money';
import { type Settings, WAITS } from '../service/settings';
import { outputItems } from '../n8n/client';
import { atTheSameTime, errorOf, itemsOf, promptOf, type Run, statesOf, succeeded } from './run';
import { itemNodes, node } from './nodes';
import { AT_ONCE, openScene } from './scene';

/**
 * A service that trickles its answers, has a proxy before it, lags behind itself and refuses reads: what is paid for, what
 * comes out, after how long, and what is said.
 */

const SECOND = 1_000;

const PAGE = '<html><h1>Guru Meditation</h1></html>';

/** An answer of something before the service, which has nothing to do with what the service does. */
const page = (status: number, more: object = {}) => ({ status, body: PAGE, ...more });

const MODES: Record<string, IDataObject> = {
	held: { suspendAfter: 30 },
	asleep: AT_ONCE,
};

/** The moments of a run, milliseconds. */
const lasted = ({ startedAt, stoppedAt }: { startedAt?: unknown; stoppedAt?: unknown }) =>
	Date.parse(String(stoppedAt)) - Date.parse(String(startedAt));

/** The item of each task, and how many tasks each item has. */
function paidFor(run: Run, items: readonly IDataObject[]) {
	return items.map((item) => {
		const tasks = run.tasks.filter(({ record }) => promptOf(record) === promptOf(item));
		return { count: tasks.length, isNamed: tasks.some(({ taskId }) => taskId === item.taskId) };
	});
}

const ONCE = { count: 1, isNamed: true };

const scene = openScene({ clears: false });

describe('at the same time', () => {
	const story = atTheSameTime(test, 300);

	/** Runs an item for each of these, held and asleep. @returns each run, with its items and how long it took */
	async function inBothModes(name: string, switches: Settings[], options: IDataObject = {}) {
		const items = switches.map((each) => ({ latencyMs: SECOND, ...each }) as IDataObject);
		return await Promise.all(
			Object.entries(MODES).map(async ([mode, more]) => {
				const order = { name: `${name}, ${mode}`, options: { ...more, ...options } };
				const run = await scene.startImages(items, order);
				const execution = succeeded(await run.end(7 * 60 * SECOND));
				const output = outputItems(execution, 'Media');
				const ms = lasted(execution);
				console.log(`${order.name}: ${run.tasks.length} tasks, ${run.reads} reads, ${ms} ms`);
				return { mode, run, output, items: itemsOf(execution), ms };
			}),
		);
	}

	const filesOf = (output: readonly INodeExecutionData[]) =>
		output.map(({ binary }) => binary?.data?.mimeType);

	story('a create whose answer trickles to its end brings its task', async () => {
		const slow: Settings = { createWay: { fate: 'trickles', everyMs: 150 } };
		for (const { run, items, ms } of await inBothModes('Slow create', [slow, {}, slow])) {
			expect(items.map(({ state }) => state)).toEqual(Array(3).fill('SUCCESS'));
			expect(paidFor(run, items)).toEqual([ONCE, ONCE, ONCE]);
			expect(ms).toBeGreaterThan(5 * SECOND);
		}
	});

	story(
		'a create whose answer trickles for ever is given up after two minutes, and is in doubt',
		async () => {
			const endless: Settings[] = [
				{ createWay: { fate: 'trickles', everyMs: 10 * SECOND } },
				{ createWay: { fate: 'trickles from its head', everyMs: 10 * SECOND } },
			];
			for (const { run, items, ms } of await inBothModes('Endless create', [{}, ...endless])) {
				const [first, ...others] = items;
				expect(first).toMatchObject({ state: 'SUCCESS', taskId: run.taskIds[0] });
				for (const { error, taskId } of others) {
					expect(error).toBe(
						'It is not known whether the task was created. The service gave no complete answer',
					);
					expect(taskId).toBeUndefined();
				}
				expect(paidFor(run, items).map(({ count }) => count)).toEqual([1, 1, 1]);
				expect(ms).toBeGreaterThan(115 * SECOND);
				// A create in doubt has the next one wait.
				expect(ms).toBeLessThan(330 * SECOND);
			}
		},
	);

	const STATUSES = [503, 502, 520, 499];

	story('a page of a proxy may cover a task: the create is sent once', async () => {
		const covered = STATUSES.map((status): Settings => ({
			createStatus: page(status, { retryAfter: 1, taken: true }),
		}));
		for (const { mode, run, items, ms } of await inBothModes('Covered', [...covered, {}])) {
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

	story(
		'a create that is refused is sent again when the answer says so, wherever it says it',
		async () => {
			const switches = WAITS.map((retryAfterIn): Settings => ({
				createStatus: { status: 429, times: 1, body: {}, retryAfter: 3, retryAfterIn },
			}));
			for (const { run, items, ms } of await inBothModes('Refused', switches)) {
				expect(items.map(({ state }) => state)).toEqual(Array(5).fill('SUCCESS'));
				expect(paidFor(run, items)).toEqual(Array(5).fill(ONCE));
				expect(ms).toBeLessThan(90 * SECOND);
			}
		},
	);

	/** What reads may be answered before the record of a task that exists. */
	const TROUBLES: Record<string, Settings> = {
		'a replica lags': { createLagMs: 5 * SECOND },
		'a proxy': { readStatus: page(503, { times: 2, retryAfter: 1 }) },
		'520 of a proxy': { readStatus: page(520, { times: 2 }) },
		'499': { readStatus: page(499, { times: 1 }) },
		'each second one fails': { readStatus: page(502, { every: 2 }), latencyMs: 6 * SECOND },
		...Object.fromEntries(
			[402, 405, 409, 423, 425].map((status) => [
				`${status}`,
				{ readStatus: { status, times: 1 } },
			]),
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

	story(
		'a task that is paid for is read until its time is up, whatever single reads are answered',
		async () => {
			for (const { mode, run, items, ms } of await inBothModes('Read', Object.values(TROUBLES))) {
				const ends = Object.keys(TROUBLES).map((name, index) => [name, items[index]?.state]);
				const expected = Object.keys(TROUBLES).map((name) => [name, 'SUCCESS']);
				expect({ mode, ends }).toEqual({ mode, ends: expected });
				expect(paidFor(run, items)).toEqual(items.map(() => ONCE));
				expect(ms).toBeLessThan(150 * SECOND);
			}
		},
	);

	story(
		'a read whose answer trickles is given up after half a minute, and the next one brings the record',
		async () => {
			const slow: Settings[] = [
				{ readWay: { fate: 'trickles', times: 1 } },
				{ readWay: { fate: 'trickles from its head', times: 1 } },
				{ readWay: { fate: 'stalls', times: 1 } },
			];
			for (const { run, items, ms } of await inBothModes('Slow read', [...slow, {}])) {
				expect(items.map(({ state }) => state)).toEqual(Array(4).fill('SUCCESS'));
				expect(paidFor(run, items)).toEqual(Array(4).fill(ONCE));
				expect(ms).toBeGreaterThan(29 * SECOND);
				expect(ms).toBeLessThan(120 * SECOND);
			}
		},
	);

	story('reads above what the service takes are refused, and all tasks come out', async () => {
		const limited: Settings = { readsPerSecond: { limit: 2, retryAfter: 2 } };
		const ends = await inBothModes('Limited', Array<Settings>(20).fill(limited));
		for (const { run, items, ms } of ends) {
			expect(items.map(({ state }) => state)).toEqual(Array(20).fill('SUCCESS'));
			expect(paidFor(run, items)).toEqual(Array(20).fill(ONCE));
			expect(ms).toBeLessThan(150 * SECOND);
		}
	});

	story(
		'a task that cannot be read when its time is up is tried for as long again, and is not paid for again',
		async () => {
			const down: Settings = { readStatus: page(503, { times: 3 }), latencyMs: 0 };
			const run = await scene.startImages([down as IDataObject], {
				name: 'Unread',
				options: { timeout: 8 },
			});
			const items = itemsOf(succeeded(await run.end()));
			expect(items).toMatchObject([{ state: 'SUCCESS', taskId: run.taskIds[0] }]);
			expect(run.tasks).toHaveLength(1);
		},
	);

	story('a foreign id is read although a replica does not know it yet', async () => {
		const input = { prompt: 'Foreign', simulate: { createLagMs: 6 * SECOND, latencyMs: 0 } };
		for (const operation of ['get', 'wait']) {
			const { taskId } = scene.service.createTask(IMAGE_MODEL, input);
			const execution = succeeded(await (await scene.startOnTasks(operation, [taskId])).end());
			expect(itemsOf(execution)).toMatchObject([{ taskId, state: 'SUCCESS' }]);
		}
		const nobody = await scene.startOnTasks('wait', ['nobody']);
		const execution = await nobody.end();
		expect(errorOf(execution)?.message).toContain(
			'knows no task nobody for this account (HTTP 404)',
		);
		expect(lasted(execution)).toBeLessThan(40 * SECOND);
	});

	const BLOCKED = "The prompt 'a gymnast on a balance beam' was blocked";

	story('a prompt that is refused with 403 is the error of its item alone', async () => {
		const blocked: Settings = { createStatus: { status: 403, body: { error: BLOCKED } } };
		for (const { run, items } of await inBothModes('Blocked', [{}, {}, blocked, {}, {}, {}])) {
			const said = items.map(({ error }) => error);
			const words = `The service does not allow this (HTTP 403): ${BLOCKED}`;
			expect(said).toEqual([undefined, undefined, words, undefined, undefined, undefined]);
			expect(paidFor(run, items).map(({ count }) => count)).toEqual([1, 1, 0, 1, 1, 1]);
		}
	});

	story('a limit that speaks of a quota or of billing is waited for', async () => {
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
		for (const { run, items } of await inBothModes('Quota', limits)) {
			expect(items.map(({ state }) => state)).toEqual(Array(3).fill('SUCCESS'));
			expect(paidFor(run, items)).toEqual(Array(3).fill(ONCE));
		}
	});

	const DOWNLOADS = { downloadResults: true };

	story('a result below the base URL comes with the key, and no other host sees it', async () => {
		const below: Settings = { mediaBelowBase: true, mediaNeedsKey: true };
		const switches = [below, { ...below, mediaRedirect: true }, {}];
		for (const { run, output } of await inBothModes('Below', switches, DOWNLOADS)) {
			expect(filesOf(output)).toEqual(Array(3).fill('image/png'));
			const key = `Bearer ${scene.service.apiKey}`;
			const asked = run.taskIds.map((taskId) =>
				scene.service.requests
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

	story('a link that ends is read anew, and so all of 60 that finish together arrive', async () => {
		const ending: Settings = { linkLifeMs: 15 * SECOND, mediaDelayMs: 5 * SECOND };
		const late: Settings = {
			linkLifeMs: 2 * SECOND,
			mediaStatus: { status: 503, times: 1, retryAfter: 4 },
		};
		const switches = [late, ...Array<Settings>(59).fill(ending)];
		const options = { ...DOWNLOADS, maxInFlight: 60 };
		for (const { run, output, items } of await inBothModes('Ending', switches, options)) {
			expect(filesOf(output)).toEqual(Array(60).fill('image/png'));
			expect(paidFor(run, items)).toEqual(Array(60).fill(ONCE));
		}
	});

	story('a file is what its bytes are, and is named after its item, prompt and task', async () => {
		const switches: Settings[] = [
			{ mediaFormat: 'jpeg', mediaType: 'image/png' },
			{ mediaFormat: 'mp4', mediaType: 'application/octet-stream' },
			{ mediaFormat: 'webp', mediaType: 'image/x-png' },
		];
		for (const { mode, run, output } of await inBothModes('Bytes', switches, DOWNLOADS)) {
			const expected = [
				['image/jpeg', 'jpg'],
				['video/mp4', 'mp4'],
				['image/webp', 'webp'],
			].map(([mimeType, extension], index) => ({
				mimeType,
				fileName: `${index + 1}-bytes-${mode}-${index}-${run.taskIds[index]?.slice(-4)}.${extension}`,
			}));
			expect(output.map(({ binary }) => binary?.data)).toMatchObject(expected);
		}
	});

	story('results keep their places in a list of which some places are empty', async () => {
		const gaps: Settings = { resultCount: 4, resultShape: ['$1', null, '$3', ''] };
		const options = { ...DOWNLOADS, splitResults: true };
		const run = await scene.startImages([{ ...gaps, latencyMs: SECOND } as IDataObject], {
			name: 'Gaps',
			options,
		});
		const execution = succeeded(await run.end());
		const output = outputItems(execution, 'Media');
		expect(output.map(({ json }) => json.resultIndex)).toEqual([0, 2]);
		expect(filesOf(output)).toEqual(['image/png', 'image/png']);
		const [{ hints = [] } = {}] = execution.data.resultData.runData.Media ?? [];
		expect(hints.map(({ message }) => message).join()).toContain('2 of 4 results missing');
	});

	story('files go out as what they are, whatever they are called', async () => {
		const jpeg = Buffer.from('ffd8ffe0', 'hex').toString('base64');
		const text = Buffer.from('something').toString('base64');
		const rows = [
			{ content: text, label: 'image/x-png', name: 'a.png' },
			{ content: text, label: 'image/jpg', name: 'a' },
			{ content: jpeg, label: 'application/octet-stream', name: 'a' },
		];
		const toFile = node(
			'n8n-nodes-base.convertToFile',
			'File',
			{
				operation: 'toBinary',
				sourceProperty: 'content',
				options: { mimeType: '={{ $json.label }}', fileName: '={{ $json.name }}' },
			},
			1.1,
		);
		const order = scene.media({
			resource: 'task',
			operation: 'create',
			model: 'any/model',
			input: '{ "prompt": "Called", "simulate": { "latencyMs": 0 } }',
			options: { files: { file: [{ inputField: 'frame', binaryPropertyName: 'data' }] } },
			downloadResults: false,
		});
		const run = await scene.start('Called', itemNodes('Rows', rows), toFile, order);
		const items = itemsOf(succeeded(await run.end()));
		const sent = items.map(
			({ taskId }) => scene.service.tasks.get(String(taskId))?.record.input.frame,
		);
		expect(sent).toEqual([
			`data:image/png;base64,${text}`,
			`data:image/jpeg;base64,${text}`,
			`data:image/jpeg;base64,${jpeg}`,
		]);
	});

	/** What a media host may answer before the file. */
	const HOSTS: Record<string, Settings> = {
		trickles: { mediaWay: { fate: 'trickles', times: 1 } },
		'trickles from its head': { mediaWay: { fate: 'trickles from its head', times: 1 } },
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

	story('a fresh file is fetched until it comes, whatever its host answers first', async () => {
		const options = { downloadResults: true };
		for (const { mode, run, output, items, ms } of await inBothModes(
			'File',
			Object.values(HOSTS),
			options,
		)) {
			const files = filesOf(output).map((type, index) => [Object.keys(HOSTS)[index], type]);
			const expected = Object.keys(HOSTS).map((name) => [name, 'image/png']);
			expect({ mode, files }).toEqual({ mode, files: expected });
			expect(paidFor(run, items)).toEqual(items.map(() => ONCE));
			// A minute for the hosts that trickle.
			expect(ms).toBeGreaterThan(60 * SECOND);
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

	story('links in any shape are results, and a success without them is never silent', async () => {
		const switches = Object.values(SHAPES).map(([resultShape]): Settings => ({
			resultCount: 2,
			resultShape,
		}));
		const run = await scene.startImages(switches as IDataObject[], {
			name: 'Shapes',
			options: { suspendAfter: 30, downloadResults: true },
		});
		const execution = succeeded(await run.end());
		const output = outputItems(execution, 'Media');
		const found = output.map(({ json, binary = {} }, index) => [
			Object.keys(SHAPES)[index],
			[json.resultUrls].flat().length,
			Object.keys(binary).length,
		]);
		const expected = Object.entries(SHAPES).map(([name, [, links]]) => [name, links, links]);
		expect(found).toEqual(expected);
		expect(paidFor(run, itemsOf(execution))).toEqual(output.map(() => ONCE));
		const [{ hints = [] } = {}] = execution.data.resultData.runData.Media ?? [];
		expect(hints.map(({ message }) => message).join()).toContain(
			'3 tasks succeeded, and the service named no result that can be used',
		);
	});
});

describe('one after the other', () => {
	beforeEach(() => scene.clear());

	test('an empty account that is answered as 429 ends the batch within seconds, in its own words', async () => {
		const body = { error: { type: 'insufficient_quota', message: 'You exceeded your quota.' } };
		scene.service.configure({ createStatus: { status: 429, after: 2, body } });
		const run = await scene.startImages(Array<IDataObject>(8).fill({ latencyMs: SECOND }), {
			name: 'Empty',
		});
		const execution = succeeded(await run.end());
		const items = itemsOf(execution);
		expect(run.tasks).toHaveLength(2);
		expect(statesOf(execution).slice(0, 2)).toEqual(['SUCCESS', 'SUCCESS']);
		const words =
			'The account has not enough credits for this task (HTTP 429): You exceeded your quota.';
		const said = items.slice(2).map(({ error }) => error);
		const sent = scene.creates.length - 2;
		// Those that were on their way together.
		expect(sent).toBeLessThanOrEqual(3);
		expect(said.filter((each) => each === words)).toHaveLength(sent);
		expect(said.filter((each) => each === `This item was not sent. ${words}`)).toHaveLength(
			6 - sent,
		);
		expect(lasted(execution)).toBeLessThan(30 * SECOND);
	});

	test('a wrong key that is answered as 400 gets five requests of a batch of 200', async () => {
		const body = { message: 'Invalid API key' };
		scene.service.configure({ createStatus: { status: 400, body } });
		const run = await scene.startImages(Array<IDataObject>(200).fill({}), { name: 'Wrong' });
		const execution = await run.end();
		expect(execution.status).toBe('error');
		expect(errorOf(execution)?.message).toContain('Invalid API key');
		expect(scene.creates).toHaveLength(5);
	});

	test('an input that contains itself is an error that names the parameter', async () => {
		const circle = '={{ [{ seed: 7 }].map((a) => Object.assign(a, { self: a }))[0] }}';
		const run = await scene.startImages([{}], {
			name: 'Circle',
			options: { additionalInput: circle },
		});
		expect(errorOf(await run.end())?.message).toMatch(/is a value that cannot be written as JSON/);
		expect(scene.creates).toEqual([]);
	});

	test('the balance is read again where the first answers are no answers', async () => {
		const balance = scene.stage.mediaNode('mediaGenerationCredits', 'Credits', {});
		scene.service.configure({
			creditsStatus: { status: 429, times: 1, retryAfter: 2 },
			creditsWay: { fate: 'cut short', times: 1 },
		});
		const execution = succeeded(await scene.run('Balance', balance));
		expect(itemsOf(execution, 'Credits')).toMatchObject([{ balance: 100_000 }]);
		expect(scene.reads).toHaveLength(3);
	});

	test("the credential's test shows a key that is refused in the body of a 200", async () => {
		const { stage, service, client } = scene;
		const credential = { ...stage.credential, type: 'mediaGenerationApi' };
		const verdictOn = async (creditsShape?: IDataObject) => {
			service.configure({ creditsShape });
			const data = { baseUrl: service.url, apiKey: service.apiKey };
			return await client.testCredential(credential, data);
		};
		const refused = { status: 'Error', message: expect.stringContaining('key') as string };
		expect(await verdictOn()).toMatchObject({ status: 'OK' });
		expect(await verdictOn({ code: 401, message: 'No.' })).toMatchObject(refused);
		expect(await verdictOn({ status: '403' })).toMatchObject(refused);
	});

	test('a callback whose read trickles is answered in time, and starts the workflow once', async () => {
		scene.service.configure({
			readWay: { fate: 'trickles', times: 1 },
			callbackBackoffMs: SECOND,
		});
		const { address } = await scene.publish();
		const { taskId } = scene.service.createTask(
			IMAGE_MODEL,
			{ prompt: 'Called back', simulate: { latencyMs: 0 } },
			address,
		);
		await scene.expectArrived([taskId]);
		expect(scene.service.callbacks.map(({ status }) => status)).toEqual([503, 200]);
	});
});
