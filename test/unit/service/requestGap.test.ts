import { firstReadGapMs, RequestGap } from '../../../nodes/MediaGeneration/service/client';
import { FakeClock } from '../support';

const times = (count: number, take: () => number) => Array.from({ length: count }, take);

it('spreads requests that could all go at once, and makes up for nothing after a pause', () => {
	const clock = new FakeClock(1000);
	const gap = new RequestGap();
	expect(times(4, () => gap.take())).toEqual([1000, 1004, 1008, 1012]);
	expect(gap.nextAt).toBe(1016);
	clock.pass(500);
	expect(times(2, () => gap.take())).toEqual([1500, 1504]);
});

it('has no first read before it is due, and those of a small batch 50 ms apart', () => {
	const gap = new RequestGap(firstReadGapMs(2000, 10));
	expect(times(3, () => gap.take(2000))).toEqual([2000, 2050, 2100]);
	expect(gap.take(9000)).toBe(9000);
});

it.each([100, 200, 1000])('fits the first reads of %d tasks into one interval', (inFlight) => {
	const gap = new RequestGap(firstReadGapMs(2000, inFlight));
	const all = times(inFlight, () => gap.take(2000));
	expect(Math.max(...all)).toBeLessThan(4000);
	expect(new Set(all).size).toBe(inFlight);
});
