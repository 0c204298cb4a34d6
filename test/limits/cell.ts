import { CreatePace } from '../../nodes/MediaGeneration/create/limits/createPace';
import type { Rules } from './account';
import { Oracle } from './oracle';
import { POLL_MS, simulate, type TaskMs } from './simulate';

/** How long the tasks of a batch take. */
export interface Tasks {
	name: string;
	ms: TaskMs;
}

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

export function run(cell: Cell): Result {
	const { rules, tasks, items, leaves = false } = cell;
	const knows = leaves ? 'atOnce' : 'polling';
	const oracle = simulate(rules, tasks.ms, items, new Oracle(rules), knows);
	// Chance that is the same in every run.
	let seed = 7;
	const random = () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
	const pace = new CreatePace(items, items, POLL_MS, 0, random);
	const ours = simulate(rules, tasks.ms, items, pace, leaves ? 'never' : 'polling');
	return { ...cell, ...ours, oracleMs: oracle.ms };
}

/** Times the oracle's time, at most. */
export const MOST_TIME = 1.25;
/** One refusal for ten tasks, and six to find out. */
export const mostRefusals = ({ items, rules }: Cell) =>
	6 + items / 10 + (rules.accidents?.nth.length ?? 0);

export const ratioOf = ({ ms, oracleMs }: Result) => ms / oracleMs;

/** Creates alone take tenths of a second where nobody waits for the tasks: there it may be so much more. */
const LEAVING_MORE_MS = 2000;
export const mostMs = ({ oracleMs, leaves = false }: Result) =>
	MOST_TIME * oracleMs + (leaves ? LEAVING_MORE_MS : 0);

export const isWithin = (result: Result) =>
	result.ms <= mostMs(result) && result.refusals <= mostRefusals(result);

export const describeCell = ({ family, limit, items, tasks }: Cell) =>
	`${family}: ${limit}, ${items} tasks of ${tasks.name}`;
