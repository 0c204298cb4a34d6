import type {
	DeduplicationItemTypes,
	DeduplicationScope,
	ICheckProcessedContextData,
} from 'n8n-workflow';

import { keyOf, ProcessedDataTable, type WriteTrouble } from '../../workflow/processedData';
import type { World } from './world';

/** n8n's de-duplication store on the database of a history, with its troubles. */
export class ProcessedData extends ProcessedDataTable {
	/** How many writes have failed. */
	failures = 0;

	/** Of each row that there ever was, who has written it, e.g. `execution 3`, and what was to be written, but for what was taken out again. */
	readonly noted = new Map<string, { by: string; entries: DeduplicationItemTypes[] }>();

	/** How many rows could not be cleared. */
	clearsFailed = 0;

	/** Whether the store has failed for a while. */
	hasBeenOut = false;

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

	override async clearAllProcessedItems(
		scope: DeduplicationScope,
		context: ICheckProcessedContextData,
	): Promise<void> {
		const cleared = super.clearAllProcessedItems(scope, context);
		cleared.catch(() => this.clearsFailed++);
		await cleared;
	}

	protected async query<T>(work: () => T): Promise<T> {
		const { world } = this;
		return await world.n8n.database.query(() => {
			if (this.isOut) {
				this.hasBeenOut = true;
				world.note('the store of processed data fails for a while');
				throw new Error('Connection terminated unexpectedly');
			}
			return work();
		});
	}

	protected override noteSecondRow(): void {
		this.world.note('two write one row of the ledger');
	}

	/** Whether the store fails at present. */
	get isOut(): boolean {
		const { history, time } = this.world;
		return history.storeOutages.some(({ at, forMs }) => time.now >= at && time.now < at + forMs);
	}

	protected nextTrouble(): WriteTrouble | undefined {
		const { isTroubled, history } = this.world;
		const nth = this.writes++;
		if (!isTroubled) return undefined;
		if (history.lostAnswers.includes(nth)) return this.fail(true);
		const trouble = history.ledgerTroubles.find((entry) => entry.nth === nth);
		return trouble ? this.fail(trouble.isWritten) : undefined;
	}

	private fail(isWritten: boolean): WriteTrouble {
		this.failures++;
		this.world.note(`ledger write fails, ${isWritten ? 'written' : 'not written'}`);
		this.world.trace('database: a write of the ledger fails');
		return { error: new Error('Connection terminated unexpectedly'), isWritten };
	}
}
