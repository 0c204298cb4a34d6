import type { IDataObject } from 'n8n-workflow';

import { AccountLimits, type Ticket } from '../../../nodes/MediaGeneration/create/accountLimits';
import { type Rules, type Steps } from '../../limits/account';
import { chance } from '../../limits/cell';
import { simulate } from '../../limits/simulate';
import { HOUR, MINUTE, SECOND } from '../../durations';

const DAY = 24 * HOUR;

/** The law in a time of its own. */
class Account {
	now = 0;
	throttle = new AccountLimits(() => 0.5);

	/** The service lets in so many creates, one after the other. */
	accept(count: number): void {
		for (let each = 0; each < count; each++) this.throttle.accepted(this.send(), this.now);
	}

	refuse(retryAfterMs?: number): void {
		this.throttle.refused(this.send(), this.now, retryAfterMs);
	}

	finish(count: number): void {
		for (let each = 0; each < count; each++) this.throttle.finished();
	}

	/** Sends as soon as the law allows it, within a day. */
	send(): Ticket {
		this.now = Math.max(this.now, this.throttle.nextAt());
		if (this.now > DAY) throw new Error('Nothing may be sent');
		return this.throttle.send(this.now);
	}

	/** How long the law lets the next create wait, seconds. */
	get waitSeconds(): number {
		return (Math.max(this.now, this.throttle.nextAt()) - this.now) / SECOND;
	}

	/** An account whose three places are known. */
	static ofThreePlaces(): Account {
		const account = new Account();
		account.accept(3);
		account.refuse();
		account.finish(1);
		account.accept(1);
		return account;
	}
}

it('nothing waits without a refusal, but few creates are under way at first', () => {
	const account = new Account();
	account.send();
	account.send();
	expect(account.throttle.nextAt()).toBe(Infinity);
	const later = new Account();
	later.accept(1000);
	expect(later.now).toBe(0);
	const grown = new Account();
	grown.accept(24);
	for (let each = 0; each < 4; each++) grown.send();
	expect(grown.throttle.nextAt()).toBe(Infinity);
});

it('pauses grow three-fold where no task is unfinished, up to ten seconds', () => {
	const account = new Account();
	const pauses = Array.from({ length: 8 }, () => {
		const seconds = account.waitSeconds;
		account.refuse();
		return seconds;
	});
	expect(pauses).toEqual([0, 0.25, 0.75, 2.25, 6.75, 10, 10, 10]);
});

describe('after a refusal', () => {
	it('the end of a task has the next create sent at once, and one create at a time is sent', () => {
		const account = new Account();
		account.accept(3);
		account.refuse();
		expect(account.waitSeconds).toBe(0.25);
		account.finish(1);
		expect(account.waitSeconds).toBe(0);
		account.send();
		expect(account.throttle.nextAt()).toBe(Infinity);
	});

	it('refusals of what was under way before say nothing new', () => {
		const account = new Account();
		account.accept(24);
		const tickets = [account.send(), account.send(), account.send()];
		for (const ticket of tickets) account.throttle.refused(ticket, 0);
		expect(account.waitSeconds).toBe(0.25);
	});

	it.each([
		['is obeyed', 1, 1],
		['is obeyed', 10_800, 10_800],
		['shortens no pause', 0.05, 0.25],
	])('a Retry-After %s (%d s)', (_what, seconds, waitSeconds) => {
		const account = new Account();
		account.refuse(seconds * SECOND);
		expect(account.waitSeconds).toBe(waitSeconds);
	});
});

describe('places', () => {
	it('are taken one after the other while probes are let in', () => {
		const account = new Account();
		account.accept(60);
		account.refuse();
		account.finish(50);
		account.accept(51);
		const { throttle, now } = account;
		for (let each = 0; each < 4; each++) {
			expect(account.waitSeconds).toBe(0);
			const probe = throttle.send(now);
			expect(throttle.nextAt()).toBe(Infinity);
			throttle.accepted(probe, now);
		}
	});

	it('are probed after pauses that double, up to two minutes, and after five seconds again where their number has moved', () => {
		const account = Account.ofThreePlaces();
		const pauses = [1, 2, 3, 4, 5, 6, 7].map(() => {
			const seconds = account.waitSeconds;
			account.refuse();
			return seconds;
		});
		expect(pauses).toEqual([5, 10, 20, 40, 80, 120, 120]);
		account.finish(3);
		account.accept(1);
		account.refuse();
		account.refuse();
		account.finish(1);
		account.accept(1);
		expect(account.waitSeconds).toBe(5);
	});

	it('that many tasks leave at once are tried again by halves', () => {
		const account = new Account();
		account.accept(100);
		account.refuse();
		account.finish(1);
		account.refuse();
		account.finish(48);
		expect(account.waitSeconds).toBeGreaterThan(0);
		account.finish(2);
		expect(account.waitSeconds).toBe(0);
	});
});

