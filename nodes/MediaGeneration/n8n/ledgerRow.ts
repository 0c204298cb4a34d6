import type { DeduplicationItemTypes, IExecuteFunctions } from 'n8n-workflow';

import { clock, settled, Stopped, withTimeLimit } from '../shared/clock';
import { executionIdOf, internalsOf, runningNode } from './internals';
import { digest, isRecord } from '../shared/json';

/** The entries that n8n keeps if all names share one row. */
const FALLBACK_ENTRIES = 100_000;
const OPTIONS = { mode: 'entries', maxEntries: FALLBACK_ENTRIES } as const;

let fallbackWasLogged = false;

/**
 * A row of its own in n8n's de-duplication store, which only one execution can write first.
 *
 * n8n keeps one row for each workflow and node. To add an entry n8n reads the row and writes it anew, so two
 * processes lose each other's entries. So each name gets a row of its own, and the primary key of the database
 * decides: atomically, for all processes, across restarts. The cost does not grow with the number of names. Rows stay
 * until n8n's store is cleared or the workflow is deleted.
 *
 * It relies on an inside of n8n 2.41, shown by test/e2e/process/callbacks.ts: the helper takes the name of the row from the
 * `id` of the node object that the context was made with, synchronously, during the call. During that call the `id` has
 * a digest of the name behind it. If a version of n8n does not read the `id` then, the helper uses the row of the node,
 * as n8n documents, and the log says so once.
 *
 * Each method throws the database's error.
 */
export class LedgerRow {
	/** Whether the last call has found the row by its own name; otherwise all names share one row. */
	isOwnRow = false;

	/**
	 * @param name names the row, and is its first entry
	 * @param nodeId the node that owns the row, if that is not the present one
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly name: string,
		private readonly nodeId = context.getNode().id,
	) {}

	/** The number of entries; 0 if nobody has written the row, or if all names share one row. */
	async size(): Promise<number> {
		const entries = await this.count();
		return this.isOwnRow ? entries : 0;
	}

	/**
	 * Writes the row, unless somebody else has. To a row that somebody else wrote in the same milliseconds n8n adds the
	 * entries; they are taken out again.
	 *
	 * @param entries the first one tells who writes. If the answer of the database is lost, the same call with the same
	 *   entries tells.
	 * @returns whether this call wrote the row, or an earlier call with the same entries: then the row has no others. If it
	 *   has others, nobody can tell which came first, and the answer is undefined
	 */
	async insert(entries: readonly string[] = []): Promise<boolean | undefined> {
		const recorded = await settled(this.record([this.name, ...entries]));
		if ('error' in recorded) {
			if (isSecondRow(recorded.error)) return false;
			throw recorded.error;
		}
		const { new: added } = recorded.value;
		if (added.includes(this.name)) return true;
		// An earlier call, whose answer was lost, has written the very same entries: the row, or into the row of another writer.
		const isRepeated = entries.length > 0 && added.length === 0;
		if (isRepeated && (await this.size()) === entries.length + 1) {
			// A call of the same words may have taken the entries out of the row of another writer just now.
			if ((await this.which(entries)).length === entries.length) return true;
		}
		// n8n has found the row of another writer, and added these entries to it.
		const own = isRepeated ? entries.slice(0, 1) : added;
		if (own.length > 0) await settled(this.remove(own));
		return isRepeated ? undefined : false;
	}

	/** Which of these entries the row has. n8n only tells by adding the others, which are taken out again. */
	async which(entries: readonly string[]): Promise<string[]> {
		if (entries.length === 0 || (await this.count()) === 0) return [];
		const { processed, new: added } = await this.record([...entries]);
		if (added.length > 0) await this.remove(added);
		return entries.filter((entry) => processed.includes(entry));
	}

	/**
	 * Whether an entry of `insert` made the row. n8n tells that only by taking the entry out, which is then written again: to
	 * add the entry of somebody else would make that one the writer, if the process is killed.
	 */
	async isOf(entry: string): Promise<boolean> {
		await this.remove([entry]);
		if ((await this.size()) > 1) return false;
		await this.record([entry]);
		return true;
	}

