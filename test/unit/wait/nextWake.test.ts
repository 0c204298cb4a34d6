import { nextWakeAt, type Sleeper } from '../../../nodes/MediaGeneration/wait/nextWake';
import { HOUR, MINUTE } from '../../durations';

const NOW = 100 * HOUR;

/** Minutes until a run wakes that began so many minutes ago. */
function sleepOf(waited: number, more: Partial<Sleeper> = {}, random = 0): number {
	const sleeper = { startedAt: NOW - waited * MINUTE, intervalMs: 0, isOverdue: false, dueAt: [] };
	return (nextWakeAt({ ...sleeper, ...more }, NOW, random) - NOW) / MINUTE;
}

it.each([
	[0, 1],
	[3, 1],
	[8, 2],
	[40, 10],
	[60, 15],
	[1200, 15],
])(
	'after %d minutes a run sleeps for %d: a quarter of the time waited, from one to 15',
	(waited, minutes) => {
		expect(sleepOf(waited)).toBe(minutes);
	},
);

it("sleeps for the user's interval, however long it has waited", () => {
	const chosen = { intervalMs: 30 * MINUTE };
	expect([sleepOf(0, chosen), sleepOf(1200, chosen)]).toEqual([30, 30]);
});

it('sleeps longer by chance, by a tenth at most, so that many runs do not wake at once', () => {
	expect([sleepOf(60, {}, 0), sleepOf(60, {}, 0.5), sleepOf(60, {}, 1)]).toEqual([15, 15.75, 16.5]);
});

it("is woken when n8n looks next while something is left to create, or at the user's interval", () => {
	expect(sleepOf(600, { isCreating: true })).toBe(0);
	expect(sleepOf(600, { isCreating: true, intervalMs: 3 * MINUTE })).toBe(3);
});

it('is woken after a minute for a task whose time is up and that could not be read', () => {
	expect(sleepOf(600, { isOverdue: true, intervalMs: 30 * MINUTE })).toBe(1);
});

it('is woken at the moment when the time of a task is up', () => {
	expect(sleepOf(60, { dueAt: [NOW + 20 * MINUTE, NOW + 7 * MINUTE] }, 1)).toBe(7);
	// It was seen to in this turn.
	expect(sleepOf(60, { dueAt: [NOW - MINUTE, Infinity] })).toBe(15);
});

it("is woken a minute and a half before n8n's time limit, and never in the past", () => {
	expect(sleepOf(60, { limitAt: NOW + 10 * MINUTE })).toBe(8.5);
	expect(sleepOf(60, { limitAt: NOW + MINUTE })).toBe(0);
});
