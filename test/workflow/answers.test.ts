import type { IDataObject } from 'n8n-workflow';

import type { Settings } from '../service/settings';
import { executeContext } from './engine';
import {
	field,
	imageNode,
	inDoubt,
	item,
	jsonOf,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
	text,
} from './support';

/** Answers that the specification does not show, in whole runs: what is paid for, and what comes out. */

const on = stage();

const RECORD = '$record';
const TASK = { taskId: '$taskId' };

// How an answer is read is decided in test/unit/service.
it.each<[string, unknown, unknown]>([
	['data with a list', { data: [TASK] }, { data: [RECORD] }],
	['data that is the id', { code: 200, data: '$taskId' }, { code: 200, data: RECORD }],
	[
		'an id of the user',
		{ input: { taskId: 'mine' }, metadata: TASK, data: TASK },
		{ input: { state: 'FAILURE', taskId: 'mine' }, data: RECORD },
	],
])('%s: tasks are read to their end', async (_what, createShape, readShape) => {
	on.service.configure({ createShape, readShape });
	const { output } = await on.images(['a', 'b']);
	expect(field(output, 'taskId')).toEqual(on.taskIds);
	expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
	expect(field(output, 'resultUrls').flat()).toHaveLength(2);
});

it('an answer with several ids is in doubt: no id is guessed, nothing is sent again, and the log has the answer', async () => {
	const others = { id: 'req_1', tasks: [TASK, { taskId: 'task-2' }], prompt: 'x'.repeat(100_000) };
	on.service.configure({ createShape: others });
	const info = jest.spyOn(executeContext(on.workflow({})).logger, 'info');
	const { error, description } = await on.images(['a']);
	expect(error?.message).toContain('It is not known whether the task was created');
	expect(on.creates).toHaveLength(1);
	expect(JSON.stringify(info.mock.calls)).toContain(on.taskIds[0]);
	info.mockRestore();
	expect(`${error?.message}${description}`.length).toBeLessThan(2000);
});

const MODES: Array<[string, IDataObject]> = [
	['held', { suspendAfter: 30 }],
	['asleep', { suspendAfter: 0, maxInFlight: 1_000 }],
];

/** An answer of something before the service, which has nothing to do with what the service does. */
const page = (status: number, more: object = {}) => ({ status, body: '<h1>Sorry</h1>', ...more });

/** What reads may be answered before the record of a task that exists. */
const TROUBLES: Record<string, Settings> = {
	'a replica lags': { createLagMs: 5 * SECOND },
	'a proxy': { readStatus: page(503, { times: 2, retryAfter: 1 }) },
	'each second one fails': { readStatus: page(502, { every: 2 }), latencyMs: 6 * SECOND },
	'402': { readStatus: { status: 402, times: 1 } },
	'an empty 200': { readStatus: { status: 200, body: '', times: 4 } },
	'not yet, in its own way': {
		readStatus: { status: 200, body: { code: 500, data: null }, times: 4 },
	},
	'no connection': { readWay: { fate: 'lost', times: 2 } },
	'half of it': { readWay: { fate: 'cut short', times: 2 } },
};

describe.each(MODES)('in a run that is %s', (_mode, options) => {
	const run = async (switches: Settings[]) => {
		const items = switches.map((each, index) => item(`p${index}`, { latencyMs: SECOND, ...each }));
		return await on.begin(imageNode(options, keepsGoing), prompts(...items)).end();
	};

	it('a page of a proxy may cover a task: the create is sent once', async () => {
		const covered = [503, 520].map((status): Settings => ({
			createStatus: page(status, { retryAfter: 1, taken: true }),
		}));
		const { output } = await run([...covered, {}]);
		expect(inDoubt(output)).toEqual([text('(HTTP 503)'), text('(HTTP 520)')]);
		expect(on.ordered).toEqual(['p0', 'p1', 'p2']);
		expect(output.at(-1)?.json).toMatchObject({ state: 'SUCCESS', taskId: on.taskIds.at(-1) });
	});

	it('a task that is paid for is read until its time is up, whatever single reads are answered', async () => {
		const { output } = await run(Object.values(TROUBLES));
		const ends = Object.keys(TROUBLES).map((name, index) => [name, output[index]?.json.state]);
		expect(ends).toEqual(Object.keys(TROUBLES).map((name) => [name, 'SUCCESS']));
		expect(field(output, 'taskId').sort()).toEqual([...on.taskIds].sort());
		expect(on.elapsed).toBeLessThan(10 * MINUTE);
	});
});

