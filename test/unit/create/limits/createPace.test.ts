import { CreatePace } from '../../../../nodes/MediaGeneration/create/limits/createPace';
import {
	type Cell,
	describeCell,
	isWithin,
	mostRefusals,
	ratioOf,
	run,
} from '../../../limits/cell';
import { CELLS } from '../../../limits/grid';
import shortfalls from '../../../limits/shortfalls.json';
import { simulate } from '../../../limits/simulate';

/** What takes seconds: of the combinations of both limits, and of all with `Retry-After`, one ninth and two thirds. */
const isQuick = ({ family, items, tasks }: Cell) => {
	if (family.startsWith('Both')) return items === 200 && tasks.ms === 30_000;
	return items < 2000 || !family.includes('Retry-After');
};

const known = new Map(shortfalls.map((shortfall) => [shortfall.cell, shortfall]));

const results = CELLS.filter(isQuick).map(run);
const families = [...new Set(results.map(({ family }) => family))];

describe('against an oracle that knows the limits of every moment', () => {
	it.each(families)('%s: 1.25 times its time, one refusal for ten tasks, and six', (family) => {
		const outside = results.filter((cell) => cell.family === family && !isWithin(cell));
		// Cells that fall short are listed with their figures, and may not become worse.
		const worse = outside.filter((cell) => {
			const listed = known.get(describeCell(cell));
			return (
				!listed ||
				ratioOf(cell) > Math.max(1.25, listed.ratio + 0.01) ||
				cell.refusals > Math.max(mostRefusals(cell), listed.refusals)
			);
		});
		expect(worse.map(describeCell)).toEqual([]);
	});

	it('few cells are outside where tasks are waited for', () => {
		const waiting = results.filter(({ leaves }) => !leaves);
		const outside = waiting.filter((cell) => !isWithin(cell));
		expect(outside.length).toBeLessThan(0.06 * waiting.length);
	});

	it('more are where items leave at once', () => {
		const leaving = results.filter(({ leaves }) => leaves);
		const outside = leaving.filter((cell) => !isWithin(cell));
		expect(outside.length).toBeLessThan(0.15 * leaving.length);
	});
});

it.each([1, 7, 40])(
	'never has more than %d tasks unfinished where the user allows no more',
	(most) => {
		const pace = new CreatePace(most, 200, 2000, 0, () => 0.5);
		const { most: unfinished } = simulate({}, 5000, 200, pace);
		expect(unfinished).toBeLessThanOrEqual(most);
	},
);

it('one create after another is refused for hours: it looks ever more seldom, and goes on at last', () => {
	const pace = new CreatePace(100, 100, 2000, 0, () => 0.5);
	const open = 3 * 3_600_000;
	const { ms, refusals } = simulate(
		{
			concurrency: [
				[0, 0],
				[open, 100],
			],
		},
		5000,
		100,
		pace,
	);
	expect(refusals).toBeLessThan(3 * 125);
	expect(ms).toBeLessThan(open + 60_000);
});
