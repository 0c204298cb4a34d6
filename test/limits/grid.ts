import type { RateRule, Rules, Steps } from './account';
import { type Cell, type Tasks, UNEQUAL_TASKS } from './cell';
import { Oracle } from './oracle';
import { simulate, type TaskMs } from './simulate';
import { SECOND } from '../durations';

/** Chance that is the same in every run, and for the oracle. */
const chance = (nth: number, salt: number) => {
	const x = Math.sin(nth * 12.9898 + salt * 78.233) * 43_758.5453;
	return x - Math.floor(x);
};
const normal = (nth: number) =>
	Math.sqrt(-2 * Math.log(1 - chance(nth, 1))) * Math.cos(2 * Math.PI * chance(nth, 2));

const equal = (seconds: number): Tasks => ({ name: `${seconds} s`, ms: seconds * SECOND });
const between = (least: number, most: number): Tasks => ({
	name: `${least} to ${most} s`,
	ms: (nth) => SECOND * (least + (most - least) * chance(nth, 3)),
});
const about = (seconds: number): Tasks => ({
	name: `about ${seconds} s, log-normal`,
	ms: (nth) => seconds * SECOND * Math.exp(normal(nth)),
});
const either = (one: number, other: number): Tasks => ({
	name: `${one} s or ${other} s`,
	ms: (nth) => (chance(nth, 4) < 0.5 ? one : other) * SECOND,
});

const KINDS = ['bucket', 'fixed'] as const;

type Three = readonly [number, number, number];

/** What is combined into the cells of a table. */
interface Values {
	/** Batch sizes. */
	items: readonly number[];
	/** Tasks that all take the same time, and such that do not. */
	equal: readonly Tasks[];
	unequal: readonly Tasks[];
	/** Tasks that may be unfinished at once. */
	places: readonly number[];
	/** Creates a second, and the seconds over which they are counted. */
	rates: readonly number[];
	windows: readonly number[];
	/** Limits in the thirds of a batch. */
	falling: readonly Three[];
	halved: readonly Three[];
	changingRates: readonly Three[];
}

const GRID: Values = {
	items: [20, 200, 2000],
	equal: [2, 30, 300].map(equal),
	unequal: [between(0.5, 20), about(8), either(2, 300)],
	places: [1, 3, 20, 100],
	rates: [1, 5, 50],
	windows: [1, 10, 60],
	falling: [
		[20, 3, 20],
		[100, 10, 100],
		[3, 20, 3],
		[1, 20, 1],
	],
	halved: [
		[20, 10, 20],
		[100, 50, 100],
	],
	changingRates: [
		[5, 1, 5],
		[50, 5, 50],
		[1, 50, 1],
	],
};

/** Other values for all of it: what is fitted to the grid alone shows here. Nothing may be chosen by these cells. */
const HELD_OUT: Values = {
	items: [50, 500],
	equal: [5, 90].map(equal),
	unequal: [between(1, 60), about(20), either(5, 90)],
	places: [2, 7, 40],
	rates: [2, 12],
	windows: [5, 30],
	falling: [
		[40, 7, 40],
		[2, 40, 2],
	],
	halved: [[40, 20, 40]],
	changingRates: [
		[12, 2, 12],
		[2, 12, 2],
	],
};

const always = (value: number): Steps => [[0, value]];
const rateRule = (perSecond: number, windowSeconds: number, kind: RateRule['kind']): RateRule => ({
	perSecond: always(perSecond),
	windowSeconds,
	kind,
});
const nameOf = (perSecond: number, windowSeconds: number, kind: string) =>
	`${perSecond} a second, ${kind === 'bucket' ? 'bucket' : 'window'} of ${windowSeconds} s`;

/** The moments of change are thirds of what the oracle needs if nothing changes. */
const thirds = (ms: number, [a, b, c]: Three): Steps => [
	[0, a],
	[ms / 3, b],
	[(2 * ms) / 3, c],
];

/** Every batch size with every time of a task; those whose tasks take unequal times are a family of their own. */
function batches(
	values: Values,
	family: string,
	limit: string,
	rules: (taskMs: TaskMs, items: number) => Rules,
): Cell[] {
	const of = (times: readonly Tasks[], name: string) =>
		times.flatMap((tasks) =>
			values.items.map((items) => ({
				family: name,
				limit,
				rules: rules(tasks.ms, items),
				tasks,
				items,
			})),
		);
	return [...of(values.equal, family), ...of(values.unequal, family + UNEQUAL_TASKS)];
}

