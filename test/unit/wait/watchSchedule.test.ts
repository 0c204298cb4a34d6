import { nextLookAt } from '../../../nodes/MediaGeneration/wait/watchSchedule';
import type { DeliveryWatch, WatchState } from '../../../nodes/MediaGeneration/wait/watchState';

const MINUTE = 60_000;

const watch = (more: Partial<DeliveryWatch> = {}): WatchState => ({
	version: 1,
	purpose: 'delivery',
	nodeName: 'Media',
	startedAt: 0,
	intervalMs: 0,
	deliveries: [],
	...more,
});

/** The moments of all looks until `end`, in minutes. */
function looksUntil(end: number, state: WatchState, deadline = Infinity): number[] {
	const looks: number[] = [];
	for (let now = 0; ;) {
		now = nextLookAt(state, now, [deadline]);
		if (now > end) return looks;
		looks.push(now / MINUTE);
		if (now === deadline) return looks;
	}
}

it('looks once a minute at first, then after a quarter of the time waited, at most every 15 minutes', () => {
	const looks = looksUntil(24 * 60 * MINUTE, watch());
	expect(looks.slice(0, 6)).toEqual([1, 2, 3, 4, 5, 6.25]);
	const pauses = looks.slice(1).map((look, index) => look - (looks[index] ?? 0));
	expect(Math.max(...pauses)).toBe(15);
	expect(looks.length).toBeLessThan(120);
});

it('is late by a quarter of the time at most, or by a minute', () => {
	const looks = looksUntil(60 * MINUTE, watch());
	for (const [index, look] of looks.slice(1).entries()) {
		const before = looks[index] ?? 0;
		expect(look - before).toBeLessThanOrEqual(Math.max(before / 4, 1) + 1e-9);
	}
});

it('looks at the fixed interval where one is set', () => {
	expect(looksUntil(10 * MINUTE, watch({ intervalMs: 3 * MINUTE }))).toEqual([3, 6, 9]);
});

it('looks at a deadline that comes first, and goes on after one that is over', () => {
	expect(nextLookAt(watch(), 0, [20_000, 90_000])).toBe(20_000);
	expect(nextLookAt(watch(), 100_000, [20_000])).toBe(100_000 + MINUTE);
});

it('looks again in a minute where a callback said more than the record', () => {
	const now = 120 * MINUTE;
	expect(nextLookAt(watch({ woken: true }), now, [])).toBe(now + MINUTE);
	expect(nextLookAt(watch(), now, [])).toBe(now + 15 * MINUTE);
});

it('never looks sooner where the clock was set back', () => {
	expect(nextLookAt(watch({ startedAt: 90 * MINUTE }), 30 * MINUTE, [])).toBe(31 * MINUTE);
});
