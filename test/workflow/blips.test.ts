import type { IDataObject } from 'n8n-workflow';

import type { Settings } from '../service/settings';
import {
	errorsOf,
	field,
	IMAGE_MODEL,
	imageNode,
	images,
	inDoubt,
	item,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
	text,
} from './support';
import { pass, passUntil } from './time';

/** A stretch in which something before the service, or the service itself, answers every request in the same way. */

const on = stage();

const PAGE = (status: number) => `<html><head><title>${status}</title></head></html>`;

type Answer = { status: number } & Record<string, unknown>;

/** One for each meaning: what each status means is decided in test/unit/service/meaning.test.ts. */
const GATEWAY: Answer = { status: 404, body: '404 page not found\n', contentType: 'text/plain' };
const KEY: Answer = { status: 401, body: { error: { message: 'invalid api key' } } };
const ITEM: Answer = { status: 422, body: { detail: 'unprocessable' } };
const LIMIT: Answer = { status: 503, body: { error: 'busy' }, retryAfter: 5 };
/** A gateway was not connected with the service, so nothing was taken. */
const NOT_CONNECTED = { status: 521, body: PAGE(521), headers: { server: 'cloudflare' } };
/** After this nobody knows whether an order was taken. */
const DOUBTFUL: Answer = { status: 500, body: { error: 'internal' } };

const many = (count: number, seconds = 6) =>
	Array.from({ length: count }, (_, i) =>
		item(`p${i}`, { latencyMs: [seconds * 500, seconds * 1500] }),
	);

const begin = (items: Parameters<typeof prompts>, options: IDataObject = {}, node = keepsGoing) =>
	on.begin(imageNode(options, node), prompts(...items));

/** The service, or something before it, is away for so long, when it has taken so many orders. */
async function disturb(settings: Settings, ms: number, taken = 0): Promise<void> {
	await passUntil(() => on.created >= taken);
	on.service.configure(settings);
	await pass(ms);
	on.service.resetSettings();
}

const ordersWith = (status: number) =>
	on.creates.filter((create) => create.status === status).length;

it.each<[string, Answer, number, boolean]>([
	["a gateway's 404, to all requests, in the middle", GATEWAY, 10, true],
	["a gateway's 404 at the end", GATEWAY, 18, false],
	['401, to all requests, in the middle', KEY, 10, true],
	['422 in the middle', ITEM, 10, false],
	['422 at the end', ITEM, 18, false],
	['503 with Retry-After, to all requests, in the middle', LIMIT, 10, true],
	['521 from the first order on', NOT_CONNECTED, 0, false],
])('%s of a batch, for five minutes, costs no item', async (_what, answer, taken, ofReads) => {
	const run = begin(many(20), { maxInFlight: taken === 0 ? 2 : 10 });
	await disturb(
		{ createStatus: answer, ...(ofReads && { readStatus: answer }) },
		5 * MINUTE,
		taken,
	);
	expect([errorsOf((await run.end()).output), on.created]).toEqual([[], 20]);
	expect(on.elapsed).toBeLessThan(11 * MINUTE);
});

it('500 for 5 minutes leaves the orders in doubt that were sent, sends few, and none twice', async () => {
	const run = begin(many(30));
	await disturb({ createStatus: DOUBTFUL }, 5 * MINUTE, 15);
	const sent = ordersWith(DOUBTFUL.status);
	const { output } = await run.end();
	expect([inDoubt(output).length, errorsOf(output).length]).toEqual([sent, sent]);
	expect(sent).toBeGreaterThan(2);
	expect(sent).toBeLessThanOrEqual(6);
	expect(on.creates).toHaveLength(30);
});

it.each([GATEWAY, KEY, ITEM])(
	'%j from the first order on ends a batch within two seconds',
	async (answer) => {
		on.service.configure({ createStatus: answer });
		const { run } = await begin(many(20), {}, {} as never).end();
		expect(run.status).toBe('error');
		expect(on.creates.length).toBeLessThanOrEqual(5);
		expect(on.elapsed).toBeLessThan(2 * SECOND);
	},
);

