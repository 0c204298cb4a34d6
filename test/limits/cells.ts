import { AccountLimits } from '../../nodes/MediaGeneration/create/accountLimits';
import type { RateRule, Rules, Steps } from './account';
import { Oracle } from './oracle';
import { simulate } from './simulate';

const TASK_SECONDS = [2, 30, 300];
const ITEMS = [20, 200, 2000];
const PLACES = [1, 3, 20, 100];
const RATES = [1, 5, 50];
const WINDOWS = [1, 10, 60];
const KINDS = ['bucket', 'fixed'] as const;

/** One case of the table. */
export interface Cell {
	family: string;
	limit: string;
	rules: Rules;
	taskMs: number;
	items: number;
}

export interface Result extends Cell {
	ms: number;
	oracleMs: number;
	refusals: number;
	most: number;
}

const always = (value: number): Steps => [[0, value]];
const rateRule = (perSecond: number, windowSeconds: number, kind: RateRule['kind']): RateRule => ({
	perSecond: always(perSecond),
	windowSeconds,
	kind,
});
const nameOf = (perSecond: number, windowSeconds: number, kind: string) =>
	`${perSecond} a second, ${kind === 'bucket' ? 'bucket' : 'window'} of ${windowSeconds} s`;

/** The moments of change are thirds of what the oracle needs if nothing changes. */
const thirds = (ms: number, [a, b, c]: readonly [number, number, number]): Steps => [
	[0, a],
	[ms / 3, b],
	[(2 * ms) / 3, c],
];

/** Every batch size with every time of a task. */
function batches(
	family: string,
	limit: string,
	rules: (taskMs: number, items: number) => Rules,
): Cell[] {
	return TASK_SECONDS.flatMap((seconds) =>
		ITEMS.map((items) => {
			const taskMs = 1000 * seconds;
			return { family, limit, rules: rules(taskMs, items), taskMs, items };
		}),
	);
}

function limits(retryAfter: Pick<Rules, 'retryAfter'>, said: string): Cell[] {
	const places = PLACES.flatMap((limit) =>
		batches(`Unfinished tasks${said}`, `${limit} at once`, () => ({
			...retryAfter,
			concurrency: always(limit),
		})),
	);
	const rates = KINDS.flatMap((kind) =>
		WINDOWS.flatMap((seconds) =>
			RATES.flatMap((perSecond) =>
				batches(`Creates in a time${said}`, nameOf(perSecond, seconds, kind), () => ({
					...retryAfter,
					rate: rateRule(perSecond, seconds, kind),
				})),
			),
		),
	);
	const both = PLACES.flatMap((limit) =>
		KINDS.flatMap((kind) =>
			WINDOWS.flatMap((seconds) =>
				RATES.flatMap((perSecond) =>
					batches(`Both${said}`, `${limit} at once, ${nameOf(perSecond, seconds, kind)}`, () => ({
						...retryAfter,
						concurrency: always(limit),
						rate: rateRule(perSecond, seconds, kind),
					})),
				),
			),
		),
	);
	return [...places, ...rates, ...both, ...changes(retryAfter, said)];
}

function changes(retryAfter: Pick<Rules, 'retryAfter'>, said: string): Cell[] {
	const changing = (family: string, list: ReadonlyArray<readonly [number, number, number]>) =>
		list.flatMap((steps) =>
			batches(family, `${steps.join(', then ')} at once`, (taskMs, items) => {
				const rules = { concurrency: always(steps[0]) };
				const { ms } = simulate(rules, taskMs, items, new Oracle(rules));
				return { ...retryAfter, concurrency: thirds(ms, steps) };
			}),
		);
	const rates = (
		[
			[5, 1, 5],
			[50, 5, 50],
			[1, 50, 1],
		] as const
	).flatMap((steps) =>
		batches(`A rate that changes${said}`, `${steps.join(', then ')} a second`, (taskMs, items) => {
			const rules = { rate: rateRule(steps[0], 1, 'bucket') };
			const { ms } = simulate(rules, taskMs, items, new Oracle(rules));
			return { ...retryAfter, rate: { ...rules.rate, perSecond: thirds(ms, steps) } };
		}),
	);
	return [
		...changing(`A limit that falls and rises${said}`, [
			[20, 3, 20],
			[100, 10, 100],
			[3, 20, 3],
			[1, 20, 1],
		]),
		...changing(`Another workflow takes half${said}`, [
			[20, 10, 20],
			[100, 50, 100],
		]),
		...rates,
	];
}

const accidents = [0, 9].flatMap((nth) =>
	[undefined, 1000, 5000].flatMap((retryAfterMs) =>
		batches(
			'A single refusal',
			`create ${nth + 1}, ${retryAfterMs === undefined ? 'no Retry-After' : `Retry-After: ${retryAfterMs / 1000}`}`,
			() => ({ accidents: { nth: [nth], ...(retryAfterMs !== undefined && { retryAfterMs }) } }),
		),
	),
);

const firstWithRetryAfter: Rules = { accidents: { nth: [0], retryAfterMs: 1000 } };

/** What was measured where the limits were not told apart. */
const measured: Cell[] = [
	{ limit: 'create 1, Retry-After: 1', rules: firstWithRetryAfter, taskMs: 6000, items: 60 },
	{ limit: 'create 1, Retry-After: 1', rules: firstWithRetryAfter, taskMs: 60_000, items: 100 },
	{
		limit: nameOf(5, 1, 'bucket'),
		rules: { rate: rateRule(5, 1, 'bucket') },
		taskMs: 10_000,
		items: 100,
	},
].map((cell) => ({ ...cell, family: 'Measured before' }));

export const CELLS: readonly Cell[] = [
	...measured,
	...accidents,
	...limits({}, ''),
	...limits({ retryAfter: 'honest' }, ', with Retry-After'),
];

export function run(cell: Cell): Result {
	const { rules, taskMs, items } = cell;
	const oracle = simulate(rules, taskMs, items, new Oracle(rules));
	// Chance that is the same in every run.
	let seed = 7;
	const random = () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
	const ours = simulate(rules, taskMs, items, new AccountLimits(items, items, 0, random));
	return { ...cell, ...ours, oracleMs: oracle.ms };
}

/** Times the oracle's time, at most. */
export const MOST_TIME = 1.25;
/** One refusal for ten tasks, and six to find out. */
export const mostRefusals = ({ items, rules }: Cell) =>
	6 + items / 10 + (rules.accidents?.nth.length ?? 0);

export const ratioOf = ({ ms, oracleMs }: Result) => ms / oracleMs;

export const isWithin = (result: Result) =>
	ratioOf(result) <= MOST_TIME && result.refusals <= mostRefusals(result);

export const describeCell = ({ family, limit, items, taskMs }: Cell) =>
	`${family}: ${limit}, ${items} tasks of ${taskMs / 1000} s`;
