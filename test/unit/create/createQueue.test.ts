import { AccountLimits, type Ticket } from '../../../nodes/MediaGeneration/create/accountLimits';
import { CreateQueue, type QueueState } from '../../../nodes/MediaGeneration/create/createQueue';
import { Turn } from '../../../nodes/MediaGeneration/run/turn';
import { RequestGap } from '../../../nodes/MediaGeneration/service/client';
import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { settled } from '../../../nodes/MediaGeneration/shared/promises';
import { Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { FakeClock } from '../support';
import { tick } from '../../virtualTime';
import { HOUR, MINUTE, SECOND } from '../../durations';

const tooMany = (retryAfterMs?: number) =>
	new ServiceError('tooManyRequests', 'Too many', {
		description: 'Lower it.',
		statusCode: 429,
		...(retryAfterMs !== undefined && { retryAfterMs }),
	});
const unreachable = () => new ServiceError('unreachable', 'Not there');
/** A proxy's page, which may cover a task. */
const page = (retryAfterMs?: number) =>
	new ServiceError('serviceDown', 'Down', {
		statusCode: 503,
		...(retryAfterMs && { retryAfterMs }),
	});

interface Given {
	stopsAtFailure?: boolean;
	places?: number;
	signal?: AbortSignal | undefined;
	/** *Sleep After*; Infinity for a run that is held. */
	suspendAfterMs?: number;
	state?: QueueState;
}

/** A queue with so many places, whose random pauses are as long as they can be. */
function opened({
	places = 10,
	signal,
	suspendAfterMs = Infinity,
	state = {},
	stopsAtFailure = false,
}: Given = {}) {
	const clock = new FakeClock();
	const limits = new AccountLimits(() => 0.5);
	const stretch = { beganAt: 0, isStored: false, startedAt: 0 };
	const began = { startedAt: 0, runStartedAt: 0, hasSlept: false, isWatched: false };
	const turn = new Turn({ ...began, suspendAfterMs, stretch, signal });
	const queue = new CreateQueue(limits, new RequestGap(), turn, signal, state, {
		random: () => 1,
		most: places,
		stopsAtFailure,
	});
	return { clock, queue, turn };
}

const come = async (queue: CreateQueue, patienceMs = HOUR, until = Infinity, isFirst = false) =>
	await queue.enter({ patienceMs, timeoutMs: 0, until, isFirst });

async function enter(queue: CreateQueue, patienceMs = HOUR): Promise<Ticket> {
	const ticket = await come(queue, patienceMs);
	if (!ticket) throw new Error('The queue is closed');
	return ticket;
}

/** Somebody who waits for a place, and how far it has come. */
function waiter(
	queue: CreateQueue,
	...given: [patienceMs?: number, until?: number, isFirst?: boolean]
) {
	const seen: { ticket?: Ticket | undefined; error?: unknown; done: boolean } = { done: false };
	come(queue, ...given).then(
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
		['a task of an earlier turn ends', (queue) => queue.limits.unfinished++, 'finished'],
		['an order says nothing of the account', async (queue) => await enter(queue), 'ended'],
	])('come back when %s', async (_what, take, giveBack) => {
		const { queue } = opened({ places: 1 });
		await take(queue);
		const next = waiter(queue);
		await tick();
		expect(next.done).toBe(false);
		queue[giveBack]();
		await tick();
		expect(next.ticket).toBeDefined();
	});

	it('are handed out in the order of the items, and first to an order that was refused', async () => {
		const { queue } = opened({ places: 1 });
		await fill(queue, 1);
		const order: string[] = [];
		const wait = async (name: string, isFirst: boolean) => {
			queue.accepted((await come(queue, HOUR, Infinity, isFirst))!);
			order.push(name);
		};
		const all = [wait('a', false), wait('b', false), wait('c', false), wait('refused', true)];
		for (let count = 0; count < 4; count++) {
			queue.finished();
			await tick();
		}
		await Promise.all(all);
		expect(order).toEqual(['refused', 'a', 'b', 'c']);
	});
});

