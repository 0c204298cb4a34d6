import fc from 'fast-check';

import { MINUTE, SECOND } from '../durations';

const number = (...values: number[]) => fc.constantFrom(...values);
const word = <const T extends string>(...values: T[]) => fc.constantFrom(...values);

const PAGE = (status: number) => `<html><head><title>${status}</title></head></html>`;

/** What may answer in place of the service while a proxy, a firewall or the service itself is redeployed. */
export const BLIPS = [
	['blip: 404 as text', { status: 404, body: '404 page not found\n', contentType: 'text/plain' }],
	['blip: 404 as a page', { status: 404, body: PAGE(404), contentType: 'text/html' }],
	['blip: 404 as JSON', { status: 404, body: { message: 'no Route matched with those values' } }],
	['blip: 403 as a page', { status: 403, body: PAGE(403), contentType: 'text/html' }],
	['blip: 403 as JSON', { status: 403, body: { message: 'Forbidden' } }],
	['blip: 401', { status: 401, body: { error: { message: 'invalid api key' } } }],
	['blip: 400', { status: 400, body: { error: 'upstream request failed' } }],
	['blip: 405', { status: 405, body: PAGE(405), contentType: 'text/html' }],
	['blip: 429', { status: 429, body: { error: 'slow down' } }],
	['blip: 502', { status: 502, body: PAGE(502), contentType: 'text/html' }],
	['blip: 503', { status: 503, body: PAGE(503), contentType: 'text/html', retryAfter: 5 }],
] as const;

export type Blip = (typeof BLIPS)[number][0];

const AWAY = ['service away', 'media host away', 'database away'] as const;

/**
 * A stretch of a user's day: an n8n that has been up for a while, a workflow of some nodes, files of some size, and a trouble
 * that lasts. It takes the place of the single faults of the other histories.
 */
const anyDays = fc.record({
	/** Whether the processes know the second of n8n's look, as after weeks. */
	isWarm: fc.boolean(),
	/**
	 * `in a row`: two action nodes, one behind the other; `beside`: two that get the same items; `called`: by another workflow;
	 * `hangs up`: by a client of an MCP server, which hangs up after a minute; `triggered`: the results go to a trigger with
	 * *Wait for Task* behind it.
	 */
	workflow: word(
		...(['one node', 'one node', 'one node', 'loop', 'in a row', 'beside', 'called'] as const),
		...(['hangs up', 'triggered'] as const),
	),
	/** At which second of n8n's minute the user starts it. */
	second: fc.integer({ min: 5, max: 64 }),
	suspendAfter: number(5, 5, 5, 1, 0),
	items: number(1, 3, 5, 8, 12, 24),
	places: number(4, 10),
	/** How long each task takes. */
	taskSeconds: number(12, 20, 45, 60, 90, 90, 120, 200),
	/** Whether some tasks take half of that time, and others one and a half times as long. */
	isSpread: fc.constantFrom(true, true, false),
	/** How long the download of a file takes; 0 without downloads. */
	fileSeconds: number(0, 0, 0, 12, 30, 60),
	/** n8n's time limit; 0 without. */
	limitSeconds: number(0, 0, 0, 0, 300),
	/** Further starts of the same workflow, and how much later they come. */
	others: fc.array(fc.integer({ min: 0, max: 300_000 }), { maxLength: 2 }),
	trouble: fc.option(
		fc.record({
			/** Of a blip: whether it answers reads as well. */
			on: word('all requests', 'creates', 'creates'),
			what: word(...BLIPS.map(([name]) => name), ...AWAY, ...AWAY),
			at: fc.nat({ max: 600_000 }),
			forMs: number(3 * SECOND, 10 * SECOND, MINUTE, MINUTE, 5 * MINUTE, 10 * MINUTE, 120 * MINUTE),
		}),
		{ nil: undefined, freq: 2 },
	),
	/** `fails twice`: the key is refused for a while, and the user retries the first execution twice. */
	ends: word(
		'by itself',
		'by itself',
		'by itself',
		'killed',
		'killed twice',
		'stopped',
		'fails twice',
	),
	endsAt: fc.oneof(
		fc.integer({ min: 5_000, max: 120_000 }),
		fc.integer({ min: 120_000, max: 500_000 }),
	),
	/** How long after its retry has begun n8n is killed once more. */
	diesAgainMs: number(50, 80, 3 * SECOND, 40 * SECOND),
	/** How long after n8n has noticed a death the user retries. In queue mode n8n has erased by then, or not. */
	retriesAfterMs: number(2 * SECOND, 10 * SECOND, 60 * SECOND),
});

export type Day = typeof anyDays extends fc.Arbitrary<infer T> ? T : never;

/** The days with most orders take most of a search's time. */
const MOST_ORDERS = 36;

/** Rounds come one after the other. */
const MOST_ROUNDS = 12;

/** Whether each item is ordered by two nodes. */
export const hasTwoNodes = ({ workflow }: Day) => workflow === 'in a row' || workflow === 'beside';

/** A trouble, a kill and a stop meet a batch that orders. Of a blip nothing else is to take the blame. */
function meetBatch(day: Day): Day {
	const { trouble, ends, taskSeconds, second } = day;
	if (!trouble && ends === 'by itself') return day;
	if (day.workflow === 'loop' && ends.startsWith('killed')) return killLoop(day);
	const places = 4;
	const items = Math.max(day.items, 3 * places);
	const orderingMs = (items / places - 1) * taskSeconds * SECOND;
	const within = (ms: number) => SECOND + (ms % orderingMs);
	const met = { ...day, items, places, endsAt: within(day.endsAt) };
	if (!trouble) return met;
	const at = second * SECOND + within(trouble.at);
	const isBlip = trouble.what.startsWith('blip');
	return { ...met, trouble: { ...trouble, at }, ends: isBlip ? 'by itself' : ends };
}

/** A kill meets the last rounds of a loop of short rounds, of which n8n must have stored the first. */
const killLoop = (day: Day): Day => ({
	...day,
	...{ isWarm: true, items: MOST_ROUNDS, taskSeconds: 20, fileSeconds: 0 },
	...{ limitSeconds: 0, trouble: undefined, retriesAfterMs: 2 * SECOND },
	endsAt: 3 * MINUTE + 15 * SECOND + (day.endsAt % (25 * SECOND)),
});

function limitOrders(day: Day): Day {
	const most = MOST_ORDERS / (1 + day.others.length) / (hasTwoNodes(day) ? 2 : 1);
	return { ...day, items: Math.min(day.items, day.workflow === 'loop' ? MOST_ROUNDS : most) };
}

/** Nothing happens but the work itself. */
const calmDown = (day: Day): Day => ({
	...day,
	...{ limitSeconds: 0, trouble: undefined, ends: 'by itself' },
});

/** One day of three is calm. */
export const days: fc.Arbitrary<Day> = fc
	.oneof(
		{ withCrossShrink: true },
		{ weight: 2, arbitrary: anyDays.map(meetBatch) },
		{ weight: 1, arbitrary: anyDays.map(calmDown) },
	)
	.map(limitOrders);

/** How long the longest task may take, milliseconds. */
export const longestTaskMs = ({ taskSeconds, isSpread }: Day): number =>
	taskSeconds * SECOND * (isSpread ? 1.5 : 1);

/** Whether nothing but the work itself happens. */
export const isCalm = ({ trouble, ends }: Day): boolean =>
	trouble === undefined && ends === 'by itself';

/** The number of an item of the second node is larger by this than that of the first. */
export const SECOND_NODE = 500;
