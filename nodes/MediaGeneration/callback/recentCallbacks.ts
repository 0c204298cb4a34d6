import type { IWebhookFunctions } from 'n8n-workflow';

import { type Clock, systemClock } from '../shared/clock';
import { Memory } from '../shared/memory';
import { DUPLICATE, type WebhookAnswer } from './webhookAnswer';

/** What the callbacks of a task are answered that come after the first; or n8n did not store the first. */
export type Outcome = WebhookAnswer | 'notStored';

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
	private readonly outcomes: Memory<Promise<Outcome>>;

	constructor(clock: Clock = systemClock) {
		this.outcomes = new Memory(clock, MAX_AGE_MS, MAX_REMEMBERED);
	}

	/**
	 * @param key names the trigger and the task
	 * @returns what becomes of the callback of the same task that came first; undefined where there is none
	 */
	earlier(key: string): Promise<Outcome> | undefined {
		return this.outcomes.get(key);
	}

	/**
	 * Marks a task as being worked on.
	 *
	 * @returns a function that tells the waiting callbacks what became of it
	 */
	begin(key: string): (outcome: Outcome) => void {
		let settle: (outcome: Outcome) => void = () => undefined;
		const outcome = new Promise<Outcome>((resolve) => {
			settle = resolve;
		});
		this.outcomes.set(key, outcome);
		return (known) => {
			if (known === DUPLICATE) this.outcomes.set(key, outcome);
			else this.outcomes.delete(key);
			settle(known);
		};
	}
}

/**
 * Settles by n8n's answer: it comes once the execution is stored, and from then on another callback of this task
 * is a duplicate.
 *
 * @param settle what `begin` returned
 */
export function settleByAnswer(
	settle: (outcome: Outcome) => void,
	response: ReturnType<IWebhookFunctions['getResponseObject']>,
): void {
	const end = () => {
		const isStored = response.writableFinished && response.statusCode < 300;
		settle(isStored ? DUPLICATE : 'notStored');
	};
	// The sender may have given up meanwhile: then nothing more is heard of this answer.
	if (response.destroyed) end();
	else response.once('close', end);
}