describe('a pause that the service asks for', () => {
	it('is kept to by whoever has patience for it, although the last task ends meanwhile', async () => {
		const { queue, clock } = opened();
		await fill(queue, 1);
		queue.refused(await enter(queue), tooMany(HOUR));
		clock.sleep = async () => await new Promise(() => undefined);
		const waiting = queue.enter({ patienceMs: SECOND, timeoutMs: 2 * HOUR, until: Infinity });
		queue.finished();
		expect(await Promise.race([settled(waiting), tick()])).toBeUndefined();
	});

	it.each([
		['longer than the patience of an item is an error that says so', Infinity, MINUTE, Infinity],
		[
			'longer than the patience is an error of a run that may sleep, too',
			5 * MINUTE,
			MINUTE,
			Infinity,
		],
		['longer than a held run has time is an error that says so', Infinity, 2 * HOUR, MINUTE],
	])('%s', async (_what, suspendAfterMs, patienceMs, until) => {
		const { queue } = opened({ suspendAfterMs });
		queue.refused(await enter(queue), tooMany(HOUR));
		await expect(come(queue, patienceMs, until)).rejects.toMatchObject({
			message: 'Too many',
			description:
				'The service asks to wait for 3600 s more, which is longer than this node waits. Lower it.',
		});
	});

	it('ends the turn of a run that may sleep, and no item: the next turn has the rest of it', async () => {
		const { queue, clock, turn } = opened({ suspendAfterMs: MINUTE });
		turn.noteLeft({}, true);
		clock.pass(2 * MINUTE);
		turn.noteProgress();
		expect(turn.isOver).toBe(false);
		queue.refused(await enter(queue), tooMany(HOUR));
		expect(await come(queue, 24 * HOUR)).toBeUndefined();
		expect(queue.state).toMatchObject({ pausedUntil: clock.now() + HOUR });
		expect([turn.isOver, queue.isPaused]).toEqual([true, true]);
	});

	it('of an earlier turn is kept to', async () => {
		const { queue, clock } = opened({ state: { pausedUntil: MINUTE } });
		await enter(queue);
		expect(clock.now()).toBe(MINUTE);
		expect(queue.state.pausedUntil).toBeUndefined();
	});
});

describe('a connection that did not come about', () => {
	it('says nothing of how many tasks are let in', async () => {
		const { queue } = opened({ places: 2 });
		queue.refused(await enter(queue), unreachable());
		await fill(queue, 2);
	});

	it('is put up with for some seconds, where nothing shows that there is a service', async () => {
		const { queue, clock } = opened();
		for (let count = 0; count < 3; count++) queue.refused(await enter(queue), unreachable());
		await expect(enter(queue)).rejects.toThrow('Not there');
		expect(clock.now()).toBeGreaterThanOrEqual(5 * SECOND);
		expect(clock.now()).toBeLessThan(10 * SECOND);
	});

	it.each<[string, (queue: CreateQueue) => Promise<unknown>]>([
		['has taken a task', async (queue) => await fill(queue, 1)],
		['has refused an order', async (queue) => queue.refused(await enter(queue), tooMany())],
	])('is put up with for as long as the patience, where a service %s', async (_what, before) => {
		const { queue, clock } = opened();
		await before(queue);
		for (let tries = 0; clock.now() < HOUR - MINUTE && tries < 1000; tries++) {
			queue.refused(await enter(queue), unreachable());
		}
		clock.pass(2 * MINUTE);
		await expect(enter(queue)).rejects.toThrow('Not there');
	});

	it('is followed by ever longer pauses, up to 20 s, until a task is accepted', async () => {
		const { queue, clock } = opened();
		await fill(queue, 1);
		clock.sleeps.length = 0;
		clock.pass(SECOND);
		for (let count = 0; count < 7; count++) queue.refused(await enter(queue), unreachable());
		queue.accepted(await enter(queue));
		clock.pass(SECOND);
		queue.refused(await enter(queue), unreachable());
		await enter(queue);
		expect(clock.sleeps.map((ms) => ms / SECOND)).toEqual([1, 2, 4, 8, 16, 20, 20, 1]);
	});

	it('is no doubt, however often, and ends no turn', async () => {
		const { queue, turn } = opened({ suspendAfterMs: HOUR });
		await fill(queue, 1);
		for (let count = 0; count < 9; count++) queue.refused(await enter(queue), unreachable());
		expect([turn.isOver, queue.isPaused]).toEqual([false, false]);
	});
});

