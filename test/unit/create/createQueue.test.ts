import { AccountLimits, type Ticket } from '../../../nodes/MediaGeneration/create/accountLimits';
import { CreateQueue } from '../../../nodes/MediaGeneration/create/createQueue';
import { RequestGap } from '../../../nodes/MediaGeneration/service/client';
import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { settled } from '../../../nodes/MediaGeneration/shared/promises';
import { Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { FakeClock } from '../support';
import { turn } from '../../virtualTime';
import { HOUR, SECOND } from '../../durations';

const tooMany = (retryAfterMs?: number) =>
	new ServiceError('tooManyRequests', 'Too many', {
		description: 'Lower it.',
		statusCode: 429,
		...(retryAfterMs !== undefined && { retryAfterMs }),
	});
const unreachable = () => new ServiceError('unreachable', 'Not there');

/** A queue with so many places, whose random pauses are as long as they can be. */
function opened(places = 10, signal?: AbortSignal) {
	const clock = new FakeClock();
	const throttle = new AccountLimits(() => 0.5);
	const queue = new CreateQueue(throttle, new RequestGap(), signal, () => 1, places);
	return { clock, queue };
}

async function enter(queue: CreateQueue, patienceMs = HOUR): Promise<Ticket> {
	const ticket = await queue.enter(() => patienceMs);
	if (!ticket) throw new Error('The queue is closed');
	return ticket;
}

/** Somebody who waits for a place, and how far it has come. */
function waiter(queue: CreateQueue, patienceMs = HOUR) {
	const seen: { ticket?: Ticket | undefined; error?: unknown; done: boolean } = { done: false };
	queue
		.enter(() => patienceMs)
		.then(
			(ticket) => Object.assign(seen, { ticket, done: true }),
			(error: unknown) => Object.assign(seen, { error, done: true }),
		);
	return seen;
}

/** Has so many tasks accepted, one after the other. */
async function fill(queue: CreateQueue, count: number): Promise<void> {
	for (let index = 0; index < count; index++) queue.accepted(await enter(queue));
}

describe('places', () => {
	it('are handed out at some distance', async () => {
		const { queue, clock } = opened();
		await fill(queue, 3);
		expect(clock.sleeps).toEqual([4, 4]);
	});

	it.each<[string, (queue: CreateQueue) => unknown, 'finished' | 'ended']>([
		['a task ends', async (queue) => await fill(queue, 1), 'finished'],
		['a task of an earlier try ends', (queue) => queue.throttle.unfinished++, 'finished'],
		['a create says nothing of the account', async (queue) => await enter(queue), 'ended'],
	])('come back when %s', async (_what, take, giveBack) => {
		const { queue } = opened(1);
		await take(queue);
		const next = waiter(queue);
		await turn();
		expect(next.done).toBe(false);
		queue[giveBack]();
		await turn();
		expect(next.ticket).toBeDefined();
	});
});

it('whoever has patience for the pause after a refusal keeps to it, although the last task ends meanwhile', async () => {
	const { queue, clock } = opened();
	await fill(queue, 1);
	queue.refused(await enter(queue), tooMany(HOUR), HOUR);
	clock.sleep = async () => await new Promise(() => undefined);
	const waiting = queue.enter(() => (queue.throttle.unfinished > 0 ? 2 * HOUR : SECOND));
	queue.finished();
	expect(await Promise.race([settled(waiting), turn()])).toBeUndefined();
});

describe('a connection that did not come about', () => {
	it('says nothing of how many tasks are let in', async () => {
		const { queue } = opened(2);
		queue.refused(await enter(queue), unreachable(), HOUR);
		await fill(queue, 2);
	});

	it('is put up with for some seconds, where nothing shows that there is a service', async () => {
		const { queue, clock } = opened();
		const together = [await enter(queue), await enter(queue)];
		clock.pass(SECOND);
		const hopeless = together.map((ticket) => queue.refused(ticket, unreachable(), HOUR));
		for (let count = 2; count <= 4; count++) {
			hopeless.push(queue.refused(await enter(queue), unreachable(), HOUR));
		}
		expect(hopeless).toEqual([false, false, false, false, true]);
	});

	it('is followed by ever longer pauses, until a task is accepted', async () => {
		const { queue, clock } = opened();
		for (let count = 0; count < 3; count++) queue.refused(await enter(queue), unreachable(), HOUR);
		queue.accepted(await enter(queue));
		clock.pass(SECOND);
		queue.refused(await enter(queue), unreachable(), HOUR);
		await enter(queue);
		expect(clock.sleeps.map((ms) => ms / SECOND)).toEqual([1, 2, 4, 1]);
	});
});

describe('a create in doubt', () => {
	/** A proxy's page, which may cover a task. */
	const page = (retryAfterMs?: number) =>
		new ServiceError('serviceDown', 'Down', {
			statusCode: 503,
			...(retryAfterMs && { retryAfterMs }),
		});

	it.each([
		[undefined, 1 * SECOND],
		[7 * SECOND, 7 * SECOND],
	])(
		'that asks to wait for %p ms has the next one wait for %d ms',
		async (retryAfterMs, pauseMs) => {
			const { queue, clock } = opened();
			queue.doubtful(await enter(queue), page(retryAfterMs), HOUR);
			const begunAt = clock.now();
			await enter(queue);
			expect(clock.now() - begunAt).toBe(pauseMs);
		},
	);

	it('that asks to wait for longer than one has patience for is an error that says so', async () => {
		const { queue } = opened();
		queue.doubtful(await enter(queue), page(HOUR), SECOND);
		await expect(enter(queue, SECOND)).rejects.toThrow('Down');
	});
});

describe('the time in which nobody is let in', () => {
	it('runs from the first refusal on', async () => {
		const { queue, clock } = opened();
		expect(queue.refused(await enter(queue), tooMany(), 10 * SECOND)).toBe(false);
		clock.pass(9 * SECOND);
		expect(queue.refused(await enter(queue), tooMany(), 10 * SECOND)).toBe(false);
		clock.pass(2 * SECOND);
		expect(queue.refused(await enter(queue), tooMany(), 10 * SECOND)).toBe(true);
	});

	it.each(['accepted', 'finished'] as const)('ends when a task is %s', async (event) => {
		const { queue, clock } = opened();
		await fill(queue, 1);
		const ticket = await enter(queue);
		queue.refused(await enter(queue), tooMany(), HOUR);
		clock.pass(11 * SECOND);
		if (event === 'accepted') queue.accepted(ticket);
		else {
			queue.finished();
			queue.ended();
		}
		expect(queue.refused(await enter(queue), tooMany(), 10 * SECOND)).toBe(false);
	});
});

describe('the end', () => {
	it('of a run lets nobody in any more, not even who waits, though a place becomes free at the same time', async () => {
		const { queue } = opened(1);
		await fill(queue, 1);
		const waiting = [waiter(queue), waiter(queue)];
		await turn();
		queue.close();
		queue.finished();
		await turn();
		expect(waiting).toEqual(Array(2).fill({ done: true, ticket: undefined }));
	});

	it.each<[string, (queue: CreateQueue) => Promise<unknown>]>([
		['for a place', async (queue) => await fill(queue, 1)],
		['in a pause', async (queue) => queue.refused(await enter(queue), tooMany(HOUR), HOUR)],
	])('by a stop is heard by everybody who waits %s', async (_what, before) => {
		const stop = new AbortController();
		const { queue } = opened(1, stop.signal);
		await before(queue);
		const waiting = [waiter(queue), waiter(queue)];
		stop.abort();
		await turn();
		expect(waiting.map(({ error }) => error instanceof Stopped)).toEqual([true, true]);
	});

	it('without hope is for whoever has no more patience, until one is let in', async () => {
		const { queue } = opened(1);
		await fill(queue, 1);
		const waiting = [waiter(queue), waiter(queue, 2 * HOUR), waiter(queue)];
		queue.close(tooMany(), HOUR);
		await turn();
		expect(waiting.map(({ done }) => done)).toEqual([true, false, false]);
		queue.finished();
		await turn();
		expect(waiting[1]?.ticket).toBeDefined();
	});
});
