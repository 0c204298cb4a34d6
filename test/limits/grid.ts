import type { Rules, Steps } from './account';
import type { Cell, Tasks } from './cell';
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

/** Limits in the thirds of a batch. */
type Thirds = readonly [number, number, number];
const thirds = (...list: Thirds[]) => list;

/** What is combined into the cells of a table. */
const GRID = {
	items: [20, 200, 2000],
	/** Tasks that all take the same time, and such that do not. */
	equal: [2, 30, 300].map(equal),
	unequal: [between(0.5, 20), about(8), either(2, 300)],
	/** Tasks that may be unfinished at once. */
	places: [1, 3, 20, 100],
	/** Creates a second, and the seconds over which they are counted. */
	rates: [1, 5, 50],
	windows: [1, 10, 60],
	falling: thirds([20, 3, 20], [100, 10, 100], [3, 20, 3], [1, 20, 1]),
	halved: thirds([20, 10, 20], [100, 50, 100]),
	changingRates: thirds([5, 1, 5], [50, 5, 50], [1, 50, 1]),
};
type Values = typeof GRID;

/** Other values for all of it: what is fitted to the grid alone shows here. Nothing may be chosen by these cells. */
const HELD_OUT: Values = {
	items: [50, 500],
	equal: [5, 90].map(equal),
	unequal: [between(1, 60), about(20), either(5, 90)],
	places: [2, 7, 40],
	rates: [2, 12],
	windows: [5, 30],
	falling: thirds([40, 7, 40], [2, 40, 2]),
	halved: thirds([40, 20, 40]),
	changingRates: thirds([12, 2, 12], [2, 12, 2]),
};

const always = (value: number): Steps => [[0, value]];

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
	return [...of(values.equal, family), ...of(values.unequal, `${family}, unequal tasks`)];
}

const ratesOf = ({ rates, windows }: Values) =>
	(['bucket', 'fixed'] as const).flatMap((kind) =>
		windows.flatMap((windowSeconds) =>
			rates.map((perSecond) => ({
				name: `${perSecond} a second, ${kind === 'bucket' ? kind : 'window'} of ${windowSeconds} s`,
				rate: { perSecond: always(perSecond), windowSeconds, kind },
			})),
		),
	);

const placesOf = ({ places }: Values) =>
	places.map((limit) => ({ name: `${limit} at once`, concurrency: always(limit) }));

function limits(values: Values, retryAfter: Pick<Rules, 'retryAfter'>, said: string): Cell[] {
	const steady = (family: string, limit: string, rules: Rules) =>
		batches(values, family + said, limit, () => ({ ...retryAfter, ...rules }));
	/** The rules, where something changes in the thirds of what the oracle needs if nothing does. */
	const changing = (family: string, list: Thirds[], what: string, rules: (steps: Steps) => Rules) =>
		list.flatMap((three) =>
			batches(values, family + said, `${three.join(', then ')} ${what}`, (taskMs, items) => {
				const before = rules(always(three[0]));
				const { ms } = simulate(before, [{ taskMs, items, policy: new Oracle(before) }]);
				const steps = three.map((value, nth) => [(nth * ms) / 3, value] as const);
				return { ...retryAfter, ...rules(steps) };
			}),
		);
	const rates = ratesOf(values);
	const places = placesOf(values);
	return [
		...places.flatMap(({ name, ...place }) => steady('Unfinished tasks', name, place)),
		...rates.flatMap(({ name, ...rate }) => steady('Creates in a time', name, rate)),
		...places.flatMap(({ name: limit, ...place }) =>
			rates.flatMap(({ name, ...rate }) =>
				steady('Both', `${limit}, ${name}`, { ...place, ...rate }),
			),
		),
		...changing('A limit that falls and rises', values.falling, 'at once', (concurrency) => ({
			concurrency,
		})),
		...changing('Another workflow takes half', values.halved, 'at once', (concurrency) => ({
			concurrency,
		})),
		...changing('A rate that changes', values.changingRates, 'a second', (perSecond) => ({
			rate: { perSecond, windowSeconds: 1, kind: 'bucket' },
		})),
	];
}

const accidents = (values: Values) =>
	[0, 9].flatMap((nth) =>
		[undefined, 1000, 5000].flatMap((retryAfterMs) => {
			const said =
				retryAfterMs === undefined ? 'no Retry-After' : `Retry-After: ${retryAfterMs / 1000}`;
			const rules = { accidents: { nth: [nth], retryAfterMs } };
			return batches(values, 'A single refusal', `create ${nth + 1}, ${said}`, () => rules);
		}),
	);

/** Completions `suspend`, `trigger` and `return`: a place is given back after the create. */
function leaving(values: Values): Cell[] {
	const family = 'Items leave at once: ';
	const places = placesOf(values).flatMap(({ name, ...place }) =>
		batches(values, `${family}unfinished tasks`, name, () => place),
	);
	const rates = ratesOf(values).flatMap(({ name, ...rate }) =>
		batches({ ...values, unequal: [] }, `${family}creates in a time`, name, () => rate),
	);
	return [...places, ...rates].map((cell) => ({ ...cell, leaves: true }));
}

const all = (values: Values): Cell[] => [
	...accidents(values),
	...leaving(values),
	...limits(values, {}, ''),
	...limits(values, { retryAfter: 'honest' }, ', with Retry-After'),
];

/** The cells of the tables. */
export const grid = (): Cell[] => all(GRID);

/** The same with other values. */
export const heldOut = (): Cell[] => all(HELD_OUT);
