import {
	type DeliveryCheck,
	type CheckState,
} from '../../../nodes/MediaGeneration/suspend/checkState';
import { nextCheckAt } from '../../../nodes/MediaGeneration/suspend/checkSchedule';
const MINUTE = 60_000;

const check = (more: Partial<DeliveryCheck> = {}): CheckState => ({
	version: 1,
	purpose: 'delivery',
	nodeName: 'Media',
	startedAt: 0,
	intervalMs: 0,
	deliveries: [],
	...more,
});

/** The moments of all checks until `end`, in minutes. */
function checksUntil(end: number, state: CheckState, deadline = Infinity): number[] {
	const checks: number[] = [];
	for (let now = 0; ;) {
		now = nextCheckAt(state, now, [deadline]);
		if (now > end) return checks;
		checks.push(now / MINUTE);
		if (now === deadline) return checks;
	}
}

it('checks once a minute at first, then after a quarter of the time waited, at most every 15 minutes', () => {
	const checks = checksUntil(24 * 60 * MINUTE, check());
	expect(checks.slice(0, 6)).toEqual([1, 2, 3, 4, 5, 6.25]);
	const pauses = checks.slice(1).map((check, index) => check - (checks[index] ?? 0));
	expect(Math.max(...pauses)).toBe(15);
	expect(checks.length).toBeLessThan(120);
});

it('is late by a quarter of the time at most, or by a minute', () => {
	const checks = checksUntil(60 * MINUTE, check());
	for (const [index, check] of checks.slice(1).entries()) {
		const before = checks[index] ?? 0;
		expect(check - before).toBeLessThanOrEqual(Math.max(before / 4, 1) + 1e-9);
	}
});

it('checks at the fixed interval where one is set', () => {
	expect(checksUntil(10 * MINUTE, check({ intervalMs: 3 * MINUTE }))).toEqual([3, 6, 9]);
});

it('checks at a deadline that comes first, and goes on after one that is over', () => {
	expect(nextCheckAt(check(), 0, [20_000, 90_000])).toBe(20_000);
	expect(nextCheckAt(check(), 100_000, [20_000])).toBe(100_000 + MINUTE);
});

it('checks again in a minute where a callback said more than the record', () => {
	const now = 120 * MINUTE;
	expect(nextCheckAt(check({ woken: true }), now, [])).toBe(now + MINUTE);
	expect(nextCheckAt(check(), now, [])).toBe(now + 15 * MINUTE);
});

it('never checks sooner where the clock was set back', () => {
	expect(nextCheckAt(check({ startedAt: 90 * MINUTE }), 30 * MINUTE, [])).toBe(31 * MINUTE);
});
