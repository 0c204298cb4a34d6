import { DataDeduplicationService } from 'n8n-core';
import {
	type DeduplicationItemTypes,
	type DeduplicationScope,
	type ICheckProcessedContextData,
	type IDataDeduplicator,
	type IDeduplicationOutput,
	UnexpectedError,
} from 'n8n-workflow';

/** The refusals of a second row as the databases word them. */
export const SECOND_ROW = {
	sqlite: new Error(
		'SQLITE_CONSTRAINT: UNIQUE constraint failed: processed_data.workflowId, processed_data.context',
	),
	postgres: Object.assign(
		new Error('duplicate key value violates unique constraint "PK_ca04b9d8dc72de268fe07a65773"'),
		{ code: '23505' },
	),
	'postgres in another language': Object.assign(
		new Error(
			'doppelter Schlüsselwert verletzt Unique-Constraint »PK_ca04b9d8dc72de268fe07a65773«',
		),
		{ code: '23505' },
	),
};

/** A write that fails, before the database has done its work or after. */
export interface WriteTrouble {
	error: Error;
	isWritten: boolean;
}

// n8n reads the node's id while it is called, and not later.
export const keyOf = ({ workflow, node }: ICheckProcessedContextData) =>
	`${workflow.id}/${node?.id}`;

const notNeeded = async () =>
	await Promise.reject<never>(new UnexpectedError('Not needed by this package'));

/**
 * n8n's de-duplication store as it works on its database, with the database's races: a row for each workflow and node,
 * found first and then inserted or rewritten. Two who come together both find none, and the table's key refuses the
 * second. Two who rewrite a row lose each other's entries.
 */
export abstract class ProcessedDataTable implements IDataDeduplicator {
	/** The entries of each row, by workflow and context. */
	readonly rows = new Map<string, DeduplicationItemTypes[]>();

	protected abstract query<T>(work: () => T): Promise<T>;

	/** What happens to the next write. */
	protected abstract nextTrouble(): WriteTrouble | undefined;

	/** A second row is about to be refused. */
	protected noteSecondRow(): void {}

	async checkProcessedAndRecord(
		items: DeduplicationItemTypes[],
		_scope: DeduplicationScope,
		context: ICheckProcessedContextData,
	): Promise<IDeduplicationOutput> {
		const key = keyOf(context);
		const found = await this.query(() => this.rows.get(key)?.slice());
		const added = items.filter((item) => !found?.includes(item));
		const trouble = this.nextTrouble();
		await this.query(() => {
			if (trouble && !trouble.isWritten) throw trouble.error;
			if (!found && this.rows.has(key)) {
				this.noteSecondRow();
				throw SECOND_ROW.sqlite;
			}
			this.rows.set(key, [...(found ?? []), ...added]);
			if (trouble) throw trouble.error;
		});
		return { new: added, processed: items.filter((item) => found?.includes(item)) };
	}

	async getProcessedDataCount(
		_scope: DeduplicationScope,
		context: ICheckProcessedContextData,
	): Promise<number> {
		const key = keyOf(context);
		return await this.query(() => this.rows.get(key)?.length ?? 0);
	}

	async removeProcessed(
		items: DeduplicationItemTypes[],
		_scope: DeduplicationScope,
		context: ICheckProcessedContextData,
	): Promise<void> {
		const key = keyOf(context);
		const found = await this.query(() => this.rows.get(key)?.slice());
		const left = found?.filter((item) => !items.includes(item));
		const trouble = this.nextTrouble();
		await this.query(() => {
			if (trouble && !trouble.isWritten) throw trouble.error;
			if (left) this.rows.set(key, left);
			if (trouble) throw trouble.error;
		});
	}

	/** Deletes the row. */
	async clearAllProcessedItems(
		_scope: DeduplicationScope,
		context: ICheckProcessedContextData,
	): Promise<void> {
		const key = keyOf(context);
		const trouble = this.nextTrouble();
		await this.query(() => {
			if (trouble && !trouble.isWritten) throw trouble.error;
			this.rows.delete(key);
			if (trouble) throw trouble.error;
		});
	}

	checkProcessedItemsAndRecord = notNeeded;
}

/** The store of the tests, which say what fails next. */
export class ProcessedData extends ProcessedDataTable {
	/** What the next call fails with. */
	nextError: Error | undefined;

	/** Whether the connection breaks after the next call has done its work. */
	answerIsLost = false;

	/** The database that the store is in. */
	database: { isAway: boolean } | undefined;

	/** For the next test. */
	reset(): void {
		this.rows.clear();
		this.nextError = undefined;
		this.answerIsLost = false;
		this.database = undefined;
	}

	protected async query<T>(work: () => T): Promise<T> {
		if (this.database?.isAway) throw new UnexpectedError('Connection terminated unexpectedly');
		return await Promise.resolve(work());
	}

	protected nextTrouble(): WriteTrouble | undefined {
		const { nextError, answerIsLost } = this;
		this.nextError = undefined;
		if (nextError) return { error: nextError, isWritten: false };
		this.answerIsLost = false;
		if (!answerIsLost) return undefined;
		return { error: new UnexpectedError('connection terminated unexpectedly'), isWritten: true };
	}
}

/** The store of the present tests. */
export const store = new ProcessedData();

/** n8n-core takes a store once. */
let isGiven = false;

/** Gives n8n-core a store for the tests of a file, or of a `describe`; each of them finds it empty. */
export function useProcessedData(): void {
	beforeAll(async () => {
		if (!isGiven) await DataDeduplicationService.init(store);
		isGiven = true;
	});
	beforeEach(() => store.reset());
}
