import type {
	DeduplicationItemTypes,
	DeduplicationScope,
	ICheckProcessedContextData,
} from 'n8n-workflow';

import { keyOf, ProcessedDataTable, type WriteTrouble } from '../../workflow/processedData';
import type { World } from './world';

/** n8n's de-duplication store on the database of a history, with its troubles. */
export class ProcessedData extends ProcessedDataTable {
	/** Whether no write fails any more. */
	isCalm = false;

	/** How many writes have failed. */
	failures = 0;

	/** Of each row that there ever was, who has written it, e.g. `execution 3`, and what was to be written, but for what was taken out again. */
	readonly noted = new Map<string, { by: string; entries: DeduplicationItemTypes[] }>();

	private writes = 0;

	constructor(private readonly world: World) {
		super();
	}

	override async checkProcessedAndRecord(
		items: DeduplicationItemTypes[],
		scope: DeduplicationScope,
		context: ICheckProcessedContextData,
	) {
		const { name } = this.world.time.activity;
		const { by, entries } = this.noteOf(context) ?? { by: name, entries: [] };
		this.noted.set(keyOf(context), { by, entries: [...new Set([...entries, ...items])] });
		return await super.checkProcessedAndRecord(items, scope, context);
	}

	override async removeProcessed(
		items: DeduplicationItemTypes[],
		scope: DeduplicationScope,
		context: ICheckProcessedContextData,
	): Promise<void> {
		const note = this.noteOf(context);
		if (note) note.entries = note.entries.filter((entry) => !items.includes(entry));
		await super.removeProcessed(items, scope, context);
	}

	private noteOf(context: ICheckProcessedContextData) {
		return this.noted.get(keyOf(context));
	}

	protected async query<T>(work: () => T): Promise<T> {
		return await this.world.n8n.database.query(work);
	}

	protected override noteSecondRow(): void {
		this.world.note('two write one row of the ledger');
	}

	protected nextTrouble(): WriteTrouble | undefined {
		const nth = this.writes++;
		const trouble = this.world.history.storeTroubles.find((entry) => entry.nth === nth);
		return trouble && !this.isCalm ? this.fail(trouble.isWritten) : undefined;
	}

	private fail(isWritten: boolean): WriteTrouble {
		this.failures++;
		this.world.note(`ledger write fails, ${isWritten ? 'written' : 'not written'}`);
		this.world.trace('database: a write of the ledger fails');
		return { error: new Error('Connection terminated unexpectedly'), isWritten };
	}
}
