import { CreateThrottle } from '../../nodes/MediaGeneration/create/createThrottle';
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

export interface DipResult extends Dip {
	ms: number;
	bestMs: number;
	refusals: number;
	refusalsInMinute: number;
}

const tasks = ({ items, taskMs, runs }: Omit<Dip, 'name'>) =>
	`${runs.length > 1 ? `${runs.length} × ` : ''}${items} × ${taskMs / SECOND} s`;

const dip = (
	what: string,
	rest: Omit<Dip, 'name' | 'runs'> & { runs?: readonly number[] },
): Dip => {
	const all = { runs: [0], ...rest };
	return { ...all, name: `${what} (${tasks(all)})` };
};

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
	dip('5 places, 1 for 5 min, 5 again', { places: fewer(5, 1, 2, 5), items: 60, taskMs: MINUTE }),
	dip('10 places, 1 for 3 min, 10 again', {
		places: fewer(10, 1, 1, 3),
		items: 100,
		taskMs: 30 * SECOND,
	}),
	dip('10 places and 1 in turn, every 10 min', {
		places: inTurn(10, 1, 10),
		items: 300,
		taskMs: MINUTE,
	}),
	dip('20 places and 2 in turn, every 3 min', {
		places: inTurn(20, 2, 3),
		items: 1000,
		taskMs: 30 * SECOND,
	}),
	...[7, 5, 3, 2, 1, 0].map((least) =>
		dip(`10 places, ${least} for 5 min, 10 again`, {
			places: fewer(10, least, 3, 5),
			items: 300,
			taskMs: 40 * SECOND,
		}),
	),
	...[5, 1, 0].map((least) =>
		dip(`10 places, ${least} for 4 min, twice`, {
			places: fewer(10, least, 3, 4, 2),
			items: 400,
			taskMs: 40 * SECOND,
		}),
	),
	dip('40 places, 3 for 6 min, 40 again', {
		places: fewer(40, 3, 2, 6),
		items: 1000,
		taskMs: 20 * SECOND,
	}),
	dip('3 places, none for 10 min, 3 again', {
		places: fewer(3, 0, 3, 10),
		items: 100,
		taskMs: 30 * SECOND,
	}),
	...[3, 10, 40].map((places) =>
		dip(`${places} places that two of our runs share`, {
			places: [[0, places]],
			items: 20 * places,
			taskMs: 30 * SECOND,
			runs: [0, MINUTE],
		}),
	),
	dip('10 places that two of our runs share, of unlike lengths of life', {
		places: fewer(10, 4, 4, 4),
		items: 100,
		taskMs: MINUTE,
		runs: [0, 5 * MINUTE],
	}),
];

export function runDip(each: Dip): DipResult {
	const { places, items, taskMs, runs } = each;
	const rules: Rules = { concurrency: places };
	const policies = runs.map((startsAt) => ({
		items,
		taskMs,
		startsAt,
		policy: new CreateThrottle(chance()),
	}));
	const { ms, refusals, refusalsInMinute } = simulate(rules, policies);
	// All tasks of the runs as one batch: nobody could share the places better.
	const best = simulate(rules, [{ items: items * runs.length, taskMs, policy: new Oracle(rules) }]);
	return { ...each, ms, bestMs: best.ms, refusals, refusalsInMinute };
}
