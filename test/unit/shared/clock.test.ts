import {
	clock,
	ExpiringCache,
	sleepUntil,
	Stopped,
} from '../../../nodes/MediaGeneration/shared/clock';
import { time, virtualTime } from '../../workflow/time';
import { HOUR } from '../../durations';
import { FakeClock } from '../support';

virtualTime();

it('a stop ends the sleep at once', async () => {
	const stop = new AbortController();
	const start = clock.now();
	const slept = clock.sleep(60_000, stop.signal);
	stop.abort();
	await expect(slept).rejects.toBeInstanceOf(Stopped);
	expect(clock.now()).toBe(start);
});

it.each([-1, 1])(
	'a date that is changed by %d h makes no wait longer or shorter',
	async (hours) => {
		const start = clock.now();
		const slept = sleepUntil(start + 10_000, undefined).then(() => clock.now() - start);
		await time.pass(4_000);
		time.setWall(Date.now() + hours * HOUR);
		await time.pass(6_000);
		expect(await Promise.race([slept, 'still asleep'])).toBe(10_000);
	},
);

describe('sleeping until a moment', () => {
	it('goes on where a timer went off a little early', async () => {
		const clock = new FakeClock();
		clock.sleep = async () => clock.pass(40);
		await sleepUntil(100, undefined);
		expect(clock.now()).toBe(120);
	});

	it('comes in pieces that a timer can hold, where the moment is months away', async () => {
		const clock = new FakeClock();
		await sleepUntil(90 * 24 * HOUR, undefined);
		expect(clock.now()).toBe(90 * 24 * HOUR);
		expect(Math.max(...clock.sleeps)).toBeLessThan(2 ** 31);
	});
});

describe('a memory that expires', () => {
	it('forgets what is old, and counts its age from the last time that it was said', () => {
		const clock = new FakeClock();
		const memory = new ExpiringCache<number>(1000);
		memory.set('a', 1);
		memory.set('b', 1);
		clock.pass(999);
		memory.set('a', 1);
		clock.pass(1);
		expect([memory.get('a'), memory.get('b')]).toEqual([1, undefined]);
	});

	it('forgets the oldest first where there are too many', () => {
		const memory = new ExpiringCache<number>(1000);
		for (let nth = 0; nth < 10_000; nth++) memory.set(`${nth}`, 1);
		for (const key of ['0', 'last']) memory.set(key, 1);
		expect(['0', '1', '2', 'last'].map((key) => memory.get(key))).toEqual([1, undefined, 1, 1]);
	});
});
