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
])(
	'after %d minutes a run sleeps for %d: a quarter of the time waited, from one to 15',
	(waited, minutes) => {
		expect(sleepOf(waited)).toBe(minutes);
	},
);

it('sleeps longer by chance, by a tenth at most, so that many runs do not wake at once', () => {
	expect([sleepOf(60, {}, 0), sleepOf(60, {}, 0.5), sleepOf(60, {}, 1)]).toEqual([15, 15.75, 16.5]);
});

it.each<[string, number, Partial<Sleeper>, number]>([
	['when n8n looks next, if an order may be sent', 600, { orderAt: -Infinity }, 0],
	[
		'when the pause that the service asks for is over, if it is short',
		600,
		{ orderAt: NOW + 5 * MINUTE },
		5,
	],
	[
		'as usual for its tasks, if the service asks orders to wait for long',
		600,
		{ orderAt: NOW + 5 * HOUR },
		15,
	],
	['after the pause that the service asks of reads', 600, { notBefore: NOW + HOUR }, 60],
	[
		'for its orders, whatever the service asks of reads',
		600,
		{ notBefore: NOW + HOUR, orderAt: NOW + MINUTE },
		1,
	],
	[
		'after a minute for a task whose time is up and that could not be read',
		600,
		{ isOverdue: true },
		1,
	],
	[
		'after the pause of reads for a task whose time is up',
		600,
		{ isOverdue: true, notBefore: NOW + 3 * MINUTE },
		3,
	],
	[
		'at the moment when the time of a task is up',
		60,
		{ dueAt: [NOW + 20 * MINUTE, NOW + 7 * MINUTE] },
		7,
	],
	[
		'as usual for a task whose time was up, which was seen to in this turn',
		60,
		{ dueAt: [NOW - MINUTE, Infinity] },
		15,
	],
	["a minute and a half before n8n's time limit", 60, { limitAt: NOW + 10 * MINUTE }, 8.5],
	['at once where the time limit is near, and never in the past', 60, { limitAt: NOW + MINUTE }, 0],
])('is woken %s', (_when, waited, more, minutes) => {
	expect(sleepOf(waited, more)).toBe(minutes);
});
