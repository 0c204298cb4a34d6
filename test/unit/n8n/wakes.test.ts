import {
	forgetLooks,
	nextLookAfter,
	nextWakeAt,
	noteWake,
	type Sleeper,
	whenLookIsLearnt,
} from '../../../nodes/MediaGeneration/n8n/wakes';
import { clock } from '../../../nodes/MediaGeneration/shared/clock';
import { HOUR, MINUTE, SECOND } from '../../durations';

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

describe('when n8n looks', () => {
	const { now } = clock;
	beforeEach(forgetLooks);
	afterEach(() => (clock.now = now));

	/** A run that was due at a moment was woken at another one, seconds. */
	function woken(dueAt: number, at: number): void {
		clock.now = () => at * SECOND;
		noteWake(dueAt * SECOND);
	}

	/** At which second of the minute the next look comes. */
	const second = () => {
		const next = nextLookAfter(1_000 * MINUTE);
		return next === undefined ? undefined : Math.round((next % MINUTE) / 100) / 10;
	};

	it('is not known before a run was woken late', () => {
		woken(10, 10.4);
		expect(second()).toBeUndefined();
		woken(55, 60.3);
		expect(second()).toBe(0.3);
		expect(nextLookAfter(61 * SECOND)).toBeCloseTo(120.3 * SECOND);
	});

	it('is told by the first run that a look has woken, however many n8n starts after it', () => {
		woken(20, 60.4);
		for (let at = 61; at < 95; at += 3) woken(30, at);
		expect(second()).toBe(0.4);
	});

	it('is known for good again at the next look, after a busy n8n has started the first run late', () => {
		woken(10, 78);
		expect(second()).toBe(18);
		// The run ends its turn five seconds before the look that it expects, which is after the look.
		woken(133, 180.2);
		expect(second()).toBe(0.2);
	});

	it('stays what most wakes say, if one is late by chance', () => {
		for (const minute of [1, 2, 3]) woken(60 * minute - 5, 60 * minute + 0.3);
		woken(4 * 60 - 5, 4 * 60 + 25);
		expect(second()).toBe(0.3);
	});

	it.each([15, 40])('follows n8n, if it looks %d seconds later since its start', (seconds) => {
		for (let minute = 1; minute <= 5; minute++) woken(60 * minute - 5, 60 * minute + 0.2);
		for (let minute = 7; minute <= 12; minute++) {
			const expected = Number(second());
			const look = 60 * minute + seconds + 0.2;
			const storedAt = look - ((((look - expected) % 60) + 60) % 60) - 5;
			woken(storedAt, look);
		}
		expect(second()).toBeCloseTo(seconds + 0.2);
	});

	it('follows a timer that drifts by milliseconds each minute, for weeks', () => {
		for (let minute = 1; minute < 20_000; minute++) {
			const look = minute * 60.001;
			woken(look - 5, look + 0.2);
		}
		expect(second()).toBeGreaterThan(20.1);
		expect(second()).toBeLessThan(20.3);
	});

	it('is told to whoever wants to know, each time that it changes', () => {
		const told: unknown[] = [];
		const end = whenLookIsLearnt(() => told.push(second()));
		woken(55, 60.3);
		woken(115, 120.4);
		woken(160, 195);
		woken(250, 255);
		end();
		woken(290, 330);
		expect(told[0]).toBe(0.3);
		expect(told.length).toBeLessThan(4);
	});
});
