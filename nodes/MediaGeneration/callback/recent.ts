import type { IWebhookFunctions } from 'n8n-workflow';

import type { Answer } from './answer';

/** Either the answer to a callback, or a promise that tells whether n8n has stored the execution it starts. */
type Outcome = Answer | 'stored' | 'notStored';

const MAX_REMEMBERED = 10_000;

/**
 * What this process knows of the tasks whose callbacks have just come.
 *
 * Callbacks of one task that arrive together are brought together: one of them reads the task and starts the
 * workflow, the others wait for what becomes of it. A task whose execution is stored is remembered, so that further
 * callbacks cost neither a read nor an execution. This spares work only: the ledger decides.
 */
export class RecentTasks {
	/** In the order of arrival, so that the oldest goes first. */
	private readonly stored = new Set<string>();

	private readonly underWay = new Map<string, Promise<Outcome>>();

	/** Those of `underWay` that n8n has been given to store. */
	private readonly beingStored = new Set<string>();

	/** @param key names the trigger and the task */
	has(key: string): boolean {
		return this.stored.has(key);
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
	 * @param onStored called where n8n stored the execution
	 */
	settleByAnswer(
		settle: (outcome: Outcome) => void,
		response: ReturnType<IWebhookFunctions['getResponseObject']>,
		onStored: () => void = () => undefined,
	): void {
		const end = () => {
			const isStored = response.writableFinished && response.statusCode < 300;
			if (isStored) onStored();
			settle(isStored ? 'stored' : 'notStored');
		};
		// The sender may have given up meanwhile: then nothing more is heard of this answer.
		if (response.destroyed) end();
		else response.once('close', end);
	}

	private remember(key: string): void {
		this.stored.add(key);
		if (this.stored.size <= MAX_REMEMBERED) return;
		const [oldest] = this.stored;
		if (oldest !== undefined) this.stored.delete(oldest);
	}
}