	async clear(): Promise<void> {
		// A row that all names share has entries of others.
		if ((await this.size()) === 0) return;
		await this.named(
			async (helpers) => await helpers.clearAllProcessedItems('node', { mode: 'entries' }),
			undefined,
		);
	}

	private async count(): Promise<number> {
		return await this.named(
			async (helpers) => await helpers.getProcessedDataCount('node', { mode: 'entries' }),
			0,
		);
	}

	private async remove(entries: DeduplicationItemTypes[]): Promise<void> {
		await this.named(
			async (helpers) => await helpers.removeProcessed(entries, 'node', OPTIONS),
			undefined,
		);
	}

	private async record(entries: string[]) {
		return await this.named(
			async (helpers) => await helpers.checkProcessedAndRecord(entries, 'node', OPTIONS),
			{ new: entries, processed: [] },
		);
	}

	/**
	 * Calls a helper of n8n while the node's id is the name of the row.
	 *
	 * @param ifNone the answer where n8n's engine runs without a store: nothing outlives the process there
	 */
	private async named<T>(
		call: (helpers: IExecuteFunctions['helpers']) => Promise<T>,
		ifNone: T,
	): Promise<T> {
		const { helpers } = this.context;
		if (typeof helpers.checkProcessedAndRecord !== 'function') return ifNone;
		// When the execution went to sleep, n8n's stack has a copy.
		const node = internalsOf(this.context).node ?? runningNode(this.context);
		const { id } = node;
		const rowId = `${this.nodeId}:${digest(this.name)}`;
		let isOwnRow = false;
		const setId = (property: PropertyDescriptor) =>
			Object.defineProperty(node, 'id', { configurable: true, enumerable: true, ...property });
		setId({
			get: () => {
				isOwnRow = true;
				return rowId;
			},
		});
		const called = settled(call(helpers));
		setId({ writable: true, value: id });
		const answer = await called;
		if ('error' in answer) {
			if (isWithoutStore(answer.error)) return ifNone;
			throw answer.error;
		}
		this.isOwnRow = isOwnRow;
		if (!isOwnRow && !fallbackWasLogged) {
			fallbackWasLogged = true;
			this.context.logger.warn(
				'Media Generation Trigger: this n8n keeps its finished tasks in one row, so that in queue mode a task may start the workflow twice',
			);
		}
		return answer.value;
	}
}

/** Whether n8n's engine was given no store. Every process of n8n gives it one; a program around the engine may not. */
const isWithoutStore = (error: unknown): boolean =>
	isRecord(error) && error.code === 'ERR_ASSERTION';

/** Whether the database refused a second row of the same name: PostgreSQL by a code, SQLite in words. */
const isSecondRow = (error: unknown): boolean =>
	error instanceof Error &&
	(('code' in error && error.code === '23505') ||
		/UNIQUE constraint failed|duplicate key value/i.test(error.message));

/** n8n's database answers such a question within milliseconds. */
const ANSWER_MS = 2_000;

/**
 * Whether n8n's database answers at present. An execution that n8n cannot store when it goes to sleep is never woken: it
 * stays *running* in the list of executions (n8n 2.41). So a run asks before it sleeps.
 */
export async function storeAnswers(context: IExecuteFunctions): Promise<boolean> {
	if (executionIdOf(context) === undefined || !context.getWorkflow().id) return true;
	const counted = settled(new LedgerRow(context, 'before a sleep').size());
	const answer = await withTimeLimit(counted, ANSWER_MS);
	return answer !== undefined && 'value' in answer;
}

/**
 * Asks n8n's store until it answers.
 *
 * @param question itself asks for a while
 * @throws Stopped if the execution was stopped
 */
export async function askUntilAnswered<T>(question: () => Promise<T>): Promise<T> {
	for (;;) {
		const asked = await settled(question());
		if ('value' in asked) return asked.value;
		if (asked.error instanceof Stopped) throw asked.error;
		await clock.sleep(ANSWER_MS, undefined);
	}
}
