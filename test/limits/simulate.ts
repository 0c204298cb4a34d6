import { type Rules, SimulatedAccount } from './account';

/** A create is answered after this time, milliseconds; the service decides in the middle of it. */
export const CREATE_MS = 50;
const READ_MS = 25;
const POLL_MS = 2000;
/** Between two creates, as the run keeps it. */
const GAP_MS = 4;
/** Between two first reads of tasks that were not read before. */
const READ_GAP_MS = 8;
const MAX_EVENTS = 1_000_000;

/** How long a task takes, milliseconds: all the same, or each by its number. */
export type TaskMs = number | ((nth: number) => number);

/**
 * How the end of a task is learned: by reading it every 2 s; by reading it from the first refusal on, where the items
 * leave at once, and the batch is done with the last create; or at once, by an oracle.
 */
export type Learns = 'polling' | 'afterRefusal' | 'atOnce';

/** What decides when a create is sent; all times are milliseconds. */
export interface Policy<Ticket> {
	nextAt(now: number): number;
	send(now: number): Ticket;
	accepted(ticket: Ticket, now: number): void;
	refused(ticket: Ticket, now: number, retryAfterMs: number | undefined): void;
	finished(now: number, takenAt: number): void;
	/** Moments at which to ask again. */
	readonly wakes?: readonly number[];
}

export interface Batch<Ticket> {
	items: number;
	taskMs: TaskMs;
	policy: Policy<Ticket>;
	learns?: Learns;
	/** Milliseconds. */
	startsAt?: number;
}

interface Outcome {
	/** Until all is done, milliseconds. */
	ms: number;
	refusals: number;
	/** The refusals within one minute, at most. */
	refusalsInMinute: number;
}

/** What the batches share: the account, and what happens when, in the order of time. */
class World {
	now = 0;
	readonly refusedAt: number[] = [];
	readonly agenda: Array<{ at: number; work: () => void }> = [];

	constructor(readonly account: SimulatedAccount) {}

	add(at: number, work: () => void): void {
		let place = 0;
		for (let end = this.agenda.length; place < end;) {
			const middle = (place + end) >> 1;
			if ((this.agenda[middle]?.at ?? Infinity) <= at) place = middle + 1;
			else end = middle;
		}
		this.agenda.splice(place, 0, { at, work });
	}
}

/** One batch in virtual time. */
class Running<Ticket> {
	finished = 0;
	doneAt = 0;
	private left: number;
	private lastSentAt = -Infinity;
	private wakeAt = Infinity;
	/** The tasks that nobody reads yet. */
	private unread: Array<{ endsAt: number; takenAt: number }> = [];
	private isReading: boolean;
	private readonly learns: Learns;

	constructor(
		private readonly world: World,
		private readonly batch: Batch<Ticket>,
	) {
		this.left = batch.items;
		this.learns = batch.learns ?? 'polling';
		this.isReading = this.learns !== 'afterRefusal';
		const { policy, startsAt = 0 } = batch;
		for (const at of [startsAt, ...(policy.wakes ?? [])]) world.add(at, () => this.wake());
	}

	private wake(): void {
		const { policy } = this.batch;
		const { now } = this.world;
		if (this.wakeAt <= now) this.wakeAt = Infinity;
		while (this.left > 0) {
			const next = Math.max(policy.nextAt(now), this.lastSentAt + GAP_MS);
			if (next > now + 1e-6) {
				if (next < this.wakeAt) this.world.add((this.wakeAt = next), () => this.wake());
				return;
			}
			this.send();
		}
	}

	private send(): void {
		const { world } = this;
		const { policy, taskMs } = this.batch;
		this.left--;
		this.lastSentAt = world.now;
		const ticket = policy.send(world.now);
		world.add(world.now + CREATE_MS / 2, () => {
			const { now: arrivedAt, account } = world;
			const endsAt = arrivedAt + (typeof taskMs === 'number' ? taskMs : taskMs(account.taken));
			const answer = account.create(arrivedAt, endsAt);
			world.add(arrivedAt + CREATE_MS / 2, () => {
				const { now } = world;
				if (answer.taken) {
					policy.accepted(ticket, now);
					this.follow(endsAt);
				} else {
					world.refusedAt.push(now);
					this.left++;
					policy.refused(ticket, now, answer.retryAfterMs);
					this.startReading();
				}
				this.wake();
			});
		});
	}

	private follow(endsAt: number): void {
		const { now } = this.world;
		if (this.learns !== 'polling') this.count();
		if (!this.isReading) this.unread.push({ endsAt, takenAt: now });
		else {
			const at = this.learns === 'atOnce' ? endsAt : knownAt(endsAt, now + POLL_MS);
			this.world.add(at, () => this.end(now));
		}
	}

	private startReading(): void {
		if (this.isReading) return;
		this.isReading = true;
		for (const [index, { endsAt, takenAt }] of this.unread.entries()) {
			const firstReadAt = this.world.now + READ_GAP_MS * (index + 1);
			this.world.add(knownAt(endsAt, firstReadAt), () => this.end(takenAt));
		}
		this.unread = [];
	}

	private count(): void {
		this.finished++;
		this.doneAt = this.world.now;
	}

	private end(takenAt: number): void {
		if (this.learns === 'polling') this.count();
		this.batch.policy.finished(this.world.now, takenAt);
		this.wake();
	}
}

/** @returns when it is known that a task has ended, which is read every 2 s from a moment on */
function knownAt(endsAt: number, sentAt: number): number {
	const firstReadAt = sentAt + READ_MS / 2;
	const reads = Math.max(0, Math.ceil((endsAt - firstReadAt) / (POLL_MS + READ_MS)));
	return firstReadAt + reads * (POLL_MS + READ_MS) + READ_MS / 2;
}

/**
 * Batches that share an account, in virtual time.
 *
 * @param mostMs the batches need not be done after so many milliseconds
 * @throws where they do not come to their end, or meet a storm of refusals
 */
export function simulate<Ticket>(
	rules: Rules,
	batches: ReadonlyArray<Batch<Ticket>>,
	mostMs = Infinity,
): Outcome {
	const world = new World(new SimulatedAccount(rules));
	const { refusedAt } = world;
	const running = batches.map((batch) => new Running(world, batch));
	const isDone = () => running.every(({ finished }, index) => finished === batches[index]?.items);
	for (let events = 0; !isDone(); events++) {
		const event = world.agenda.shift();
		if (!event || events > MAX_EVENTS) {
			const finished = running.map((batch) => batch.finished).join(', ');
			throw new Error(
				`${finished} tasks finished after ${world.now} ms and ${refusedAt.length} refusals`,
			);
		}
		if (event.at > mostMs) break;
		world.now = event.at;
		event.work();
	}
	return {
		ms: Math.max(...running.map(({ doneAt }) => doneAt)),
		refusals: refusedAt.length,
		refusalsInMinute: mostWithin(60_000, refusedAt),
	};
}

/** @returns how many of the moments lie within so many milliseconds, at most */
function mostWithin(ms: number, moments: readonly number[]): number {
	let first = 0;
	let most = 0;
	for (const [index, at] of moments.entries()) {
		while (at - (moments[first] ?? at) > ms) first++;
		most = Math.max(most, index - first + 1);
	}
	return most;
}
