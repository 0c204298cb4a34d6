import { AccountLimits } from '../../nodes/MediaGeneration/create/accountLimits';
import type { Rules, Steps } from './account';
import { chance } from './cell';
import { Oracle } from './oracle';
import { simulate } from './simulate';
import { MINUTE, SECOND } from '../durations';

/** An account whose places change while one run, or two, create on it. */
export interface Dip {
	name: string;
	places: Steps;
	items: number;
	taskMs: number;
	/** When each run begins, milliseconds. */
	runs: readonly number[];
}

/** @param begins when each run begins, minutes */
function dip(what: string, places: Steps, items: number, seconds: number, begins = [0]): Dip {
	const runs = begins.map((minute) => minute * MINUTE);
	const tasks = `${runs.length > 1 ? `${runs.length} × ` : ''}${items} × ${seconds} s`;
	return { name: `${what} (${tasks})`, places, items, taskMs: seconds * SECOND, runs };
}

/** Places that are fewer for some minutes, from a minute on: once, or several times with as long a time between. */
const fewer = (places: number, least: number, from: number, minutes: number, times = 1): Steps => [
	[0, places],
	...Array.from({ length: times }, (_, nth) => from + 2 * nth * minutes).flatMap((begin) => [
		[begin * MINUTE, least] as const,
		[(begin + minutes) * MINUTE, places] as const,
	]),
];

/** Two limits in turn, for a day. */
const inTurn = (one: number, other: number, minutes: number): Steps =>
	Array.from({ length: (24 * 60) / minutes }, (_, nth) => [
		nth * minutes * MINUTE,
		nth % 2 === 0 ? one : other,
	]);

export const DIPS: readonly Dip[] = [
	dip('5 places, 1 for 5 min, 5 again', fewer(5, 1, 2, 5), 60, 60),
	dip('10 places, 1 for 3 min, 10 again', fewer(10, 1, 1, 3), 100, 30),
	dip('10 places and 1 in turn, every 10 min', inTurn(10, 1, 10), 300, 60),
	dip('20 places and 2 in turn, every 3 min', inTurn(20, 2, 3), 1000, 30),
	...[7, 5, 3, 2, 1, 0].map((least) =>
		dip(`10 places, ${least} for 5 min, 10 again`, fewer(10, least, 3, 5), 300, 40),
	),
	...[5, 1, 0].map((least) =>
		dip(`10 places, ${least} for 4 min, twice`, fewer(10, least, 3, 4, 2), 400, 40),
	),
	dip('40 places, 3 for 6 min, 40 again', fewer(40, 3, 2, 6), 1000, 20),
	dip('3 places, none for 10 min, 3 again', fewer(3, 0, 3, 10), 100, 30),
	...[3, 10, 40].map((places) =>
		dip(`${places} places that two of our runs share`, [[0, places]], 20 * places, 30, [0, 1]),
	),
	dip('6 places that two of our runs share, begun together', [[0, 6]], 40, 5, [0, 0]),
	dip('6 places that two of our runs share, begun 3 s apart', [[0, 6]], 40, 5, [0, 0.05]),
	dip(
		'10 places that two of our runs share, of unlike lengths of life',
		fewer(10, 4, 4, 4),
		100,
		60,
		[0, 5],
	),
];

/** @returns what the runs come to, and what an oracle needs for all their tasks as one batch: nobody could share the places better */
export function runDip({ places, items, taskMs, runs }: Dip) {
	const rules: Rules = { concurrency: places };
	const policies = runs.map((startsAt, nth) => ({
		...{ items, taskMs, startsAt },
		policy: new AccountLimits(chance(7 + nth)),
	}));
	const best = simulate(rules, [{ items: items * runs.length, taskMs, policy: new Oracle(rules) }]);
	return { ...simulate(rules, policies), bestMs: best.ms };
}
