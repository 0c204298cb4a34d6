import { Alarm, clock, Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { MINUTE, SECOND } from '../../durations';
import { tick } from '../../virtualTime';
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

it('wakes each once: at its moment, at once where that has come, or before, where somebody asks for it', async () => {
	const { wait, went } = opened();
	const wakes = [30, 10, -1, 20, Infinity].map((seconds) => wait(String(seconds), seconds));
	await tick();
	expect(went).toEqual(['-1 at 0']);
	for (const nth of [4, 3, 3]) wakes[nth]?.();
	await pass(MINUTE);
	expect(went.slice(1)).toEqual(['Infinity at 0', '20 at 0', '10 at 10', '30 at 30']);
});

it('wakes all, and sets no timer for somebody who waits for no moment', async () => {
	const { alarm, wait, went } = opened();
	wait('a', Infinity);
	expect(time.timersLeft).toBe(0);
	wait('b', 10);
	alarm.wakeAll();
	await tick();
	expect(went).toEqual(['a at 0', 'b at 0']);
});

it('tells all who wait of a stop, and all who come later', async () => {
	const stop = new AbortController();
	const { wait, went } = opened(stop.signal);
	wait('a', 10);
	stop.abort();
	wait('b', 10);
	await tick();
	const { message } = new Stopped();
	expect(went).toEqual([`a: ${message}`, `b: ${message}`]);
	expect(time.timersLeft).toBe(0);
});

it('has one timer and one listener for 10,000 who wait, whoever is woken meanwhile', async () => {
	const stop = new AbortController();
	const listens = jest.spyOn(stop.signal, 'addEventListener');
	const { wait, went } = opened(stop.signal);
	const wakes = Array.from({ length: 10_000 }, (_, nth) => wait('a', 1 + ((nth * 7919) % 10_000)));
	await tick();
	expect([time.timersLeft, listens.mock.calls.length]).toEqual([1, 1]);
	for (let nth = 0; nth < 10_000; nth += 2) wakes[nth]?.();
	await tick();
	expect([went.length, time.timersLeft]).toEqual([5_000, 1]);
	time.jump(10_000 * SECOND);
	for (let turns = 0; turns < 10 && went.length < 10_000; turns++) await pass(SECOND);
	expect([went.length, time.timersLeft]).toEqual([10_000, 0]);
});
