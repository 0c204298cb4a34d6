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
	mysql: Object.assign(new Error("Duplicate entry 'workflow-n:node' for key 'PRIMARY'"), {
		code: 'ER_DUP_ENTRY',
	}),
};

/**
 * n8n's de-duplication store as it works on its database: a row for each workflow and node, found first and then
 * inserted or rewritten, so that two who come together both find none, and the table's key refuses the second.
 */
export class ProcessedData implements IDataDeduplicator {
	/** The entries of each row, by workflow and context. */
	readonly rows = new Map<string, DeduplicationItemTypes[]>();

	/** What the next call fails with. */
	nextError: Error | undefined;

	/** Whether the connection breaks after the next call has done its work. */
	answerIsLost = false;

	/** For the next test. */
	reset(): void {
		this.rows.clear();
		this.nextError = undefined;
		this.answerIsLost = false;
	}

	async checkProcessedAndRecord(
		items: DeduplicationItemTypes[],
		_scope: DeduplicationScope,
		context: ICheckProcessedContextData,
	): Promise<IDeduplicationOutput> {
		const result = await this.record(items, context);
		if (!this.answerIsLost) return result;
		this.answerIsLost = false;
		throw new UnexpectedError('connection terminated unexpectedly');
	}

	private async record(
		items: DeduplicationItemTypes[],
		{ node, workflow }: ICheckProcessedContextData,
	): Promise<IDeduplicationOutput> {
		const key = `${workflow.id}/${node?.id}`;
		const found = this.rows.get(key);
		await Promise.resolve();
		const { nextError } = this;
		this.nextError = undefined;
		if (nextError) throw nextError;
		if (!found) {
			if (this.rows.has(key)) throw SECOND_ROW.sqlite;
			this.rows.set(key, [...items]);
			return { new: items, processed: [] };
		}
		const added = items.filter((item) => !found.includes(item));
		this.rows.set(key, [...found, ...added]);
		return { new: added, processed: items.filter((item) => found.includes(item)) };
	}

	checkProcessedItemsAndRecord = async () => await this.notNeeded();

	removeProcessed = async () => await this.notNeeded();

	clearAllProcessedItems = async () => await this.notNeeded();

	async getProcessedDataCount(
		_scope: DeduplicationScope,
		{ node, workflow }: ICheckProcessedContextData,
	): Promise<number> {
		const found = this.rows.get(`${workflow.id}/${node?.id}`);
		return await Promise.resolve(found?.length ?? 0);
	}

	private async notNeeded(): Promise<never> {
		return await Promise.reject(new UnexpectedError('Not needed by this package'));
	}
}

/** Gives n8n-core its store, once in a test file. */
export async function useProcessedData(): Promise<ProcessedData> {
	const store = new ProcessedData();
	await DataDeduplicationService.init(store);
	return store;
}