describe('an order in doubt', () => {
	it.each([
		[undefined, 1 * SECOND],
		[7 * SECOND, 7 * SECOND],
	])(
		'that asks to wait for %p ms has the next one wait for %d ms',
		async (retryAfterMs, pauseMs) => {
			const { queue, clock } = opened();
			queue.doubtful(await enter(queue), page(retryAfterMs));
			const begunAt = clock.now();
			await enter(queue);
			expect(clock.now() - begunAt).toBe(pauseMs);
		},
	);

	it('that asks to wait for longer than one has patience for is an error that says so', async () => {
		const { queue } = opened();
		queue.doubtful(await enter(queue), page(HOUR));
		await expect(enter(queue, SECOND)).rejects.toThrow('Down');
	});

	it('lets the next orders out one at a time, until a task is accepted', async () => {
		const { queue } = opened();
		queue.doubtful(await enter(queue), page());
		const ticket = await enter(queue);
		const next = waiter(queue);
		await tick();
		expect(next.done).toBe(false);
		queue.accepted(ticket);
		await tick();
		expect(next.ticket).toBeDefined();
	});

	/** So many orders in a row without a known outcome. */
	async function doubt(queue: CreateQueue, count: number) {
		for (let nth = 0; nth < count; nth++) queue.doubtful(await enter(queue), page());
	}

	it('is the end of the turn after two others in a row, and a pause of a minute before the next turn', async () => {
		const { queue, clock, turn } = opened({ suspendAfterMs: HOUR });
		await doubt(queue, 2);
		expect(turn.isOver).toBe(false);
		await doubt(queue, 1);
		expect(turn.isOver).toBe(true);
		expect(await come(queue)).toBeUndefined();
		expect(queue.state).toMatchObject({
			breaker: { doubts: 3 },
			pausedUntil: clock.now() + MINUTE,
		});
	});

	it('after two others in a row has a held run rest for a minute, then for ever longer, up to ten', async () => {
		const { queue, clock } = opened();
		const rests: number[] = [];
		await doubt(queue, 2);
		for (let count = 0; count < 6; count++) {
			await doubt(queue, 1);
			const from = clock.now();
			const ticket = await enter(queue, 24 * HOUR);
			rests.push((clock.now() - from) / MINUTE);
			queue.ended();
			expect(ticket).toBeDefined();
		}
		expect(rests.map(Math.round)).toEqual([1, 2, 4, 8, 10, 10]);
	});

	it('is counted on in the next turn', async () => {
		const { queue, turn } = opened({
			suspendAfterMs: HOUR,
			state: { breaker: { inVain: 2, doubts: 2 } },
		});
		await doubt(queue, 1);
		expect(turn.isOver).toBe(true);
	});

	it('is counted anew after a task was accepted', async () => {
		const { queue, turn } = opened({ suspendAfterMs: HOUR });
		await doubt(queue, 2);
		await fill(queue, 1);
		await doubt(queue, 2);
		expect([turn.isOver, queue.state.breaker?.doubts]).toEqual([false, 2]);
	});

	it('counts once with those that were under way together', async () => {
		const { queue, clock, turn } = opened({ suspendAfterMs: HOUR });
		await fill(queue, 9);
		for (let count = 0; count < 9; count++) queue.finished();
		const together = await Promise.all([enter(queue), enter(queue)]);
		clock.pass(SECOND);
		for (const ticket of together) queue.doubtful(ticket, page());
		await doubt(queue, 1);
		expect([turn.isOver, queue.state.breaker?.doubts]).toEqual([false, 2]);
	});
});

