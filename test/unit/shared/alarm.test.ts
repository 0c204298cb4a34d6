import { Alarm, clock, Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { MINUTE, SECOND } from '../../durations';
import { turn } from '../../virtualTime';
import { pass, time, virtualTime } from '../../workflow/time';

virtualTime();

function opened(signal?: AbortSignal) {
	const alarm = new Alarm(signal);
	const startedAt = clock.now();
	/** Who went on, and after how many seconds. */
	const went: string[] = [];
	const wait = (name: string, seconds: number) => {
		const { woken, wake } = alarm.wait(startedAt + seconds * SECOND);
		const after = () => Math.round((clock.now() - startedAt) / SECOND);
		woken.then(
			() => went.push(`${name} at ${after()}`),
			(error: unknown) => went.push(`${name}: ${(error as Error).message}`),
		);
		return wake;
	};
	return { alarm, wait, went };
}

it('wakes each at its moment, in the order of the moments', async () => {
	const { wait, went } = opened();
	for (const seconds of [30, 10, 20, 40, 10]) wait('a', seconds);
	await pass(35 * SECOND);
	expect(went).toEqual(['a at 10', 'a at 10', 'a at 20', 'a at 30']);
	await pass(5 * SECOND);
	expect(went).toHaveLength(5);
});

it('wakes at once for a moment that has come', async () => {
	const { wait, went } = opened();
	wait('a', -1);
	await turn();
	expect(went).toEqual(['a at 0']);
});

it('wakes one before its moment, once, and the others at theirs', async () => {
	const { wait, went } = opened();
	wait('a', 10);
	const wake = wait('b', 20);
	wait('c', 30);
	wake();
	wake();
	await turn();
	expect(went).toEqual(['b at 0']);
	await pass(MINUTE);
	expect(went).toEqual(['b at 0', 'a at 10', 'c at 30']);
});

it('wakes all', async () => {
	const { alarm, wait, went } = opened();
	wait('a', 10);
	wait('b', Infinity);
	alarm.wakeAll();
	await turn();
	expect(went).toEqual(['a at 0', 'b at 0']);
});

it('sets no timer for somebody who waits for no moment', async () => {
	const { wait, went } = opened();
	const wake = wait('a', Infinity);
	expect(time.timersLeft).toBe(0);
	wake();
	await turn();
	expect(went).toEqual(['a at 0']);
});

it('tells all who wait of a stop, and all who come later', async () => {
	const stop = new AbortController();
	const { wait, went } = opened(stop.signal);
	wait('a', 10);
	stop.abort();
	wait('b', 10);
	await turn();
	const { message } = new Stopped();
	expect(went).toEqual([`a: ${message}`, `b: ${message}`]);
	expect(time.timersLeft).toBe(0);
});

it('has one timer and one listener for 10,000 who wait, whoever is woken meanwhile', async () => {
	const stop = new AbortController();
	const listens = jest.spyOn(stop.signal, 'addEventListener');
	const { wait, went } = opened(stop.signal);
	const wakes = Array.from({ length: 10_000 }, (_, nth) => wait('a', 1 + ((nth * 7919) % 10_000)));
	await turn();
	expect([time.timersLeft, listens.mock.calls.length]).toEqual([1, 1]);
	for (let nth = 0; nth < 10_000; nth += 2) wakes[nth]?.();
	await turn();
	expect([went.length, time.timersLeft]).toEqual([5_000, 1]);
	time.jump(10_000 * SECOND);
	for (let turns = 0; turns < 10 && went.length < 10_000; turns++) await pass(SECOND);
	expect([went.length, time.timersLeft]).toEqual([10_000, 0]);
});
