import type { Rules, Steps } from './account';
import type { Cell } from './cell';
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

/** Limits in the thirds of a batch. */
type Thirds = readonly [number, number, number];

// No number of the node was chosen by these values.
const ITEMS = [50, 500];
const EQUAL: TaskMs[] = [5 * SECOND, 90 * SECOND];
const UNEQUAL: TaskMs[] = [
	(nth) => SECOND * (1 + 59 * chance(nth, 3)),
	(nth) => 20 * SECOND * Math.exp(normal(nth)),
	(nth) => (chance(nth, 4) < 0.5 ? 5 : 90) * SECOND,
];
const ALL = [...EQUAL, ...UNEQUAL];
const FALLING: Thirds[] = [
	[40, 7, 40],
	[2, 40, 2],
	// Another workflow takes half.
	[40, 20, 40],
];
const CHANGING_RATES: Thirds[] = [
	[12, 2, 12],
	[2, 12, 2],
];

const always = (value: number): Steps => [[0, value]];

/** Tasks that may be unfinished at once. */
const PLACES: Rules[] = [2, 7, 40].map((limit) => ({ concurrency: always(limit) }));

/** Creates in a time. */
const RATES: Rules[] = (['bucket', 'fixed'] as const).flatMap((kind) =>
	[5, 30].flatMap((windowSeconds) =>
		[2, 12].map((perSecond) => ({ rate: { perSecond: always(perSecond), windowSeconds, kind } })),
	),
);

/** Every batch size with every time of a task. */
const batches = (rules: (taskMs: TaskMs, items: number) => Rules, times = ALL): Cell[] =>
	times.flatMap((taskMs) => ITEMS.map((items) => ({ rules: rules(taskMs, items), taskMs, items })));

/** The rules, where something changes in the thirds of what the oracle needs if nothing does. */
const changing = (list: Thirds[], rules: (steps: Steps) => Rules): Cell[] =>
	list.flatMap((three) =>
		batches((taskMs, items) => {
			const before = rules(always(three[0]));
			const { ms } = simulate(before, [{ taskMs, items, policy: new Oracle(before) }]);
			return rules(three.map((value, nth) => [(nth * ms) / 3, value] as const));
		}),
	);

const limits = (asks: Pick<Rules, 'retryAfter'>): Cell[] => [
	...[...PLACES, ...RATES].flatMap((rules) => batches(() => ({ ...asks, ...rules }))),
	...PLACES.flatMap((places) =>
		RATES.flatMap((rate) => batches(() => ({ ...asks, ...places, ...rate }))),
	),
	...changing(FALLING, (concurrency) => ({ ...asks, concurrency })),
	...changing(CHANGING_RATES, (perSecond) => ({
		...asks,
		rate: { perSecond, windowSeconds: 1, kind: 'bucket' },
	})),
];

/** A single refusal. */
const accidents = (): Cell[] =>
	[0, 9].flatMap((nth) =>
		[undefined, 1000, 5000].flatMap((retryAfterMs) =>
			batches(() => ({ accidents: { nth: [nth], retryAfterMs } })),
		),
	);

/** Completions `trigger` and `return`: a place is given back after the create. */
const leaving = (): Cell[] =>
	[
		...PLACES.flatMap((place) => batches(() => place)),
		...RATES.flatMap((rate) => batches(() => rate, EQUAL)),
	].map((cell) => ({ ...cell, leaves: true }));

/** The cells of the table. */
export const grid = (): Cell[] => [
	...accidents(),
	...leaving(),
	...limits({}),
	...limits({ retryAfter: 'honest' }),
];
