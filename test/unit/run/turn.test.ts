import { nextToCreate } from '../../../nodes/MediaGeneration/run/sleep';
import { Turn } from '../../../nodes/MediaGeneration/run/turn';
import { Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { HOUR, MINUTE, SECOND } from '../../durations';
import { FakeClock } from '../support';

it('the first turn lasts so long from the start of the run, whether it creates or not', () => {
	const clock = new FakeClock();
	const turn = new Turn(0, 5 * MINUTE, false);
	clock.pass(5 * MINUTE - 1);
	expect(turn.isOver).toBe(false);
	clock.pass(1);
	expect(turn.isOver).toBe(true);
});

describe('a later turn', () => {
	it('is over where nothing is to be created', () => {
		const clock = new FakeClock();
		expect(new Turn(clock.now(), 5 * MINUTE, true).isOver).toBe(true);
	});

	it.each([
		[0, 1],
		[0.05, 1],
		[5, 5],
	])('with %d minutes lasts for %d while it creates', async (suspendAfter, minutes) => {
		const clock = new FakeClock();
		const turn = new Turn(clock.now(), suspendAfter * MINUTE, true);
		await turn.creates(async () => {
			clock.pass(minutes * MINUTE - 1);
			expect(turn.isOver).toBe(false);
			clock.pass(1);
			expect(turn.isOver).toBe(true);
		});
	});

	it('is over when its last create is done, also if that failed', async () => {
		const clock = new FakeClock();
		const turn = new Turn(clock.now(), 5 * MINUTE, true);
		const creates = turn.creates(async () => await Promise.reject(new Error('No')));
		expect(turn.isOver).toBe(false);
		await expect(creates).rejects.toThrow('No');
		expect(turn.isOver).toBe(true);
	});
});

it.each([false, true])('a run that is held has one turn, to its end (later: %s)', (isLater) => {
	const clock = new FakeClock();
	const turn = new Turn(clock.now(), Infinity, isLater);
	clock.pass(100 * HOUR);
	expect([turn.isOver, turn.maySleep]).toEqual([false, false]);
});

describe('a sleep in memory', () => {
	it.each([
		['at its moment', 30.5, 5 * MINUTE, Infinity, 30.5],
		['with the turn', 3600, MINUTE, Infinity, 60],
		['when nobody waits any more', 3600, Infinity, 3, 3],
	])('ends %s', async (_when, seconds, suspendAfterMs, enough, endsAt) => {
		const clock = new FakeClock();
		const turn = new Turn(0, suspendAfterMs, false);
		const isEnough = () => clock.now() >= enough * SECOND;
		const hasCome = await turn.reaches(seconds * SECOND, undefined, isEnough);
		expect([hasCome, clock.now()]).toEqual([endsAt === seconds, endsAt * SECOND]);
	});

	it('ends with a stop', async () => {
		new FakeClock();
		const turn = new Turn(0, Infinity, false);
		await expect(turn.reaches(HOUR, AbortSignal.abort())).rejects.toBeInstanceOf(Stopped);
	});
});

it.each([
	[0, 1000, 25],
	[5, 1000, 25],
	[20, 1000, 40],
	[25, 1000, 50],
	[900, 1000, 50],
	[30, 2, 2],
])(
	'after a turn that created %d, of %d tasks the next turn may create the first %d',
	(...given) => {
		const [created, count, next] = given;
		const left = Array.from({ length: count }, (_, index) => index);
		expect(nextToCreate(left, created)).toEqual(left.slice(0, next));
	},
);
