import { largestBurst } from '../../bench/burst';

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