describe('a rate', () => {
	/** Twice five were let in at once, a second apart. */
	const ofFiveInASecond = () => {
		const account = new Account();
		account.accept(5);
		account.refuse();
		account.now = SECOND;
		account.accept(5);
		account.refuse();
		account.now = 2 * SECOND;
		account.accept(1);
		return account;
	};

	it('is learnt between two moments at which time alone let in: so many in a window', () => {
		const account = ofFiveInASecond();
		const begin = account.now;
		account.accept(4);
		expect(account.now).toBe(begin);
		account.accept(6);
		expect(account.now - begin).toBeGreaterThan(1.5 * SECOND);
		expect(account.now - begin).toBeLessThan(2.5 * SECOND);
	});

	it('is not learnt from a single refusal that time has ended: that may be an accident', () => {
		const account = new Account();
		account.accept(5);
		account.refuse();
		account.accept(100);
		expect(account.now).toBe(250);
	});

	it('that was lifted is left behind', () => {
		const perSecond: Steps = [
			[0, 1],
			[MINUTE, 50],
		];
		const { ms } = simulate({ rate: { perSecond, windowSeconds: 1, kind: 'bucket' } }, [
			{ items: 500, taskMs: 2 * SECOND, policy: new AccountLimits(chance()) },
		]);
		expect(ms).toBeLessThan(3 * MINUTE);
	});
});

describe('never a storm', () => {
	/** For 20 s 50 tasks are let in, and for the next 20 s none. */
	const waves: Steps = Array.from({ length: 200 }, (_, nth) => [
		nth * 20 * SECOND,
		nth % 2 === 0 ? 50 : 0,
	]);

	const untilAMinute: Steps = [
		[0, 20],
		[MINUTE, 0],
	];

	it.each<[string, Rules]>([
		['429 for ever', { concurrency: [[0, 0]] }],
		['429 for ever, once some were let in', { concurrency: untilAMinute }],
		['429 with a Retry-After of days', { concurrency: [[0, 0]], retryAfter: 3 * DAY }],
		['429 with a negative Retry-After', { concurrency: [[0, 0]], retryAfter: -30 * SECOND }],
		['503 in waves of 20 s', { concurrency: waves }],
		['503 in waves, with Retry-After', { concurrency: waves, retryAfter: SECOND }],
		['one task a minute', { rate: { perSecond: [[0, 1 / 60]], windowSeconds: 60, kind: 'fixed' } }],
	])('%s: at most 60 refusals in a minute, and 620 in an hour', (_name, rules) => {
		const run = { items: 5000, taskMs: 5 * SECOND, policy: new AccountLimits(chance()) };
		const { refusals, refusalsInMinute } = simulate(rules, [run], HOUR);
		expect(refusalsInMinute).toBeLessThanOrEqual(60);
		expect(refusals).toBeLessThanOrEqual(120 + 5000 / 10);
	});
});

describe('what was learnt, stored between two turns', () => {
	/** The limits in a later turn, whose clock begins anew. */
	const woken = ({ throttle }: Account) => {
		const stored = JSON.parse(JSON.stringify(throttle.toStored())) as IDataObject;
		return Object.assign(new Account(), { throttle: AccountLimits.fromStored(stored) });
	};

	it('keeps the places, and a turn probes once at its begin', () => {
		const account = woken(Account.ofThreePlaces());
		account.accept(3);
		expect(account.waitSeconds).toBe(0);
		account.refuse();
		expect(account.waitSeconds).toBeGreaterThanOrEqual(8);
	});

	it('keeps the rate', () => {
		const before = new Account();
		before.accept(5);
		for (const second of [1, 2]) {
			before.refuse();
			before.now = second * SECOND;
			before.accept(5);
		}
		const account = woken(before);
		account.accept(15);
		expect(account.now).toBeGreaterThan(1.5 * SECOND);
		expect(account.now).toBeLessThan(4 * SECOND);
	});

	it('after a refusal sends one create at a time', () => {
		const before = new Account();
		before.refuse();
		const account = woken(before);
		account.send();
		expect(account.throttle.nextAt()).toBe(Infinity);
	});

	it('is read with care: what is no number is left out', () => {
		const throttle = AccountLimits.fromStored({ perMs: 'fast', other: 3 });
		const account = Object.assign(new Account(), { throttle });
		account.accept(1000);
		expect(account.now).toBe(0);
	});
});