describe('a record that has no state, and says with an error code why', () => {
	const readShape = {
		...{ code: 400, msg: 'flagged by the content policy' },
		data: { ...TASK, successFlag: 3, errorMessage: 'x'.repeat(100_000) },
	};

	it('ends its item after five minutes, as a failure that costs nothing', async () => {
		on.service.configure({ readShape });
		const items: Parameters<typeof prompts> = ['a', item('b', { readShape: RECORD })];
		const { output, error } = await on.images(items, { suspendAfter: 60 });
		expect(error).toBeUndefined();
		expect(output[0]?.json).toMatchObject({
			taskId: on.taskIds[0],
			state: 'FAILURE',
			error: `The task record has no state: flagged by the content policy (task ${on.taskIds[0]})`,
		});
		expect(output[1]?.json).toMatchObject({ state: 'SUCCESS' });
		expect(on.elapsed).toBeGreaterThan(5 * MINUTE);
		expect(on.elapsed).toBeLessThan(6 * MINUTE);
		expect(on.creates).toHaveLength(2);
	});

	it('is read on where it gets a state before that', async () => {
		on.service.configure({ readShape });
		setTimeout(() => on.service.configure({ readShape: RECORD }), 4 * MINUTE);
		const { output } = await on.images(['a']);
		expect(field(output, 'state')).toEqual(['SUCCESS']);
	});
});

describe('results that are data', () => {
	const png = Buffer.concat([
		Buffer.from('iVBORw0KGgo=', 'base64'),
		Buffer.alloc(100_000, 'ab1'),
	]).toString('base64');
	const uri = `data:image/png;base64,${png}`;
	/** More than a record without its file. */
	const SMALL = 20_000;

	it.each<[string, unknown]>([
		['data URIs', [uri]],
		['base64', [png]],
		['b64_json', [{ b64_json: png, mime_type: 'image/png' }]],
	])('%s become files, and no item repeats them', async (_what, resultShape) => {
		on.service.configure({ resultShape });
		const { output } = await on.images(['a', 'b'], { downloadResults: true });
		const files = output.map(({ binary }) => [binary?.data?.mimeType, binary?.data?.data]);
		expect(files).toEqual(Array(2).fill(['image/png', png]));
		expect(JSON.stringify(jsonOf(output)).length).toBeLessThan(SMALL);
	});

	it.each([true, false])(
		'are never stored with a run that sleeps, and leave whole (downloads: %p)',
		async (downloadResults) => {
			on.service.configure({ resultShape: [uri] });
			const slow = item('slow', { latencyMs: 10 * MINUTE, resultShape: '$1' });
			const options: IDataObject = { downloadResults, suspendAfter: 0.5 };
			const run = await on.start(imageNode(options), prompts('a', slow));
			await run.wake();
			expect(run.isAsleep).toBe(true);
			expect(JSON.stringify(run.data)).not.toContain(uri.slice(0, 5000));
			const { output } = await run.end();
			if (downloadResults) {
				expect(JSON.stringify(output[0]?.json).length).toBeLessThan(SMALL);
				expect(output[0]?.binary?.data?.mimeType).toBe('image/png');
			} else expect(field(output, 'resultUrls')[0]).toEqual([uri]);
		},
	);
});

it('a failure that was charged for does not advise to create it again', async () => {
	on.service.configure({ extraFields: { creditsConsumed: 8 } });
	const { output } = await on.images(['a', item('b', { outcome: 'FAILURE' })]);
	const { advice } = output[1]?.json ?? {};
	expect(advice).toContain('charged 8 credits');
	expect(advice).not.toContain('Retry Failed Tasks');
});