describe('a refused item', () => {
	const notFound = () => new ServiceError('notFound', 'Not found', { statusCode: 404 });
	const rules = { patienceMs: HOUR, timeoutMs: 0, until: Infinity };

	/** An item is refused; it waits beside three others. */
	async function refusedBeside(given: Given = {}) {
		const setup = opened(given);
		const { queue, clock } = setup;
		await fill(queue, 1);
		const ticket = await enter(queue);
		const at = clock.now();
		queue.comesAgain(ticket, notFound());
		const order: string[] = [];
		const wait = async (name: string, more = {}) => {
			const entered = (await queue.enter({ ...rules, ...more }))!;
			order.push(name);
			return entered;
		};
		const refusal = { at, error: { message: 'Not found' } };
		const all = [wait('a'), wait('b'), wait('c'), wait('refused', { refused: refusal })] as const;
		return { ...setup, order, all, at };
	}

	it('comes in again after the others, while none of them is taken', async () => {
		const { queue, order, all } = await refusedBeside();
		for (const entered of all.slice(0, 3)) queue.comesAgain(await entered, notFound());
		await all[3];
		expect(order).toEqual(['a', 'b', 'c', 'refused']);
	});

	it('goes before the others when another one was taken and its time has come', async () => {
		const { queue, clock, order, all } = await refusedBeside({ places: 3 });
		queue.accepted(await all[0]);
		queue.accepted(await all[1]);
		clock.pass(20 * SECOND);
		queue.finished();
		await all[3];
		expect(order).toEqual(['a', 'b', 'refused']);
	});

	it('of a run that stops at a failure holds up the others until then', async () => {
		const { queue, clock, order, all, at } = await refusedBeside({ stopsAtFailure: true });
		queue.accepted(await all[0]);
		await all[3];
		expect(order).toEqual(['a', 'refused']);
		expect(clock.now() - at).toBeGreaterThanOrEqual(20 * SECOND);
	});
});

describe('the patience while the service takes nothing', () => {
	const MOST = 10 * SECOND;

	it('runs from the first refusal on', async () => {
		const { queue, clock } = opened();
		queue.refused(await enter(queue), tooMany());
		clock.pass(9 * SECOND);
		queue.refused(await enter(queue, MOST), tooMany());
		clock.pass(2 * SECOND);
		await expect(enter(queue, MOST)).rejects.toThrow('Too many');
	});

	it('goes on in the next turn', async () => {
		const { queue, clock } = opened({ state: { quietSince: -9 * SECOND } });
		queue.refused(await enter(queue, MOST), tooMany());
		clock.pass(2 * SECOND);
		await expect(enter(queue, MOST)).rejects.toThrow('Too many');
		expect(queue.state.quietSince).toBe(-9 * SECOND);
	});

	it('is over in a turn that a pause has ended, too, but not before this turn has tried', async () => {
		const state = { quietSince: -HOUR, pausedUntil: MINUTE };
		const { queue } = opened({ suspendAfterMs: 0, state });
		expect(await come(queue, MOST)).toBeUndefined();
		const next = opened({ suspendAfterMs: SECOND, state: { quietSince: -HOUR } });
		next.queue.refused(await enter(next.queue, MOST), tooMany(MINUTE));
		next.clock.pass(2 * SECOND);
		expect(next.turn.isOver).toBe(true);
		await expect(come(next.queue, MOST)).rejects.toThrow('Too many');
	});

	it('of a run that goes on after a sleep is not that of an address where nobody has answered', async () => {
		const { queue, clock } = opened({ state: { quietSince: -MINUTE } });
		queue.refused(await enter(queue), unreachable());
		clock.pass(MINUTE);
		expect(await come(queue)).toBeDefined();
	});

	it.each(['accepted', 'finished'] as const)('begins anew when a task is %s', async (event) => {
		const { queue, clock } = opened();
		await fill(queue, 1);
		const ticket = await enter(queue);
		queue.refused(await enter(queue), tooMany());
		clock.pass(11 * SECOND);
		if (event === 'accepted') queue.accepted(ticket);
		else {
			queue.finished();
			queue.ended();
		}
		await enter(queue, MOST);
		expect(queue.state.quietSince).toBeUndefined();
	});

	it('is not over while an order is under way, whose answer may bring more of it', async () => {
		const { queue, clock } = opened();
		const ticket = await enter(queue);
		queue.refused(await enter(queue), tooMany());
		clock.pass(MINUTE);
		const waiting = waiter(queue, SECOND);
		await tick();
		expect(waiting.error).toBeUndefined();
		queue.refused(ticket, tooMany());
		await tick();
		expect(waiting.error).toMatchObject({ message: 'Too many' });
	});
});

