import { AccountLimits } from '../../nodes/MediaGeneration/create/accountLimits';
import type { RateRule, Rules, Steps } from './account';
import { Oracle } from './oracle';
import { POLL_MS, simulate, type TaskMs } from './simulate';

const SECOND = 1000;

/** How long the tasks of a batch take. */
interface Tasks {
	name: string;
	ms: TaskMs;
}

/** Chance that is the same in every run, and for the oracle. */
const chance = (nth: number, salt: number) => {
	const x = Math.sin(nth * 12.9898 + salt * 78.233) * 43_758.5453;
	return x - Math.floor(x);
};
const normal = (nth: number) =>
	Math.sqrt(-2 * Math.log(1 - chance(nth, 1))) * Math.cos(2 * Math.PI * chance(nth, 2));

const equal = (seconds: number): Tasks => ({ name: `${seconds} s`, ms: seconds * SECOND });
const EQUAL: readonly Tasks[] = [2, 30, 300].map(equal);
const UNEQUAL: readonly Tasks[] = [
	{ name: '0.5 to 20 s', ms: (nth) => 500 + 19_500 * chance(nth, 3) },
	{ name: 'about 8 s, log-normal', ms: (nth) => 8 * SECOND * Math.exp(normal(nth)) },
	{ name: '2 s or 300 s', ms: (nth) => (chance(nth, 4) < 0.5 ? 2 : 300) * SECOND },
];
const ITEMS = [20, 200, 2000];
const PLACES = [1, 3, 20, 100];
const RATES = [1, 5, 50];
const WINDOWS = [1, 10, 60];
const KINDS = ['bucket', 'fixed'] as const;

/** The end of the name of a family whose tasks take unequal times. */
export const UNEQUAL_TASKS = ', unequal tasks';

/** One case of the table. */
export interface Cell {
	family: string;
	limit: string;
	rules: Rules;
	tasks: Tasks;
	items: number;
	/** Whether the items leave at once, and nobody learns when a task ends. */
	leaves?: boolean;
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

/** Every batch size with every time of a task; those whose tasks take unequal times are a family of their own. */
function batches(
	family: string,
	limit: string,
	rules: (taskMs: TaskMs, items: number) => Rules,
): Cell[] {
	const of = (times: readonly Tasks[], name: string) =>
		times.flatMap((tasks) =>
			ITEMS.map((items) => ({
				family: name,
				limit,
				rules: rules(tasks.ms, items),
				tasks,
				items,
			})),
		);
	return [...of(EQUAL, family), ...of(UNEQUAL, family + UNEQUAL_TASKS)];
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
	{ limit: 'create 1, Retry-After: 1', rules: firstWithRetryAfter, tasks: equal(6), items: 60 },
	{ limit: 'create 1, Retry-After: 1', rules: firstWithRetryAfter, tasks: equal(60), items: 100 },
	{
		limit: nameOf(5, 1, 'bucket'),
		rules: { rate: rateRule(5, 1, 'bucket') },
		tasks: equal(10),
		items: 100,
	},
].map((cell) => ({ ...cell, family: 'Measured before' }));

/** Completions `suspend`, `trigger` and `return`: a place is given back after the create. */
const leaving: Cell[] = [
	...PLACES.flatMap((limit) =>
		batches('Items leave at once: unfinished tasks', `${limit} at once`, () => ({
			concurrency: always(limit),
		})),
	),
	...KINDS.flatMap((kind) =>
		WINDOWS.flatMap((seconds) =>
			RATES.flatMap((perSecond) =>
				batches('Items leave at once: creates in a time', nameOf(perSecond, seconds, kind), () => ({
					rate: rateRule(perSecond, seconds, kind),
				})),
			),
		),
	),
]
	.filter(({ family }) => !family.endsWith(UNEQUAL_TASKS) || family.includes('unfinished'))
	.map((cell) => ({ ...cell, leaves: true }));

export const CELLS: readonly Cell[] = [
	...measured,
	...accidents,
	...leaving,
	...limits({}, ''),
	...limits({ retryAfter: 'honest' }, ', with Retry-After'),
];

export function run(cell: Cell): Result {
	const { rules, tasks, items, leaves = false } = cell;
	const knows = leaves ? 'atOnce' : 'polling';
	const oracle = simulate(rules, tasks.ms, items, new Oracle(rules), knows);
	// Chance that is the same in every run.
	let seed = 7;
	const random = () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
	const limits = new AccountLimits(items, items, POLL_MS, 0, random);
	const ours = simulate(rules, tasks.ms, items, limits, leaves ? 'never' : 'polling');
	return { ...cell, ...ours, oracleMs: oracle.ms };
}

/** Times the oracle's time, at most. */
export const MOST_TIME = 1.25;
/** One refusal for ten tasks, and six to find out. */
export const mostRefusals = ({ items, rules }: Cell) =>
	6 + items / 10 + (rules.accidents?.nth.length ?? 0);

export const ratioOf = ({ ms, oracleMs }: Result) => ms / oracleMs;

/** Creates alone take tenths of a second where nobody waits for the tasks: there it may be so much more. */
const LEAVING_MORE_MS = 2 * SECOND;
export const mostMs = ({ oracleMs, leaves = false }: Result) =>
	MOST_TIME * oracleMs + (leaves ? LEAVING_MORE_MS : 0);

export const isWithin = (result: Result) =>
	result.ms <= mostMs(result) && result.refusals <= mostRefusals(result);

export const describeCell = ({ family, limit, items, tasks }: Cell) =>
	`${family}: ${limit}, ${items} tasks of ${tasks.name}`;
