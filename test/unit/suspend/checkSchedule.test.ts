import {
	nextCheckAt,
	noteOverdue,
	undelivered,
} from '../../../nodes/MediaGeneration/suspend/checkSchedule';
import { deliveryCheck, MINUTE } from './checks';

const check = (more = {}) => deliveryCheck({ startedAt: 0, ...more });

/** The moments of all checks until `end`, in minutes. */
function checksUntil(end: number, state = check()): number[] {
	const checks: number[] = [];
	for (let now = nextCheckAt(state, 0, []); now <= end; now = nextCheckAt(state, now, [])) {
		checks.push(now / MINUTE);
	}
	return checks;
}

it('checks once a minute at first, then after a quarter of the time waited, at most every 15 minutes', () => {
	const checks = checksUntil(24 * 60 * MINUTE);
	expect(checks.slice(0, 6)).toEqual([1, 2, 3, 4, 5, 6.25]);
	const pauses = checks
		.slice(1)
		.map((at, index) => [at - (checks[index] ?? 0), checks[index] ?? 0]);
	for (const [pause = 0, before = 0] of pauses) {
		expect(pause).toBeLessThanOrEqual(Math.max(before / 4, 1) + 1e-9);
		expect(pause).toBeLessThanOrEqual(15);
	}
	expect(Math.max(...pauses.map(([pause = 0]) => pause))).toBe(15);
	expect(checks.length).toBeLessThan(120);
});

it('checks at the fixed interval where one is set', () => {
	expect(checksUntil(10 * MINUTE, check({ intervalMs: 3 * MINUTE }))).toEqual([3, 6, 9]);
});

it('gives up no callback before the last one has had its ten minutes', () => {
	const until = (at: number) => ({ taskId: `task-${at}`, until: at, address: '/webhook/x' });
	let state = check({ deliveries: [until(0), until(30 * MINUTE)] });
	const isGivenUp = (at: number) => {
		state = noteOverdue(state, at);
		return undelivered(state, at) !== undefined;
	};
	const given = [0, 10, 29, 30, 39, 40].map((minutes) => isGivenUp(minutes * MINUTE));
	expect(given).toEqual([false, false, false, false, false, true]);
});

const HALF = MINUTE / 2;
const LATER = { startedAt: 90 * MINUTE };
it.each<[string, object, now: number, deadlines: number[], next: number]>([
	['at a deadline that comes first', {}, 0, [MINUTE / 3, 1.5 * MINUTE], MINUTE / 3],
	['once for deadlines less than a minute apart', {}, 0, [HALF, MINUTE / 3, MINUTE / 3 + 1], HALF],
	['regularly, after two hours', {}, 120 * MINUTE, [], 135 * MINUTE],
	['in a minute where a callback said more', { woken: true }, 120 * MINUTE, [], 121 * MINUTE],
	['no sooner where the clock was set back', LATER, 30 * MINUTE, [], 31 * MINUTE],
])('checks %s', (_what, more, now, deadlines, next) => {
	expect(nextCheckAt(check(more), now, deadlines)).toBe(next);
});
