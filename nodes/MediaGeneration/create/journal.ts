import { createHash } from 'crypto';
import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { isRecord } from '../shared/json';
import type { CreatedTask } from '../service/client';
import type { CreatePlan } from '../plan/itemPlan';

/** The place in the node's context that n8n stores with the execution. */
const KEY = 'createdTasks';

/**
 * Where a task calls back, as the journal remembers it: a retry is a new execution with another address. A digest,
 * since the address itself carries a token.
 */
export function webhookDigest({ webhookUrl }: CreatePlan): string | undefined {
	if (webhookUrl === undefined) return undefined;
	return createHash('sha256').update(webhookUrl).digest('hex').slice(0, 16);
}

/** What is known of an item's create: the task, or only that it was sent. */
export type JournalEntry = (CreatedTask & { webhook: string | undefined }) | 'sent';

/**
 * What this node has created in this execution. It is kept with the execution, so that a second try, by *Retry On
 * Fail* or from the list of executions, takes up the tasks of the first and pays for none of them again.
 *
 * An entry belongs to a run of the node (there are many in a loop), an item, and the request as it was planned: a
 * prompt that was changed meanwhile is another task.
 */
export class Journal {
	private readonly entries: IDataObject;

	private readonly run: string;

	constructor(context: IExecuteFunctions) {
		const store: IDataObject = context.getContext('node');
		const stored = store[KEY];
		const entries: IDataObject = isRecord(stored) ? stored : {};
		store[KEY] = entries;
		this.entries = entries;
		this.run = `${String(context.getWorkflowDataProxy(0).$runIndex ?? 0)}:`;
	}

	find(item: CreatePlan): JournalEntry | undefined {
		const entry = this.entries[this.keyOf(item)];
		if (entry === 'sent') return entry;
		if (!isRecord(entry) || typeof entry.taskId !== 'string') return undefined;
		return {
			taskId: entry.taskId,
			record: isRecord(entry.record) ? entry.record : {},
			webhook: typeof entry.webhook === 'string' ? entry.webhook : undefined,
		};
	}

	/** The ids of all tasks that this run of the node has created, in this try and in earlier ones. */
	taskIds(): string[] {
		return Object.entries(this.entries).flatMap(([key, entry]) =>
			key.startsWith(this.run) && isRecord(entry) && typeof entry.taskId === 'string'
				? [entry.taskId]
				: [],
		);
	}

	/** To be written before the request leaves: if nothing more is heard of it, it may have been taken. */
	sending(item: CreatePlan): void {
		this.entries[this.keyOf(item)] = 'sent';
	}

	/** To be written the moment the id is known. */
	created(item: CreatePlan, { taskId, record }: CreatedTask): void {
		const webhook = webhookDigest(item);
		this.entries[this.keyOf(item)] = { taskId, record, ...(webhook !== undefined && { webhook }) };
	}

	/** The item certainly has no task, or one that failed and cost nothing: a second try may create it. */
	forget(item: CreatePlan): void {
		delete this.entries[this.keyOf(item)];
	}

	/** Forgets this run, which came to its end: n8n does not try it again. */
	close(): void {
		for (const key of Object.keys(this.entries)) {
			if (key.startsWith(this.run)) delete this.entries[key];
		}
	}

	private keyOf({ itemIndex, model, input, image, completion }: CreatePlan): string {
		// To be waited for or not is the same task: only a callback makes it another.
		const callback = completion === 'trigger' || completion === 'suspend' ? completion : null;
		const digest = createHash('sha256')
			.update(JSON.stringify([model, input, image ?? null, callback]))
			.digest('hex')
			.slice(0, 16);
		return `${this.run}${itemIndex}:${digest}`;
	}
}
