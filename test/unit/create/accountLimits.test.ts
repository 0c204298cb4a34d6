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
