import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { settled, Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { ReadWindow } from '../../../nodes/MediaGeneration/read/readWindow';
import { SECOND } from '../../durations';
import { RateLimiter } from '../../service/limits';
import { EPOCH } from '../../virtualTime';
import { passTime, virtualTime } from '../../workflow/time';

virtualTime();

const elapsed = () => Date.now() - EPOCH;
const after = async (ms: number) =>
	await new Promise<void>((resolve) => void setTimeout(resolve, ms));
const tooMany = (retryAfterMs?: number) =>
	new ServiceError('tooManyRequests', 'Too many', { retryAfterMs });

/** A service that answers each read after a while, and counts the reads under way. */
function service(
	answerMs = 100,
	refuse: (sent: number) => ServiceError | undefined = () => undefined,
) {
	const state = { sent: 0, underWay: 0, most: 0, at: [] as number[] };
	const read = async () => {
		const refusal = refuse(state.sent++);
		state.at.push(elapsed());
		state.most = Math.max(state.most, ++state.underWay);
		await after(answerMs);
		state.underWay--;
		if (refusal) throw refusal;
		return 'record';
	};
	return { state, read };
}

it('starts with a few reads at once, and lets one more under way with each answer', async () => {
	const { state, read } = service(SECOND);
	const window = new ReadWindow(undefined);
	const all = Promise.all(Array.from({ length: 60 }, async () => await window.read(read)));
	await passTime(after(900));
	expect(state.most).toBe(4);
	await passTime(all);
	expect(state.most).toBeGreaterThan(8);
});

it('of the reads that were under way together only the first refusal counts', async () => {
	const { state, read } = service(SECOND, (sent) => (sent < 4 ? tooMany() : undefined));
	const window = new ReadWindow(undefined);
	const all = Promise.all(Array.from({ length: 12 }, async () => await settled(window.read(read))));
	await passTime(all);
	// One halving of four, and half a second: four would have been four halvings and a pause of four seconds.
	const [fifth = 0, sixth, seventh] = state.at.slice(4);
	expect(fifth).toBeLessThan(2 * SECOND);
	expect(sixth).toBeLessThan(fifth + SECOND / 10);
	expect(seventh).toBeGreaterThanOrEqual(fifth + SECOND);
});

it('pauses twice as long after each further refusal, half a minute at most, and briefly again after an answer', async () => {
	const { state, read } = service(0, (sent) => (sent === 8 ? undefined : tooMany()));
	const window = new ReadWindow(undefined);
	for (let reads = 0; reads < 11; reads++) await passTime(settled(window.read(read)));
	const pauses = state.at.slice(1).map((at, index) => at - (state.at[index] ?? 0));
	const rounded = pauses.map((ms) => Math.round(ms / 100) / 10);
	expect(rounded).toEqual([0.5, 1, 2, 4, 8, 16, 30, 30, 0, 0.5]);
});

it('sends no read before the time that the service names, none that would begin too late, and none after a stop', async () => {
	const { state, read } = service(10, (sent) => (sent === 0 ? tooMany(45 * SECOND) : undefined));
	const stop = new AbortController();
	const window = new ReadWindow(stop.signal);
	await passTime(settled(window.read(read)));
	const giveUpAt = performance.now() + 10 * SECOND;
	expect(await passTime(window.read(read, giveUpAt))).toBeUndefined();
	await passTime(window.read(read));
	expect(state.at.map((ms) => Math.floor(ms / SECOND))).toEqual([0, 45]);
	state.sent = 0;
	await passTime(settled(window.read(read)));
	const waiting = settled(window.read(read));
	stop.abort();
	expect(await passTime(waiting)).toMatchObject({ error: expect.any(Stopped) as Stopped });
	expect(state.sent).toBe(1);
});

it('other trouble changes nothing', async () => {
	const { state, read } = service(10, (sent) =>
		sent % 5 === 4 ? new ServiceError('serviceDown', 'Down', { statusCode: 502 }) : undefined,
	);
	const window = new ReadWindow(undefined);
	const all = Array.from({ length: 100 }, async () => await settled(window.read(read)));
	await passTime(Promise.all(all));
	expect(state.sent).toBe(100);
	expect(elapsed()).toBeLessThan(5 * SECOND);
});

it('reads 200 tasks at 10 a second in well under a minute, each until it has its record', async () => {
	const limiter = new RateLimiter();
	const rate = { kind: 'bucket', perSecond: 10, windowSeconds: 1 } as const;
	const { read } = service(50, () => {
		const now = elapsed();
		if (limiter.freeAt(now, rate) > now) return tooMany();
		limiter.take(now, rate);
		return undefined;
	});
	const window = new ReadWindow(undefined);
	const untilRead = async () => {
		for (;;) {
			const answer = await settled(window.read(read));
			if (!('error' in answer)) return answer.value;
			await after(2 * SECOND);
		}
	};
	const all = await passTime(Promise.all(Array.from({ length: 200 }, untilRead)));
	expect(all).toHaveLength(200);
	expect(elapsed()).toBeGreaterThanOrEqual(18 * SECOND);
	expect(elapsed()).toBeLessThan(40 * SECOND);
});
