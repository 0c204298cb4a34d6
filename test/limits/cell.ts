import { AccountLimits } from '../../nodes/MediaGeneration/create/accountLimits';
import type { Rules } from './account';
import { Oracle } from './oracle';
import { type Learns, type Policy, simulate, type TaskMs } from './simulate';

/** One case of the table. */
export interface Cell {
	rules: Rules;
	taskMs: TaskMs;
	items: number;
	/** Whether the items leave at once, and nobody learns when a task ends. */
	leaves?: boolean;
}

export interface Result extends Cell {
	ms: number;
	oracleMs: number;
	refusals: number;
}

/** Chance that is the same in every run. */
export function chance(seed = 7): () => number {
	return () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
}

export function run(cell: Cell): Result {
	const { rules, taskMs, items, leaves = false } = cell;
	const simulated = <T>(policy: Policy<T>, learns: Learns) =>
		simulate(rules, [{ items, taskMs, policy, learns: leaves ? learns : 'polling' }]);
	const { ms: oracleMs } = simulated(new Oracle(rules), 'atOnce');
	return { ...cell, ...simulated(new AccountLimits(chance()), 'afterRefusal'), oracleMs };
}

/** Six refusals to find out, one for ten tasks, and one a minute. */
const mostRefusals = ({ items, rules, oracleMs }: Result) =>
	6 + items / 10 + oracleMs / 60_000 + (rules.accidents?.nth.length ?? 0);

/** Creates alone take tenths of a second where nobody waits for the tasks: there it may be so much more. */
const LEAVING_MORE_MS = 2000;
const mostMs = ({ oracleMs, leaves = false }: Result) =>
	1.25 * oracleMs + (leaves ? LEAVING_MORE_MS : 0);

export const isInTime = (result: Result) => result.ms <= mostMs(result);
export const isQuiet = (result: Result) => result.refusals <= mostRefusals(result);

/** Whether a limit is another one after a while. */
export const changes = ({ rules: { concurrency, rate } }: Cell) =>
	(concurrency?.length ?? 0) > 1 || (rate?.perSecond.length ?? 0) > 1;
