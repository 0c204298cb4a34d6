import { ProcessedDataTable, type WriteTrouble } from '../../workflow/processedData';
import type { World } from './world';

/** n8n's de-duplication store on the database of a history, with its troubles. */
export class ProcessedData extends ProcessedDataTable {
	/** Whether no write fails any more. */
	isCalm = false;

	/** How many writes have failed. */
	failures = 0;

	private writes = 0;

	constructor(private readonly world: World) {
		super();
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
