import type { IExecuteFunctions } from 'n8n-workflow';
import { randomUUID } from 'crypto';

import { clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { Semaphore, settled } from '../shared/promises';
import { executionIdOf, internalsOf, isSupplied, stopSignal } from './internals';
import { LedgerRow } from './ledgerRow';

/** How often n8n's store is asked while it fails, and the pause between two tries, milliseconds. */
const MOST_TRIES = 10;
const PAUSE_MS = 5_000;

export const NOTHING_ORDERED =
	'No more tasks were created here: both executions would order the same tasks. Look for the retry in the list of executions, and retry that execution if it has failed.';

/** The error of an execution that n8n has woken although a retry orders what is left. */
export const retryGoesOn = () =>
	new ItemError('A retry of this execution goes on with its tasks', {
		description: NOTHING_ORDERED,
	});

/**
 * What n8n's database knows of a turn before n8n stores its end: that the turn orders, and which orders were about to be
 * sent. n8n stores what a turn has done when the turn ends, so nothing else is left of a turn that was killed. The primary
 * key of the database lets one process write the row.
 *
 * Nothing of the first turn of an execution is left after a kill, and n8n begins the workflow anew. So its row has no
 * orders: a retry that finds the row orders nothing.
 *
 * Each method asks again for 50 s while the store fails, and throws the database's error then; Stopped if the execution
 * was stopped.
 */
export class TurnRow {
	/** Whether a retry has claimed the execution while it ordered. */
	isTaken = false;

	private readonly row: LedgerRow;
	private readonly writer = `written by ${randomUUID()}`;
	private readonly noted = new Set<string>();
	private waiting: string[] = [];
	private failure: { error: unknown } | undefined;
	private readonly oneAtATime = new Semaphore(1);

	/**
	 * @param turn the number of the turn in this run of the node
	 * @param execution the execution whose turn it is
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		readonly turn: number,
		readonly execution = String(executionIdOf(context)),
	) {
		const run = internalsOf(context).runIndex ?? 0;
		// n8n gives the retry of an execution that was killed in its first turn another index of the run.
		const name = turn === 0 ? `first turn of ${execution}` : `turn ${turn} of ${execution}.${run}`;
		this.row = new LedgerRow(context, name);
	}

	/**
	 * Writes the row.
	 *
	 * @param places orders of an earlier turn that are in doubt, so that a retry of this turn finds all in one row
	 * @returns whether this turn may order; otherwise another process has written the row
	 */
	async begin(places: readonly string[] = []): Promise<boolean> {
		if (!this.isKept) return true;
		return await this.ask(async () => await this.row.insert([this.writer, ...places]));
	}

	/**
	 * To be called before an order is sent. What comes together is written together.
	 *
	 * @throws ItemError if a retry has claimed the execution: it orders what is not noted
	 */
	async note(place: string): Promise<void> {
		if (this.turn === 0 || !this.isKept || this.noted.has(place)) return;
		this.waiting.push(place);
		await this.oneAtATime.run(async () => {
			if (this.noted.has(place)) return;
			// A store that has failed for so long is not asked again for each order of this turn.
			if (this.failure) throw this.failure.error;
			const places = this.waiting;
			this.waiting = [];
			const written = await settled(this.ask(async () => await this.row.add(...places)));
			if ('error' in written) {
				this.failure = written;
				throw written.error;
			}
			for (const each of places) this.noted.add(each);
		});
		// A retry claims the execution, and reads the notes after that. So one of the two sees the other.
		if (!(await this.isClaimed())) return;
		this.isTaken = true;
		throw retryGoesOn();
	}

	/** Which of these orders were about to be sent. */
	async notesOf(places: readonly string[]): Promise<string[]> {
		return await this.ask(async () => await this.row.which(places));
	}

	/** Whether somebody has begun the turn. */
	async isBegun(): Promise<boolean> {
		return this.isKept && (await this.ask(async () => await this.row.size())) > 0;
	}

	/**
	 * Of several retries of an execution one may order, and the execution itself no more. The claim of a retry that was killed
	 * passes on to its own retry.
	 *
	 * @param killed the retry whose claim it may be
	 * @returns whether this execution has the claim
	 */
	async claim(killed?: string): Promise<boolean> {
		const own = `claimed by ${executionIdOf(this.context)}`;
		const claimed = killed === undefined ? own : `claimed by ${killed}`;
		if (!(await this.ask(async () => await this.claimRow.insert([claimed])))) return false;
		if (claimed === own) return true;
		await this.ask(async () => await this.claimRow.add(own));
		await this.ask(async () => await this.claimRow.remove([claimed]));
		return true;
	}

	/** Gives the claim back. */
	async giveBack(): Promise<void> {
		await this.ask(async () => await this.claimRow.clear());
	}

	/** Whether a retry has claimed the execution: it orders what is left, in this turn and in later ones. */
	async isClaimed(): Promise<boolean> {
		return this.isKept && (await this.ask(async () => await this.claimRow.size())) > 0;
	}

	/** Removes the row, and perhaps the claim of a retry: without the claim another retry may order. */
	async clear({ claim = false } = {}): Promise<void> {
		if (!this.isKept) return;
		await this.row.clear();
		if (claim) await this.claimRow.clear();
	}

	private get claimRow(): LedgerRow {
		const run = internalsOf(this.context).runIndex ?? 0;
		return new LedgerRow(this.context, `retry of ${this.execution}.${run}`);
	}

	/** Whether there is an execution that can be retried. */
	private get isKept(): boolean {
		const { context } = this;
		return (
			executionIdOf(context) !== undefined && !isSupplied(context) && !!context.getWorkflow().id
		);
	}

	/** n8n's store may fail for a moment. */
	private async ask<T>(question: () => Promise<T>): Promise<T> {
		for (let tries = 1; ; tries++) {
			const asked = await settled(question());
			if ('value' in asked) return asked.value;
			if (tries === MOST_TRIES) throw asked.error;
			await clock.sleep(PAUSE_MS, stopSignal(this.context));
		}
	}
}
