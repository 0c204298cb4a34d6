import type { IWebhookFunctions } from 'n8n-workflow';

import { type Clock, systemClock } from '../shared/clock';
import type { WebhookAnswer } from './webhookAnswer';

/** Either the answer to a callback, or a promise that tells whether n8n has stored the execution it starts. */
type Outcome = WebhookAnswer | 'stored' | 'notStored';

const MAX_REMEMBERED = 10_000;

/**
 * Senders repeat themselves within minutes. Not longer, because n8n may lose an execution that it has stored: then
 * another callback must be able to start the workflow, and whether it has run is the ledger's to say.
 */
const MAX_AGE_MS = 10 * 60_000;

/**
 * What this process knows of the tasks whose callbacks have just come.
 *
 * Callbacks of one task that arrive together are brought together: one of them reads the task and starts the
 * workflow, the others wait for what becomes of it. A task whose execution is stored is remembered for ten minutes, so
 * that further callbacks cost neither a read nor an execution. This spares work only: the ledger decides.
 */
export class RecentTasks {
	/** When each was stored, milliseconds of the clock; in the order of arrival, so that the oldest goes first. */
	private readonly storedAt = new Map<string, number>();

	private readonly underWay = new Map<string, Promise<Outcome>>();

	/** Those of `underWay` that n8n has been given to store. */
	private readonly beingStored = new Set<string>();

	constructor(private readonly clock: Clock = systemClock) {}

	/** @param key names the trigger and the task */
	has(key: string): boolean {
		const at = this.storedAt.get(key);
		return at !== undefined && this.clock.now() - at < MAX_AGE_MS;
	}

	/** The callback of the same task that is being worked on, if any. */
	earlier(key: string): Promise<Outcome> | undefined {
		return this.underWay.get(key);
	}

	/** Whether the task has been read, and only n8n is still at work on it. */
	isBeingStored(key: string): boolean {
		return this.beingStored.has(key);
	}

	/** Notes that n8n has been given the task to store. */
	handOver(key: string): void {
		this.beingStored.add(key);
	}

	/**
	 * Marks a task as being worked on.
	 *
	 * @returns a function that tells the waiting callbacks what became of it
	 */
	begin(key: string): (outcome: Outcome) => void {
		let settle: (outcome: Outcome) => void = () => undefined;
		this.underWay.set(
			key,
			new Promise<Outcome>((resolve) => {
				settle = resolve;
			}),
		);
		return (outcome) => {
			this.underWay.delete(key);
			this.beingStored.delete(key);
			if (outcome === 'stored') this.remember(key);
			settle(outcome);
		};
	}

	/**
	 * Settles by n8n's answer: it comes once the execution is stored, and from then on another callback of this task
	 * is a duplicate.
	 *
	 * @param settle what `begin` returned
	 */
	settleByAnswer(
		settle: (outcome: Outcome) => void,
		response: ReturnType<IWebhookFunctions['getResponseObject']>,
	): void {
		const end = () => {
			const isStored = response.writableFinished && response.statusCode < 300;
			settle(isStored ? 'stored' : 'notStored');
		};
		// The sender may have given up meanwhile: then nothing more is heard of this answer.
		if (response.destroyed) end();
		else response.once('close', end);
	}

	private remember(key: string): void {
		const now = this.clock.now();
		this.storedAt.delete(key);
		this.storedAt.set(key, now);
		for (const [oldest, at] of this.storedAt) {
			if (this.storedAt.size <= MAX_REMEMBERED && now - at < MAX_AGE_MS) return;
			this.storedAt.delete(oldest);
		}
	}
}
