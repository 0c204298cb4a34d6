import { type Rules, SimulatedAccount } from './account';

/** A create is answered after this time, milliseconds; the service decides in the middle of it. */
export const CREATE_MS = 50;
const READ_MS = 25;
export const POLL_MS = 2000;
/** Between two creates, as the run keeps it. */
const GAP_MS = 4;
const MAX_EVENTS = 1_000_000;

/** How long a task takes, milliseconds: all the same, or each by its number. */
export type TaskMs = number | ((nth: number) => number);

/** How the end of a task is learned. */
export type Learns = 'polling' | 'never' | 'atOnce';

/** What decides when a create is sent; all times are milliseconds. */
export interface Policy<Ticket> {
	nextAt(now: number): number;
	send(now: number): Ticket;
	/** @param isFollowed whether the end of the task will be known */
	accepted(ticket: Ticket, now: number, isFollowed: boolean): void;
	refused(ticket: Ticket, now: number, retryAfterMs: number | undefined): void;
	finished(now: number, takenAt: number): void;
	/** Moments at which to ask again. */
	readonly wakes?: readonly number[];
}

export interface Outcome {
	/** Until the last task is known to be finished. */
	ms: number;
	refusals: number;
	/** Tasks that were unfinished at once. */
	most: number;
}

/** What happens when, in the order of time. */
class Agenda {
	private readonly heap: Array<{ at: number; order: number; work: () => void }> = [];
	private count = 0;

	add(at: number, work: () => void): void {
		const entry = { at, order: this.count++, work };
		let index = this.heap.push(entry) - 1;
		while (index > 0) {
			const above = (index - 1) >> 1;
			if (!this.isBefore(index, above)) break;
			this.swap(index, above);
			index = above;
		}
	}

	take(): { at: number; work: () => void } | undefined {
		const first = this.heap[0];
		const last = this.heap.pop();
		if (first === undefined || last === undefined || this.heap.length === 0) return first;
		this.heap[0] = last;
		for (let index = 0; ;) {
			let below = 2 * index + 1;
			if (below >= this.heap.length) return first;
			if (below + 1 < this.heap.length && this.isBefore(below + 1, below)) below++;
			if (!this.isBefore(below, index)) return first;
			this.swap(index, below);
			index = below;
		}
	}

	private isBefore(a: number, b: number): boolean {
		const [x, y] = [this.heap[a], this.heap[b]];
		if (!x || !y) return false;
		return x.at < y.at || (x.at === y.at && x.order < y.order);
	}

	private swap(a: number, b: number): void {
		const [x, y] = [this.heap[a], this.heap[b]];
		if (!x || !y) return;
		this.heap[a] = y;
		this.heap[b] = x;
	}
}

/**
 * A batch in virtual time. The end of a task is learned by polling, every 2 s from its creation on.
 *
 * @param learns `never`: the items leave at once (completions `suspend`, `trigger` and `return`), so that nobody learns
 *   when a task ends, and the batch is done with the last create; `atOnce`: whoever knows it all the same
 * @throws where the batch does not come to its end
 */
export function simulate<Ticket>(
	rules: Rules,
	taskMs: TaskMs,
	items: number,
	policy: Policy<Ticket>,
	learns: Learns = 'polling',
): Outcome {
	const agenda = new Agenda();
	const account = new SimulatedAccount(rules);
	let now = 0;
	let left = items;
	let taken = 0;
	let finished = 0;
	let refusals = 0;
	let lastSentAt = -Infinity;
	let lastTakenAt = 0;
	let wakeAt = Infinity;

	const wake = () => {
		if (wakeAt <= now) wakeAt = Infinity;
		sendDue();
	};
	const sendDue = () => {
		while (left > 0) {
			const next = Math.max(policy.nextAt(now), lastSentAt + GAP_MS);
			if (next > now + 1e-6) {
				if (next < wakeAt) agenda.add((wakeAt = next), wake);
				return;
			}
			send();
		}
	};
	const send = () => {
		left--;
		lastSentAt = now;
		const ticket = policy.send(now);
		agenda.add(now + CREATE_MS / 2, () => {
			const endsAt = now + (typeof taskMs === 'number' ? taskMs : taskMs(taken));
			const answer = account.create(now, endsAt);
			if (answer.taken) taken++;
			agenda.add(now + CREATE_MS / 2, () => {
				if (answer.taken) {
					policy.accepted(ticket, now, learns !== 'never');
					const takenAt = now;
					if (learns === 'never') finished++;
					else if (learns === 'polling') agenda.add(knownAt(endsAt), () => end(takenAt));
					else agenda.add(endsAt, () => end(takenAt));
					lastTakenAt = now;
				} else {
					refusals++;
					left++;
					policy.refused(ticket, now, answer.retryAfterMs);
				}
				sendDue();
			});
		});
	};
	const knownAt = (endsAt: number) => {
		const firstReadAt = now + POLL_MS + READ_MS / 2;
		const reads = Math.max(0, Math.ceil((endsAt - firstReadAt) / (POLL_MS + READ_MS)));
		return firstReadAt + reads * (POLL_MS + READ_MS) + READ_MS / 2;
	};
	const end = (takenAt: number) => {
		finished++;
		policy.finished(now, takenAt);
		sendDue();
	};

	for (const at of policy.wakes ?? []) agenda.add(at, sendDue);
	sendDue();
	for (let events = 0; finished < items; events++) {
		const event = agenda.take();
		if (!event || events > MAX_EVENTS) {
			throw new Error(`${finished} of ${items} tasks after ${now} ms and ${refusals} refusals`);
		}
		now = event.at;
		event.work();
	}
	return { ms: learns === 'polling' ? now : lastTakenAt, refusals, most: account.most };
}