describe('nobody is let in', () => {
	it.each<[string, Given, (queue: CreateQueue, turn: Turn) => unknown]>([
		['when the turn is over', { suspendAfterMs: MINUTE }, (_, turn) => turn.end()],
		['when the run is closed', {}, (queue) => queue.close()],
	])('%s, which is no error', async (_what, given, before) => {
		const { queue, turn } = opened(given);
		before(queue, turn);
		expect(await come(queue)).toBeUndefined();
	});

	it('when it is too late', async () => {
		const { queue, clock } = opened({ places: 1 });
		await fill(queue, 1);
		expect(await come(queue, HOUR, MINUTE)).toBeUndefined();
		expect(clock.now()).toBe(MINUTE);
	});

	it('after the close of a run, not even who waits, though a place becomes free at the same time', async () => {
		const { queue } = opened({ places: 1 });
		await fill(queue, 1);
		const waiting = [waiter(queue), waiter(queue)];
		await tick();
		queue.close();
		queue.finished();
		await tick();
		expect(waiting).toEqual(Array(2).fill({ done: true, ticket: undefined }));
		expect([queue.isOver, queue.closedBy]).toEqual([true, undefined]);
	});

	it('after the close for an error, which everybody hears, and the first error counts', async () => {
		const { queue } = opened({ places: 1 });
		await fill(queue, 1);
		const waiting = [waiter(queue), waiter(queue)];
		queue.close(tooMany());
		queue.close(unreachable());
		await tick();
		expect(waiting.map(({ error }) => (error as Error).message)).toEqual(['Too many', 'Too many']);
		expect(queue.closedBy).toMatchObject({ message: 'Too many' });
	});

	it.each<[string, (queue: CreateQueue) => Promise<unknown>]>([
		['for a place', async (queue) => await fill(queue, 1)],
		['in a pause', async (queue) => queue.refused(await enter(queue), tooMany(HOUR))],
	])('after a stop, which everybody hears who waits %s', async (_what, before) => {
		const stop = new AbortController();
		const { queue } = opened({ places: 1, signal: stop.signal });
		await before(queue);
		const waiting = [waiter(queue), waiter(queue)];
		stop.abort();
		await tick();
		expect(waiting.map(({ error }) => error instanceof Stopped)).toEqual([true, true]);
	});
});

it('says when the service has refused an order for the first time', async () => {
	const { queue } = opened();
	await fill(queue, 1);
	expect(await Promise.race([queue.limited.then(() => 'limited'), tick()])).toBeUndefined();
	queue.refused(await enter(queue), tooMany());
	expect(await Promise.race([queue.limited.then(() => 'limited'), tick()])).toBe('limited');
});
