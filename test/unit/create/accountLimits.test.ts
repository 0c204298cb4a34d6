import { AccountLimits, type Ticket } from '../../../nodes/MediaGeneration/create/accountLimits';
import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { FakeClock } from '../support';

const SECOND = 1000;
const HOUR = 3600 * SECOND;

const tooMany = (retryAfterMs?: number) =>
	new ServiceError('tooManyRequests', 'Too many', {
		description: 'Lower it.',
		statusCode: 429,
		...(retryAfterMs !== undefined && { retryAfterMs }),
	});
const unreachable = () => new ServiceError('unreachable', 'Not there');

/** An account whose random pauses are as long as they can be. */
function opened(maxInFlight = 10, signal?: AbortSignal) {
	const clock = new FakeClock();
	const account = new AccountLimits(clock, maxInFlight, signal, () => 1);
	return { clock, account };
}

async function enter(account: AccountLimits, patienceMs = HOUR): Promise<Ticket> {
	const ticket = await account.enter(patienceMs);
	if (!ticket) throw new Error('The account is closed');
	return ticket;
}

/** Somebody who waits for a place, and how far it has come. */
function waiter(account: AccountLimits, patienceMs = HOUR) {
	const seen: { ticket?: Ticket | undefined; error?: unknown; done: boolean } = { done: false };
	account.enter(patienceMs).then(
		(ticket) => Object.assign(seen, { ticket, done: true }),
		(error: unknown) => Object.assign(seen, { error, done: true }),
	);
	return seen;
}

const settle = async () => await new Promise<void>((resolve) => setImmediate(resolve));

/** Has so many tasks accepted, one after the other. */
async function fill(account: AccountLimits, count: number): Promise<void> {
	for (let index = 0; index < count; index++) {
		await enter(account);
		account.accepted();
	}
}

describe('places', () => {
	it('are handed out at some distance', async () => {
		const { account, clock } = opened();
		await fill(account, 3);
		expect(clock.sleeps).toEqual([4, 4]);
	});

	it('are two at first, until a task is accepted', async () => {
		const { account } = opened();
		await enter(account);
		await enter(account);
		const third = waiter(account);
		await settle();
		expect(third.done).toBe(false);
		account.accepted();
		await settle();
		expect(third.ticket).toBeDefined();
	});

	it('are never more than the user lets be unfinished', async () => {
		const { account } = opened(2);
		await fill(account, 2);
		const third = waiter(account);
		await settle();
		expect(third.done).toBe(false);
		account.finished();
		await settle();
		expect(third.ticket).toBeDefined();
	});

	it('are handed out in the order in which they were asked for', async () => {
		const { account } = opened(1);
		await fill(account, 1);
		const order: number[] = [];
		for (const index of [0, 1, 2]) {
			void account.enter(HOUR).then(() => {
				order.push(index);
				account.accepted();
				account.finished();
			});
		}
		account.finished();
		await settle();
		expect(order).toEqual([0, 1, 2]);
	});

	it('are taken by tasks of an earlier try too', async () => {
		const { account } = opened(1);
		account.adopt();
		const next = waiter(account);
		await settle();
		expect(next.done).toBe(false);
		account.finished();
		await settle();
		expect(next.ticket).toBeDefined();
	});

	it('come back when a create says nothing of the account', async () => {
		const { account } = opened(1);
		await enter(account);
		const next = waiter(account);
		account.ended();
		await settle();
		expect(next.ticket).toBeDefined();
	});
});

