import { RequestGap, RequestSlots } from '../../../nodes/MediaGeneration/service/requestPace';
import { FakeClock } from '../support';

const slots = (count: number, take: () => number) => Array.from({ length: count }, take);

it('spreads requests that could all go at once, the first without a pause', () => {
	const pace = new RequestSlots(new RequestGap(new FakeClock(1000)), 2000, 10);
	expect(slots(4, () => pace.requestSlot())).toEqual([1000, 1004, 1008, 1012]);
});

it('makes up for nothing after a pause', () => {
	const clock = new FakeClock();
	const pace = new RequestSlots(new RequestGap(clock), 2000, 10);
	slots(3, () => pace.requestSlot());
	clock.pass(500);
	expect(slots(2, () => pace.requestSlot())).toEqual([500, 504]);
});

it('has no first read before it is due', () => {
	const pace = new RequestSlots(new RequestGap(new FakeClock()), 2000, 10);
	expect(pace.firstReadSlot(2000)).toBe(2000);
	expect(pace.firstReadSlot(9000)).toBe(9000);
});

it('sets the first reads of a small batch 50 ms apart', () => {
	const pace = new RequestSlots(new RequestGap(new FakeClock()), 2000, 10);
	expect(slots(3, () => pace.firstReadSlot(2000))).toEqual([2000, 2050, 2100]);
});

it.each([100, 200, 1000])('fits the first reads of %d tasks into one interval', (inFlight) => {
	const pace = new RequestSlots(new RequestGap(new FakeClock()), 2000, inFlight);
	const all = slots(inFlight, () => pace.firstReadSlot(2000));
	expect(Math.max(...all)).toBeLessThan(4000);
	expect(new Set(all).size).toBe(inFlight);
});

it('knows of the creates of the same run', () => {
	const gap = new RequestGap(new FakeClock());
	const pace = new RequestSlots(gap, 2000, 10);
	expect([gap.take(), pace.requestSlot(), gap.nextAt]).toEqual([0, 4, 8]);
});