const ratesOf = ({ rates, windows }: Values) =>
	KINDS.flatMap((kind) =>
		windows.flatMap((seconds) =>
			rates.map((perSecond) => ({
				name: nameOf(perSecond, seconds, kind),
				rate: rateRule(perSecond, seconds, kind),
			})),
		),
	);

function limits(values: Values, retryAfter: Pick<Rules, 'retryAfter'>, said: string): Cell[] {
	const steady = (family: string, limit: string, rules: Rules) =>
		batches(values, family + said, limit, () => ({ ...retryAfter, ...rules }));
	/** The rules, where something changes in the thirds of what the oracle needs if nothing does. */
	const changing = (family: string, three: Three, what: string, rules: (steps: Steps) => Rules) =>
		batches(values, family + said, `${three.join(', then ')} ${what}`, (taskMs, items) => {
			const before = rules(always(three[0]));
			const { ms } = simulate(before, [{ taskMs, items, policy: new Oracle(before) }]);
			return { ...retryAfter, ...rules(thirds(ms, three)) };
		});
	const changingPlaces = (family: string, list: readonly Three[]) =>
		list.flatMap((three) => changing(family, three, 'at once', (concurrency) => ({ concurrency })));
	const places = values.places.map((limit) => ({
		name: `${limit} at once`,
		concurrency: always(limit),
	}));
	const rates = ratesOf(values);
	return [
		...places.flatMap(({ name, concurrency }) => steady('Unfinished tasks', name, { concurrency })),
		...rates.flatMap(({ name, rate }) => steady('Creates in a time', name, { rate })),
		...places.flatMap(({ name: limit, concurrency }) =>
			rates.flatMap(({ name, rate }) => steady('Both', `${limit}, ${name}`, { concurrency, rate })),
		),
		...changingPlaces('A limit that falls and rises', values.falling),
		...changingPlaces('Another workflow takes half', values.halved),
		...values.changingRates.flatMap((three) =>
			changing('A rate that changes', three, 'a second', (perSecond) => ({
				rate: { perSecond, windowSeconds: 1, kind: 'bucket' },
			})),
		),
	];
}

const accidents = (values: Values) =>
	[0, 9].flatMap((nth) =>
		[undefined, 1000, 5000].flatMap((retryAfterMs) =>
			batches(
				values,
				'A single refusal',
				`create ${nth + 1}, ${retryAfterMs === undefined ? 'no Retry-After' : `Retry-After: ${retryAfterMs / 1000}`}`,
				() => ({ accidents: { nth: [nth], ...(retryAfterMs !== undefined && { retryAfterMs }) } }),
			),
		),
	);

/** Completions `suspend`, `trigger` and `return`: a place is given back after the create. */
function leaving(values: Values): Cell[] {
	const places = values.places.flatMap((limit) =>
		batches(values, 'Items leave at once: unfinished tasks', `${limit} at once`, () => ({
			concurrency: always(limit),
		})),
	);
	const equalOnly = { ...values, unequal: [] };
	const rates = ratesOf(values).flatMap(({ name, rate }) =>
		batches(equalOnly, 'Items leave at once: creates in a time', name, () => ({ rate })),
	);
	return [...places, ...rates].map((cell) => ({ ...cell, leaves: true }));
}

const firstWithRetryAfter: Rules = { accidents: { nth: [0], retryAfterMs: 1000 } };

/** What was measured where the limits were not told apart. */
const measured: Cell[] = [
	{ limit: 'create 1, Retry-After: 1', rules: firstWithRetryAfter, tasks: equal(6), items: 60 },
	{ limit: 'create 1, Retry-After: 1', rules: firstWithRetryAfter, tasks: equal(60), items: 100 },
	{
		limit: nameOf(5, 1, 'bucket'),
		rules: { rate: rateRule(5, 1, 'bucket') },
		tasks: equal(10),
		items: 100,
	},
].map((cell) => ({ ...cell, family: 'Measured before' }));

const all = (values: Values): Cell[] => [
	...accidents(values),
	...leaving(values),
	...limits(values, {}, ''),
	...limits(values, { retryAfter: 'honest' }, ', with Retry-After'),
];

/** The cells of the tables. */
export const CELLS: readonly Cell[] = [...measured, ...all(GRID)];

/** The same with other values. */
export const heldOut = (): Cell[] => all(HELD_OUT);
