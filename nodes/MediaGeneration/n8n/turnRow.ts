import type { IExecuteFunctions } from 'n8n-workflow';
import { randomUUID } from 'crypto';

import { clock, settled } from '../shared/clock';
import { executionIdOf, isSupplied, runNumber, stopSignal } from './internals';
import { LedgerRow } from './ledgerRow';

/** How often n8n's store is asked while it fails, and the pause between two tries, milliseconds. */
const MOST_TRIES = 10;
const PAUSE_MS = 5_000;

/** Among so many executions after a retried one its first retry is looked for. */
const MOST_CANDIDATES = 1_000;

/** In place of a node's id: all nodes of a workflow share the row of a claim. */
const ALL_NODES = 'media-generation';

const claimBy = (execution: string): string => `claimed by ${execution}`;

/**
 * What n8n's database knows of a turn before n8n stores its end, shown by test/e2e/restart.test.ts: that the turn has begun, and how many windows of orders.
 * n8n stores what a turn has done when the turn ends, so nothing else is left of a turn that was killed. Each window has a
 * row, and the primary key of the database lets one process write the row.
 *
 * If nothing of an execution was stored before, n8n begins the workflow anew, and the nodes before may give other items. So
 * the first turns of such an execution share a row, turn 0: a retry that finds the row orders nothing.
 *
 * Each method asks again for 50 s while the store fails, and throws the database's error then; Stopped if the execution
 * was stopped.
 */
export class TurnRow {
	private readonly run: number;

	/**
	 * @param turn the number of the turn in this run of the node
	 * @param execution the execution whose turn it is
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly turn: number,
		private readonly execution = String(executionIdOf(context)),
	) {
		this.run = runNumber(context);
	}

	/** @param window the number of the window in the turn, from 0 */
	private rowOf(window: number): LedgerRow {
		const { context, turn, execution, run } = this;
		const name = turn === 0 ? `first turn of ${execution}` : `turn ${turn} of ${execution}.${run}`;
		return new LedgerRow(context, window === 0 ? name : `window ${window} of ${name}`);
	}

	private get claimRow(): LedgerRow {
		return new LedgerRow(this.context, `retry of ${this.execution}`, ALL_NODES);
	}

	/** Only to name the claimant: n8n tells what a row has by adding what it lacks, which would pass for a claim. */
	private get claimantRow(): LedgerRow {
		return new LedgerRow(this.context, `claimant of ${this.execution}`, ALL_NODES);
	}

	/**
	 * Writes the row of a window.
	 *
	 * @param window its number in the turn, from 0
	 * @returns whether this call has written the row; otherwise nothing may be ordered
	 */
	async begin(window = 0): Promise<boolean> {
		return !this.isKept || (await this.insert(this.rowOf(window), `written by ${randomUUID()}`));
	}

	/** How many windows of the turn have begun. */
	async windows(): Promise<number> {
		let windows = 0;
		while (await this.hasRow(this.rowOf(windows))) windows++;
		return windows;
	}

	/** @param windows how many windows of the turn have begun */
	async clear(windows: number): Promise<void> {
		if (!this.isKept) return;
		// The first row last: it says that the turn has begun.
		for (let window = windows - 1; window >= 0; window--) await this.rowOf(window).clear();
	}

	/**
	 * Claims the orders of all nodes of the execution for a retry of it: the first retry goes on.
	 *
	 * @param claimant the execution that claims them
	 * @returns whether it has the claim
	 */
	async claim(claimant: string): Promise<boolean> {
		if (!this.isKept) return true;
		const claim = claimBy(claimant);
		const hasClaim = await this.insert(this.claimRow, claim);
		if (hasClaim) await settled(this.claimantRow.insert([claim]));
		return hasClaim;
	}

	/** Whether a retry has claimed the orders of the execution. */
	async isClaimed(): Promise<boolean> {
		return await this.hasRow(this.claimRow);
	}

	/** The retry that has the claim; undefined if it cannot be told. */
	async claimant(): Promise<string | undefined> {
		const first = Number(this.execution) + 1;
		if (!Number.isSafeInteger(first)) return undefined;
		const candidates = Array.from({ length: MOST_CANDIDATES }, (_, index) => `${first + index}`);
		const claims = candidates.map(claimBy);
		const [claim] = await this.ask(async () => await this.claimantRow.which(claims));
		return candidates[claims.indexOf(claim ?? '')];
	}

	/** Whether there is an execution that can be retried. */
	private get isKept(): boolean {
		const { context } = this;
		return (
			executionIdOf(context) !== undefined && !isSupplied(context) && !!context.getWorkflow().id
		);
	}

	private async hasRow(row: LedgerRow): Promise<boolean> {
		return this.isKept && (await this.ask(async () => await row.size())) > 0;
	}

	/** @returns whether the row is certainly that of this writer */
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
