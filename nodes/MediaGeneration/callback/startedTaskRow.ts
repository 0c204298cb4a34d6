import type { IExecuteFunctions } from 'n8n-workflow';

import { settled } from '../shared/promises';
import { digest } from '../shared/json';

/** Entries of the one row that is used where a row for each task cannot be had. */
const FALLBACK_ENTRIES = 100_000;

let fallbackWasLogged = false;

/**
 * The row of one task in n8n's own de-duplication store.
 *
 * n8n keeps one row for each workflow and node, which is read and then rewritten: two processes lose each other's
 * entries. So each task gets a row of its own, and the database's primary key decides, atomically, on every process
 * and across restarts. The cost does not grow with the number of tasks; rows stay until n8n's store is cleared or
 * the workflow is deleted.
 *
 * This leans on an inside of n8n (1.123 to 2.41): the helper takes the row's name from the `id` of the node object
 * that `getExecuteData()` returns, synchronously, while it is called. For just that call the `id` is extended by a
 * digest of the key. Where n8n does not look at it then, the helper has used the node's own row, which is what
 * n8n documents, and that is said once in the log.
 *
 * Each of its methods throws the database's error.
 */
export class StartedTaskRow {
	/**
	 * @param key names the row
	 * @param nodeId the trigger whose row it is, where that is another node of this workflow
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly key: string,
		private readonly nodeId = context.getNode().id,
	) {}

	/**
	 * How many entries it holds: none where nobody has written it. The node's own row, where it has to serve, says
	 * nothing of one task.
	 */
	async size(): Promise<number> {
		const { answer, isOwnRow } = await this.named(
			async (helpers) => await helpers.getProcessedDataCount('node', { mode: 'entries' }),
		);
		return isOwnRow ? answer : 0;
	}

	/** Writes it, with entries beside the key, unless somebody else has. @returns whether it was this call that wrote it */
	async insert(entries: readonly string[]): Promise<boolean> {
		const recorded = await settled(this.record([this.key, ...entries]));
		if ('value' in recorded) return recorded.value.new.includes(this.key);
		if (isSecondRow(recorded.error)) return false;
		throw recorded.error;
	}

	/** Whether it has held an entry until now. From now on it does: n8n has no question that leaves nothing behind. */
	async held(entry: string): Promise<boolean> {
		return (await this.record([entry])).processed.includes(entry);
	}

	private async record(entries: string[]) {
		const options = { mode: 'entries', maxEntries: FALLBACK_ENTRIES } as const;
		const { answer } = await this.named(
			async (helpers) => await helpers.checkProcessedAndRecord(entries, 'node', options),
		);
		return answer;
	}

	/** Calls a helper of n8n's while the node bears the name of the row. */
	private async named<T>(call: (helpers: IExecuteFunctions['helpers']) => Promise<T>) {
		const { node } = this.context.getExecuteData();
		const { id } = node;
		const rowId = `${this.nodeId}:${digest(this.key)}`;
		let isOwnRow = false;
		const setId = (property: PropertyDescriptor) =>
			Object.defineProperty(node, 'id', { configurable: true, enumerable: true, ...property });
		setId({
			get: () => {
				isOwnRow = true;
				return rowId;
			},
		});
		const called = call(this.context.helpers);
		setId({ writable: true, value: id });
		const answer = await called;
		if (!isOwnRow && !fallbackWasLogged) {
			fallbackWasLogged = true;
			this.context.logger.warn(
				'Media Generation Trigger: this n8n keeps its finished tasks in one row, so that in queue mode a task may start the workflow twice',
			);
		}
		return { answer, isOwnRow };
	}
}

/** Whether the database refused a second row of the same name: PostgreSQL, MySQL, SQLite. */
const isSecondRow = (error: unknown): boolean =>
	error instanceof Error &&
	(('code' in error && ['23505', 'ER_DUP_ENTRY'].includes(String(error.code))) ||
		/UNIQUE constraint failed|duplicate key value|Duplicate entry/i.test(error.message));
