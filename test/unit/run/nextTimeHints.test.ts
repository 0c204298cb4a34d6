import { higherLimitSaves } from '../../../nodes/MediaGeneration/run/nextTimeHints';

const MINUTE = 60_000;
const tasks = (count: number, ms = MINUTE) => Array<number>(count).fill(ms);

describe('a higher limit', () => {
	it('brings a batch that it held back to the time of its longest task', () => {
		expect(higherLimitSaves({ taskMs: tasks(40), tookMs: 4 * MINUTE, maxInFlight: 10 })).toEqual({
			maxInFlight: 40,
			wouldTakeMs: MINUTE,
		});
	});

	it('is four times the present one at most', () => {
		expect(higherLimitSaves({ taskMs: tasks(400), tookMs: 40 * MINUTE, maxInFlight: 10 })).toEqual({
			maxInFlight: 40,
			wouldTakeMs: 10 * MINUTE,
		});
	});

	it('is never below the longest task', () => {
		const taskMs = [10 * MINUTE, ...tasks(19)];
		expect(higherLimitSaves({ taskMs, tookMs: 15 * MINUTE, maxInFlight: 2 })?.wouldTakeMs).toBe(
			10 * MINUTE,
		);
	});

	it.each([
		['all tasks were under way at once', tasks(10), MINUTE, 10],
		['it saves some seconds', tasks(12, 3000), 6000, 10],
		['it saves a small part', [10 * MINUTE, ...tasks(10)], 11 * MINUTE, 10],
		['there was no task', [], 0, 10],
	])('is not worth a word where %s', (_what, taskMs, tookMs, maxInFlight) => {
		expect(higherLimitSaves({ taskMs, tookMs, maxInFlight })).toBeUndefined();
	});
});
