import type { IExecuteFunctions } from 'n8n-workflow';
import { randomUUID } from 'crypto';

import { clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { Semaphore, settled } from '../shared/promises';
import { executionIdOf, isSupplied, runNumber, stopSignal } from './internals';
import { LedgerRow } from './ledgerRow';

/** How often n8n's store is asked while it fails, and the pause between two tries, milliseconds. */
const MOST_TRIES = 10;
const PAUSE_MS = 5_000;

export const NOTHING_ORDERED =
	'No more tasks were created here: both executions would order the same tasks. Look for the retry in the list of executions, and retry that execution if it has failed.';

/** The error of an execution that n8n has woken although a retry orders what is left. */
export const retryGoesOn = () =>
	new ItemError('A retry of this execution goes on with its tasks', {
		description: `${NOTHING_ORDERED} When n8n has just started, it lists some runs as crashed that it wakes by itself: wait a minute before you retry them.`,
	});

/**
 * What n8n's database knows of a turn before n8n stores its end: that the turn orders, and which orders were about to be
 * sent. n8n stores what a turn has done when the turn ends, so nothing else is left of a turn that was killed. The primary
 * key of the database lets one process write the row.
 *
 * If nothing of an execution was stored before, n8n begins the workflow anew, and the nodes before may give other items. So
 * the first turns of such an execution share a row, turn 0, without orders: a retry that finds the row orders nothing.
 *
 * Each method asks again for 50 s while the store fails, and throws the database's error then; Stopped if the execution
 * was stopped.
 */
export class TurnRow {
	/** Whether a retry has claimed the orders while this turn ordered. */
	isTaken = false;

	/** Whether this turn has written the row. */
	hasBegun = false;

	private readonly row: LedgerRow;
	private readonly run: number;
	private readonly writer = `written by ${randomUUID()}`;
	private readonly noted = new Set<string>();
	private waiting: string[] = [];
	private failure: { error: unknown } | undefined;
	private readonly oneAtATime = new Semaphore(1);
	private readonly claims: LedgerRow[] = [];

	/**
	 * @param turn the number of the turn in this run of the node
	 * @param execution the execution whose turn it is
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		readonly turn: number,
		readonly execution = String(executionIdOf(context)),
	) {
		this.run = runNumber(context);
		const name =
			turn === 0 ? `first turn of ${execution}` : `turn ${turn} of ${execution}.${this.run}`;
		this.row = new LedgerRow(context, name);
	}

	/** Writes the row. @returns whether this turn may order; otherwise another process has written the row */
	async begin(): Promise<boolean> {
		if (!this.isKept) return true;
		this.hasBegun = await this.insert(this.row, this.writer);
		return this.hasBegun;
	}

	/**
	 * To be called before an order is sent. What comes together is written together.
	 *
	 * @throws ItemError if a retry has claimed the execution: it orders what is not noted
	 */
	async note(position: string): Promise<void> {
		if (this.turn === 0 || !this.isKept || this.noted.has(position)) return;
		this.waiting.push(position);
		await this.oneAtATime.run(async () => {
			if (this.noted.has(position)) return;
			// A store that has failed for so long is not asked again for each order of this turn.
			if (this.failure) throw this.failure.error;
			const positions = this.waiting;
			this.waiting = [];
			const written = await settled(this.ask(async () => await this.row.add(...positions)));
			if ('error' in written) {
				this.failure = written;
				throw written.error;
			}
			for (const each of positions) this.noted.add(each);
		});
		if (!(await this.isClaimed())) return;
		this.isTaken = true;
		throw retryGoesOn();
	}

	/**
	 * To be called when a noted order was certainly not taken. Before it returns, the same order is not to be noted again.
	 * While the store fails the note stays: an order too many is in doubt after a kill, and none too few.
	 */
	async withdraw(position: string): Promise<void> {
		if (!this.noted.delete(position)) return;
		await this.oneAtATime.run(async () => await settled(this.row.remove([position])));
	}

	/** Which of these orders were about to be sent. */
	async notesOf(positions: readonly string[]): Promise<string[]> {
		return await this.ask(async () => await this.row.which(positions));
	}

	/** Whether somebody has begun the turn. */
	async isBegun(): Promise<boolean> {
		return this.isKept && (await this.ask(async () => await this.row.size())) > 0;
	}

	/**
	 * Claims the orders of an execution: of several retries one may order, and the execution itself no more. It looks for a
	 * claim after each of its notes, and the retry reads these notes after its claim: so one of the two sees the other.
	 *
	 * @param claimant in whose name: a retry that goes on from another retry has the claim of that retry
	 * @returns whether the claimant has the claim
	 */
	async claim(execution: string, claimant: string): Promise<boolean> {
		// A row tells what it has by being added to, which its owner may see. So a claim has a second row, whose name tells
		// the claimant.
		const mark = this.claimRowOf(execution, ` by ${claimant}`);
		if ((await this.ask(async () => await mark.size())) > 0) return true;
		const row = this.claimRowOf(execution);
		if (!(await this.insert(row, `claimed by ${claimant}`))) return false;
		this.claims.push(mark, row);
		await this.ask(async () => await mark.insert());
		return true;
	}

	/** Leaves the way to another retry: this one has ordered nothing. What it has in the name of another retry stays. */
	async giveWay(): Promise<void> {
		// A retry of this execution may rely on these claims.
		if (this.claims.length === 0 || (await this.isClaimed())) return;
		for (const row of this.claims.splice(0)) await row.clear();
	}

	/** Whether a retry has claimed the orders of this execution. */
	private async isClaimed(): Promise<boolean> {
		return await this.ask(async () => (await this.claimRowOf(this.execution).size()) > 0);
	}

	/** Removes the row. */
	async clear(): Promise<void> {
		if (this.isKept) await this.row.clear();
	}

	private claimRowOf(execution: string, claimant = ''): LedgerRow {
		return new LedgerRow(this.context, `retry of ${execution}.${this.run}${claimant}`);
	}

	/** Whether there is an execution that can be retried. */
	private get isKept(): boolean {
		const { context } = this;
		return (
			executionIdOf(context) !== undefined && !isSupplied(context) && !!context.getWorkflow().id
		);
	}

	/** @returns whether the row is certainly that of this writer: otherwise nothing may be ordered */
	private async insert(row: LedgerRow, writer: string): Promise<boolean> {
		return (await this.ask(async () => await row.insert([writer]))) === true;
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