it('a key that is revoked in the middle of a batch ends the batch after ten minutes', async () => {
	const run = begin(many(100));
	await passUntil(() => on.created >= 15);
	on.service.configure({ createStatus: KEY });
	const { output } = await run.end();
	expect(on.elapsed / MINUTE).toBeLessThan(12);
	expect([on.created, on.creates.length < 70]).toEqual([15, true]);
	expect(errorsOf(output).at(-1)).toEqual(
		text('This item was not sent. The service refused the API key (HTTP 401)'),
	);
});

describe('in a loop', () => {
	const loop = (count: number, size: number) => {
		const all = images(count, 3);
		const rounds = Array.from({ length: count / size }, (_, i) =>
			all.slice(i * size, (i + 1) * size),
		);
		return on.begin(imageNode({}, keepsGoing), undefined, { rounds });
	};

	it.each([1, 5])('rounds of %d: 30 s of 502 leave at most six of 30 in doubt', async (size) => {
		const run = loop(30, size);
		await disturb({ createStatus: { status: 502, body: PAGE(502) } }, 30 * SECOND, 10);
		await run.end();
		expect(errorsOf(run.itemsOf()).length).toBeLessThanOrEqual(6);
	});

	it('rounds of one: five minutes of 404 cost no item', async () => {
		const run = loop(20, 1);
		await disturb({ createStatus: GATEWAY }, 5 * MINUTE, 6);
		await run.end();
		expect([errorsOf(run.itemsOf()), on.created]).toEqual([[], 20]);
	});
});

describe('while the service refuses', () => {
	const FORBIDDEN = { createStatus: { status: 403, body: PAGE(403) } };
	const COUNT = 30;

	/** A run whose second turn has ordered two items when the service begins to refuse. */
	async function refusedInSecondTurn(options: IDataObject, node = {}) {
		const all = { suspendAfter: 1, maxInFlight: 2, ...options };
		const run = await on.start(imageNode(all, node), images(COUNT, 25));
		await passUntil(() => run.row.wakes === 1);
		const stored = on.created;
		await passUntil(() => on.created === stored + 2);
		on.service.configure(FORBIDDEN);
		await passUntil(() => ordersWith(403) === 2);
		return run;
	}
	const expectAllOrderedOnce = () =>
		expect([...on.ordered].sort()).toEqual(field(images(COUNT, 0), 'prompt').sort());

	it('a run sleeps, and goes on when it is woken with one order at a time: no item is refused', async () => {
		const run = await refusedInSecondTurn({}, keepsGoing);
		const { sleeps } = run.row;
		const before = { refused: ordersWith(403), at: on.elapsed };
		await passUntil(() => run.row.sleeps >= sleeps + 2 && on.elapsed >= before.at + 4 * MINUTE);
		const probes = ordersWith(403) - before.refused;
		expect(probes).toBeGreaterThan(4);
		// A probe comes after a pause of 10 to 20 s.
		expect(probes).toBeLessThanOrEqual((on.elapsed - before.at) / (10 * SECOND));
		on.service.resetSettings();
		expect(errorsOf((await run.end()).output)).toEqual([]);
		expectAllOrderedOnce();
	});

	it('a batch ends after ten minutes, and its retry orders what is left, each item once', async () => {
		const run = await refusedInSecondTurn({ ifSomeFail: 'stop' });
		expect((await run.end()).run.status).toBe('error');
		expect(on.created).toBeLessThan(COUNT);
		on.service.resetSettings();
		const { output } = await run.beginRetry().end();
		expect(field(output, 'state')).toEqual(Array(COUNT).fill('SUCCESS'));
		expectAllOrderedOnce();
	});
});

describe('answers without an id', () => {
	const EMPTY = { taskId: '', message: 'insufficient balance' };

	it('that are alike from the first order on end a batch after five', async () => {
		on.service.configure({ createStatus: { status: 200, body: EMPTY } });
		const { output } = await begin(many(10)).end();
		expect(on.creates).toHaveLength(5);
		const words = 'The service named no task id: insufficient balance';
		expect(errorsOf(output)).toEqual([
			...Array<string>(5).fill(
				text(`It is not known whether the task was created. ${words}`) as never,
			),
			...Array<string>(5).fill(text(`This item was not sent. ${words}`) as never),
		]);
		expect(on.elapsed).toBeLessThan(MINUTE);
	});
});

