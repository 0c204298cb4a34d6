import { sleepUntil, Stopped, systemClock } from '../../../nodes/MediaGeneration/shared/clock';
import { time, virtualTime } from '../../workflow/time';

virtualTime();

it('sleeps as long as it is told', async () => {
	const start = systemClock.now();
	const slept = systemClock.sleep(1500, undefined).then(() => systemClock.now() - start);
	await time.pass(60_000);
	expect(await slept).toBe(1500);
});

it('a stop ends the sleep at once', async () => {
	const stop = new AbortController();
	const start = systemClock.now();
	const slept = systemClock.sleep(60_000, stop.signal);
	stop.abort();
	await expect(slept).rejects.toBeInstanceOf(Stopped);
	expect(systemClock.now()).toBe(start);
});

it('there is no sleep after a stop', async () => {
	await expect(systemClock.sleep(0, AbortSignal.abort())).rejects.toBeInstanceOf(Stopped);
});

it('many sleeps leave no listener on the signal behind', async () => {
	const { signal } = new AbortController();
	const remove = jest.spyOn(signal, 'removeEventListener');
	const add = jest.spyOn(signal, 'addEventListener');
	for (let count = 0; count < 5; count++) {
		const slept = systemClock.sleep(10, signal);
		await time.pass(10);
		await slept;
	}
	expect([add.mock.calls.length, remove.mock.calls.length]).toEqual([5, 5]);
});

describe.each([-1, 1])('a date that is changed by %d h meanwhile', (hours) => {
	it('makes a wait neither longer nor shorter', async () => {
		const start = systemClock.now();
		const slept = sleepUntil(start + 10_000, systemClock, undefined).then(
			() => systemClock.now() - start,
		);
		await time.pass(4_000);
		time.setWall(Date.now() + hours * 3_600_000);
		await time.pass(6_000);
		expect(await Promise.race([slept, 'still asleep'])).toBe(10_000);
	});

	it('leaves moments that were noted before where they were', () => {
		const noted = systemClock.now();
		time.setWall(Date.now() + hours * 3_600_000);
		expect(systemClock.now()).toBe(noted);
	});
});
