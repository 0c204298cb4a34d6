import {
	type DeduplicationItemTypes,
	type DeduplicationScope,
	type ICheckProcessedContextData,
	type IDataDeduplicator,
	type IDeduplicationOutput,
	type IDeduplicationOutputItems,
	UnexpectedError,
} from 'n8n-workflow';
import type { World } from './world';

/**
 * n8n's de-duplication store on its database, with the database's races: a row is looked for, and then inserted or
 * rewritten as it was found. Two who come together both find none; the primary key refuses the second. Two who
 * rewrite a row lose each other's entries.
 */
export class ProcessedData implements IDataDeduplicator {
	readonly rows = new Map<string, DeduplicationItemTypes[]>();

	private writes = 0;

	constructor(private readonly world: World) {}

	async checkProcessedAndRecord(
		items: DeduplicationItemTypes[],
		_scope: DeduplicationScope,
		{ node, workflow }: ICheckProcessedContextData,
	): Promise<IDeduplicationOutput> {
		// n8n reads the node's id while it is called, and not later.
		const key = `${workflow.id}/${node?.id}`;
		const found = await this.query(() => this.rows.get(key)?.slice());
		const nth = this.writes++;
		const trouble = this.world.isTroubled
			? this.world.history.ledgerTroubles.find((entry) => entry.nth === nth)
			: undefined;
		const added = items.filter((item) => !found?.includes(item));
		await this.query(() => {
			if (!trouble || trouble.isWritten) {
				if (!found && this.rows.has(key)) {
					this.world.note('two write one row of the ledger');
					throw new Error('UNIQUE constraint failed: processed_data.workflowId');
				}
				this.rows.set(key, [...(found ?? []), ...added]);
			}
			if (!trouble) return;
			this.world.note(`ledger write fails, ${trouble.isWritten ? 'written' : 'not written'}`);
			this.world.trace(`database: a write of the ledger fails`);
			throw new Error('Connection terminated unexpectedly');
		});
		return { new: added, processed: items.filter((item) => found?.includes(item)) };
	}

	async removeProcessed(
		items: DeduplicationItemTypes[],
		_scope: DeduplicationScope,
		{ node, workflow }: ICheckProcessedContextData,
	): Promise<void> {
		const key = `${workflow.id}/${node?.id}`;
		const found = await this.query(() => this.rows.get(key)?.slice());
		if (!found) return;
		await this.query(() => {
			const left = found.filter((item) => !items.includes(item));
			this.rows.set(key, left);
		});
	}

	async clearAllProcessedItems(
		_scope: DeduplicationScope,
		{ node, workflow }: ICheckProcessedContextData,
	): Promise<void> {
		const key = `${workflow.id}/${node?.id}`;
		await this.query(() => this.rows.delete(key));
	}

	async getProcessedDataCount(
		_scope: DeduplicationScope,
		{ node, workflow }: ICheckProcessedContextData,
	): Promise<number> {
		const key = `${workflow.id}/${node?.id}`;
		return await this.query(() => this.rows.get(key)?.length ?? 0);
	}

	async checkProcessedItemsAndRecord(): Promise<IDeduplicationOutputItems> {
		return await Promise.reject(new UnexpectedError('Not used by this package'));
	}

	private async query<T>(work: () => T): Promise<T> {
		return await this.world.n8n.query(work);
	}
}