describe('after a refusal', () => {
	it('no more tasks are kept unfinished than were let in', async () => {
		const { account } = opened();
		await fill(account, 3);
		account.refused(await enter(account), tooMany());
		const next = waiter(account);
		await settle();
		expect(next.done).toBe(false);
		account.finished();
		await settle();
		expect(next.ticket).toBeDefined();
	});

	it('creates count that were under way then, and were let in after all', async () => {
		const { account } = opened();
		await fill(account, 2);
		const refused = await enter(account);
		await enter(account);
		await enter(account);
		account.refused(refused, tooMany());
		account.accepted();
		account.accepted();
		// Four were let in: of the four places two are free after two have finished.
		account.finished();
		account.finished();
		await fill(account, 2);
		const fifth = waiter(account);
		await settle();
		expect(fifth.done).toBe(false);
	});

	it('one place is left, even if nobody was let in', async () => {
		const { account } = opened();
		account.refused(await enter(account), tooMany());
		await fill(account, 1);
		const second = waiter(account);
		await settle();
		expect(second.done).toBe(false);
	});

	it('one more is tried when four have finished, then one more when three have', async () => {
		const { account } = opened();
		account.refused(await enter(account), tooMany());
		const counts: number[] = [];
		let unfinished = 0;
		let next = waiter(account);
		while (counts.length < 8) {
			await settle();
			if (next.done) {
				account.accepted();
				unfinished++;
				next = waiter(account);
			} else {
				counts.push(unfinished);
				account.finished();
				unfinished--;
			}
		}
		expect(counts).toEqual([1, 1, 1, 1, 2, 2, 2, 3]);
	});

	it('pauses double up to half a minute', async () => {
		const { account, clock } = opened();
		for (let refusals = 0; refusals < 8; refusals++) {
			account.refused(await enter(account), tooMany());
		}
		await enter(account);
		expect(clock.sleeps.map((ms) => ms / SECOND)).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
	});

	it('pauses are at least half as long, by chance', async () => {
		const clock = new FakeClock();
		const account = new AccountLimits(clock, 10, undefined, () => 0);
		account.refused(await enter(account), tooMany());
		await enter(account);
		expect(clock.sleeps).toEqual([SECOND / 2]);
	});

	it.each([
		[1, 1],
		[45, 45],
	])('a Retry-After of %d s is a pause of %d s', async (seconds, pause) => {
		const { account, clock } = opened();
		account.refused(await enter(account), tooMany(seconds * SECOND));
		await enter(account);
		expect(clock.sleeps).toEqual([pause * SECOND]);
	});

	it.each([0, 10])('a Retry-After of %d ms does not shorten the pauses', async (ms) => {
		const { account, clock } = opened();
		account.refused(await enter(account), tooMany(ms));
		account.refused(await enter(account), tooMany(ms));
		await enter(account);
		expect(clock.sleeps).toEqual([SECOND, 2 * SECOND]);
	});

	it('a Retry-After of months is slept in pieces that a timer can hold', async () => {
		const { account, clock } = opened();
		account.refused(await enter(account), tooMany(2000 * HOUR));
		await enter(account, 9000 * HOUR);
		expect(Math.max(...clock.sleeps)).toBeLessThan(2 ** 31);
		expect(clock.now()).toBe(2000 * HOUR);
	});

	it('a longer pause than one has patience for is an error that says so', async () => {
		const { account } = opened();
		account.refused(await enter(account), tooMany(HOUR));
		await expect(account.enter(60 * SECOND)).rejects.toMatchObject({
			kind: 'tooManyRequests',
			statusCode: 429,
			description: expect.stringMatching(/wait for 3600 s more.*Lower it\./) as string,
		});
	});

	it('creates that were refused together are one refusal', async () => {
		const { account, clock } = opened();
		const tickets = [await enter(account), await enter(account)];
		for (const ticket of tickets) account.refused(ticket, tooMany());
		clock.sleeps.length = 0;
		await enter(account);
		expect(clock.sleeps).toEqual([SECOND]);
	});

	it('an accepted task makes the pauses short again', async () => {
		const { account, clock } = opened();
		for (let refusals = 0; refusals < 4; refusals++) {
			account.refused(await enter(account), tooMany());
		}
		await fill(account, 1);
		account.finished();
		clock.pass(SECOND);
		clock.sleeps.length = 0;
		account.refused(await enter(account), tooMany());
		await enter(account);
		expect(clock.sleeps).toEqual([SECOND]);
	});
});

describe('a connection that did not come about', () => {
	it('says nothing of how many tasks are let in', async () => {
		const { account } = opened(2);
		account.refused(await enter(account), unreachable());
		await fill(account, 2);
		expect(account.unreachable).toBe(0);
	});

	it('is counted in a row, those that failed together once', async () => {
		const { account } = opened();
		const together = [await enter(account), await enter(account)];
		for (const ticket of together) account.refused(ticket, unreachable());
		account.refused(await enter(account), unreachable());
		expect(account.unreachable).toBe(2);
	});
});

describe('the time in which nobody is let in', () => {
	it('runs from the first refusal on', async () => {
		const { account, clock } = opened();
		account.refused(await enter(account), tooMany());
		account.refused(await enter(account), tooMany());
		clock.pass(10 * SECOND);
		expect(account.quietMs).toBe(11 * SECOND);
	});

	it.each(['accepted', 'finished'] as const)('ends when a task is %s', async (event) => {
		const { account, clock } = opened();
		await fill(account, 1);
		account.refused(await enter(account), tooMany());
		clock.pass(10 * SECOND);
		account[event]();
		expect(account.quietMs).toBe(0);
	});
});

describe('the end', () => {
	it('of a run lets nobody in any more, not even who waits', async () => {
		const { account } = opened(1);
		await fill(account, 1);
		const waiting = [waiter(account), waiter(account)];
		account.close();
		await settle();
		expect(waiting).toEqual([
			{ done: true, ticket: undefined },
			{ done: true, ticket: undefined },
		]);
	});

	it('comes before a place that becomes free at the same time', async () => {
		const { account } = opened(1);
		await fill(account, 1);
		const waiting = waiter(account);
		await settle();
		account.close();
		account.finished();
		await settle();
		expect(waiting).toEqual({ done: true, ticket: undefined });
	});

	it('by a stop is heard by everybody who waits', async () => {
		const stop = new AbortController();
		const { account } = opened(1, stop.signal);
		await fill(account, 1);
		const waiting = [waiter(account), waiter(account)];
		await settle();
		stop.abort();
		await settle();
		expect(waiting.map(({ error }) => error instanceof Stopped)).toEqual([true, true]);
	});

	it('by a stop is heard in a pause too', async () => {
		const stop = new AbortController();
		const { account } = opened(1, stop.signal);
		account.refused(await enter(account), tooMany());
		stop.abort();
		await expect(account.enter(HOUR)).rejects.toBeInstanceOf(Stopped);
	});
});
