import { nextToCreate } from '../../../nodes/MediaGeneration/run/sleep';
import { Turn } from '../../../nodes/MediaGeneration/run/turn';
import { Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { HOUR, MINUTE, SECOND } from '../../durations';
import { FakeClock } from '../support';

describe('the first turn', () => {
	it('lasts so long from the start of the run, whether it creates or not', () => {
		const clock = new FakeClock();
		const turn = new Turn(0, 5 * MINUTE, false);
		clock.pass(5 * MINUTE - 1);
		expect(turn.isOver).toBe(false);
		clock.pass(1);
		expect(turn.isOver).toBe(true);
	});

	it('is over at once where the run is to be stored first', () => {
		const clock = new FakeClock(7);
		expect(new Turn(clock.now(), 0, false).isOver).toBe(true);
	});
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
	it('ends at its moment', async () => {
		const clock = new FakeClock();
		const turn = new Turn(0, 5 * MINUTE, false);
		expect(await turn.reaches(30_500, undefined)).toBe(true);
		expect(clock.now()).toBe(30_500);
	});

	it('ends with the turn', async () => {
		const clock = new FakeClock();
		const turn = new Turn(0, MINUTE, false);
		expect(await turn.reaches(HOUR, undefined)).toBe(false);
		expect(clock.now()).toBeLessThanOrEqual(MINUTE + SECOND);
	});

	it('ends when nobody waits any more', async () => {
		const clock = new FakeClock();
		const turn = new Turn(0, Infinity, false);
		const isEnough = () => clock.now() >= 3 * SECOND;
		expect(await turn.reaches(HOUR, undefined, isEnough)).toBe(false);
		expect(clock.now()).toBe(3 * SECOND);
	});

	it('ends with a stop', async () => {
		new FakeClock();
		const turn = new Turn(0, Infinity, false);
		await expect(turn.reaches(HOUR, AbortSignal.abort())).rejects.toBeInstanceOf(Stopped);
	});
});

describe('the tasks that the next turn may create', () => {
	const left = Array.from({ length: 1000 }, (_, index) => index);

	it.each([
		[0, 25],
		[5, 25],
		[20, 40],
		[25, 50],
		[900, 50],
	])('after a turn that created %d are the next %d', (created, count) => {
		expect(nextToCreate(left, created)).toEqual(left.slice(0, count));
	});

	it('are no more than are left', () => {
		expect(nextToCreate([1, 2], 30)).toEqual([1, 2]);
	});
});
