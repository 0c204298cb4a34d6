import { nextWakeAt, type Sleeper } from '../../../nodes/MediaGeneration/read/readWindow';
import { HOUR, MINUTE } from '../../durations';

const NOW = 100 * HOUR;

/** Minutes until a run wakes that began so many minutes ago. */
function sleepOf(waited: number, more: Partial<Sleeper> = {}, random = 0): number {
	const sleeper = { startedAt: NOW - waited * MINUTE, isOverdue: false, dueAt: [] };
	return (nextWakeAt({ ...sleeper, ...more }, NOW, random) - NOW) / MINUTE;
}

it.each([
	[0, 1],
	[3, 1],
	[8, 2],
	[40, 10],
	[60, 15],
	[1200, 15],
])('after %d minutes a run sleeps for %d: a quarter, from one to 15', (waited, minutes) => {
	expect(sleepOf(waited)).toBe(minutes);
});

it('sleeps longer by chance, by a tenth at most, so that many runs do not wake at once', () => {
	expect([sleepOf(60, {}, 0), sleepOf(60, {}, 0.5), sleepOf(60, {}, 1)]).toEqual([15, 15.75, 16.5]);
});

const inMinutes = (minutes: number) => NOW + minutes * MINUTE;
it.each<[string, number, Partial<Sleeper>, number]>([
	['when n8n looks next, if an order may be sent', 600, { orderAt: -Infinity }, 0],
	['when a short pause of orders is over', 600, { orderAt: inMinutes(5) }, 5],
	['as usual for its tasks in a long pause of orders', 600, { orderAt: inMinutes(300) }, 15],
	['after the pause of reads', 600, { notBefore: inMinutes(60) }, 60],
	['for its orders in it', 600, { notBefore: inMinutes(60), orderAt: inMinutes(1) }, 1],
	['soon for a task that could not be read in time', 600, { isOverdue: true }, 1],
	['after the pause of reads for it', 600, { isOverdue: true, notBefore: inMinutes(3) }, 3],
	['when the time of a task is up', 60, { dueAt: [inMinutes(20), inMinutes(7)] }, 7],
	['as usual for a task whose time was up', 60, { dueAt: [inMinutes(-1), Infinity] }, 15],
	["a minute and a half before n8n's time limit", 60, { limitAt: inMinutes(10) }, 8.5],
	['at once where it is near, and never in the past', 60, { limitAt: inMinutes(1) }, 0],
])('is woken %s', (_when, waited, more, minutes) => {
	expect(sleepOf(waited, more)).toBe(minutes);
});
