import { bestPossible, largestBurst } from '../../bench/batchFigures';

describe('the largest burst of requests', () => {
	it('is nothing without requests', () => {
		expect(largestBurst([])).toBe(0);
	});

	it('counts those that are less than 100 ms apart', () => {
		expect(largestBurst([0, 99])).toBe(2);
		expect(largestBurst([0, 100])).toBe(1);
	});

	it('is found wherever it is', () => {
		expect(largestBurst([0, 500, 550, 560, 599, 600, 1000])).toBe(4);
	});
});

describe('the best possible time of a batch', () => {
	it('is that of its slowest task where all are begun at once', () => {
		expect(bestPossible([1, 5, 3], 3)).toBe(5);
		expect(bestPossible([1, 5, 3], 200)).toBe(5);
	});

	it('is the sum where they go one by one', () => {
		expect(bestPossible([1, 5, 3], 1)).toBe(9);
	});

	it('has each task begin in the first place that is free', () => {
		expect(bestPossible([4, 1, 2, 3], 2)).toBe(6);
	});
});