describe('a refused prompt', () => {
	const bad = (prompt: string) => item(prompt, { createStatus: 400 });
	const minutes = () => on.elapsed / MINUTE;

	it.each([
		['among others', 10, 10],
		['at the end of a batch', 4, 0],
	])('%s is refused for good at its second order', async (_where, before, after) => {
		const run = begin([...many(before), bad('bad'), ...many(after)], { maxInFlight: 4 });
		expect(errorsOf((await run.end()).output)).toEqual([text('(HTTP 400)')]);
		expect([ordersWith(400), on.created]).toEqual([2, before + after]);
		expect(minutes()).toBeLessThan(1.5);
	});

	it.each([5, 40])('has a run of %d items that stops order one more', async (count) => {
		const all = [...many(count), bad('bad'), ...many(count)];
		const { error } = await begin(all, { ifSomeFail: 'stop' }, {} as never).end();
		expect(error?.message).toContain('(HTTP 400)');
		expect(on.created).toBeLessThanOrEqual(count + 2);
	});

	it('thirty times in a row costs ten minutes at most', async () => {
		const thirty = Array.from({ length: 30 }, (_, i) => bad(`bad ${i}`));
		const { output } = await begin([...many(10), ...thirty, ...many(5)]).end();
		expect([errorsOf(output).length, on.created]).toEqual([30, 15]);
		// The first ten take some seconds, and n8n looks once a minute.
		expect(minutes()).toBeLessThan(12);
	});
});

describe('reads', () => {
	const onTasks = (operation: string, ids: string[]) => {
		const more = { taskId: '={{ $json.id }}', downloadResults: false, options: {} };
		const parameters = { resource: 'task', operation, ...more };
		return on.begin(
			{ ...keepsGoing, parameters },
			ids.map((id) => ({ json: { id } })),
		);
	};

	it.each([GATEWAY, KEY])(
		'answered %j for 5 minutes end no wait for tasks that were read before',
		async (answer) => {
			on.service.configure({ latencyMs: MINUTE });
			const ids = [1, 2].map(() => on.service.createTask(IMAGE_MODEL, { prompt: 'x' }).taskId);
			const run = onTasks('wait', ids);
			await pass(20 * SECOND);
			expect(on.requests('GET').length).toBeGreaterThan(4);
			await disturb({ readStatus: answer }, 5 * MINUTE);
			expect(field((await run.end()).output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
		},
	);

	it.each(['wait', 'get'])(
		'at first answered by a gateway for 15 s end no %s of finished tasks',
		async (operation) => {
			const run = onTasks(operation, [on.finishedTask(), on.finishedTask()]);
			await disturb({ readStatus: GATEWAY }, 15 * SECOND);
			expect(field((await run.end()).output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
		},
	);

	it.each([
		// The five minutes end in the first turn after the run has slept.
		['wait', 5 * MINUTE, 7 * MINUTE],
		['get', 30 * SECOND, 40 * SECOND],
	])(
		'of a task that the service does not know end %s after a while',
		async (operation, ...time) => {
			on.service.configure({ readStatus: { status: 404, body: { error: 'Task not found' } } });
			const { output } = await onTasks(operation, ['no-such-task']).end();
			expect(errorsOf(output)).toEqual([
				expect.stringMatching(/knows no such task.*\(task no-such-task\)/),
			]);
			const [least, most] = time;
			expect(on.elapsed).toBeGreaterThanOrEqual(least);
			expect(on.elapsed).toBeLessThan(most);
		},
	);
});

describe('pauses that the service asks for, and that outlast a turn', () => {
	it('cost no item', async () => {
		on.service.configure({ concurrencyLimit: { limit: 2, retryAfter: 120 } });
		const { output } = await on.begin(imageNode(), images(20, 60)).end();
		expect([errorsOf(output), on.created]).toEqual([[], 20]);
	});

	it('for ever are given up after the timeout', async () => {
		on.service.configure({ createStatus: { status: 429, retryAfter: 120 } });
		const { error } = await on.begin(imageNode({ timeout: 600 }), prompts('a', 'b')).end();
		expect(error?.message).toContain('HTTP 429');
		expect(on.elapsed).toBeLessThan(15 * MINUTE);
	});
});
