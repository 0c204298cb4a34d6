import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { echo, sentInput } from '../plan/inputFile';
import { type CreatePlan, referenceOf } from '../plan/planTypes';
import { NOT_KNOWN } from '../report/taskErrors';
import type { ServiceClient } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { clock, graceAfterStop, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import { storedStop } from '../n8n/storedStop';
import { notePause, pauseLeft } from './askedPause';
import type { Journal, SentTask } from './journal';
import type { CreateQueue } from './createQueue';
import { maySendAgain } from './maySendAgain';

/** If so many items are answered 403 before any task is taken, the key is refused. */
const MAX_FORBIDDEN = 3;

/** Creates the tasks of one run. A create is sent once, unless the service certainly did not take the task. */
export class TaskCreator {
	/** How many items were answered 403. */
	private forbidden = 0;

	private readonly signal: AbortSignal | undefined;
	private readonly graceIsOver: Promise<undefined>;
	private readonly isStopStored: () => Promise<boolean>;

	/** @param onFailure called when an item fails, before the next create is admitted */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly client: ServiceClient,
		private readonly queue: CreateQueue,
		private readonly journal: Journal,
		private readonly onFailure: () => void,
	) {
		this.signal = context.getExecutionCancelSignal();
		this.graceIsOver = graceAfterStop(this.signal);
		this.isStopStored = storedStop(context);
		queue.pause(pauseLeft(context));
		queue.hasCreated = journal.taskIds().length > 0;
	}

	/**
	 * Creates an item's task. The task is in the journal before this returns.
	 *
	 * @param until when it is too late, milliseconds of the clock
	 * @returns the task, counted as unfinished by the throttle; undefined if the run creates nothing more, or if it is too
	 *   late
	 * @throws ItemError if there is no task, or nobody knows whether there is a task
	 * @throws Stopped if the execution was stopped
	 * @see specification, section 4.1
	 */
	async create(item: CreatePlan, until = Infinity): Promise<SentTask | undefined> {
		if (this.journal.entryOf(item).state === 'sent')
			throw this.unknown(item, new Error('Its answer was lost in an earlier try'));
		// While a task of this run is unfinished, the run waits for its end.
		const patience = () =>
			Math.max(item.patienceMs, this.queue.throttle.unfinished > 0 ? item.timeoutMs : 0);
		for (;;) {
			const ticket = await this.queue.enter(patience, until);
			if (ticket === undefined) return undefined;
			const sent = await settled(this.send(item, until));
			if ('value' in sent) {
				if (sent.value) {
					this.queue.accepted(ticket);
					return sent.value;
				}
				this.queue.ended();
				continue;
			}
			const { error } = sent;
			const failed = maySendAgain(error);
			if (failed !== 'sendAgain' || !(error instanceof ServiceError)) {
				this.onFailure();
				const isDoubtful = failed === 'unknown' && error instanceof ServiceError;
				// Other creates may meet the same trouble.
				if (isDoubtful) this.queue.doubtful(ticket, error, patience());
				else this.queue.ended();
				throw this.explain(item, error);
			}
			notePause(this.context, error.retryAfterMs);
			if (this.queue.refused(ticket, error, patience())) throw error;
		}
	}

	/**
	 * Sends one request. The journal has an entry before the request leaves, and another when the answer is there. If the
	 * execution is stopped, the request goes on, so that its answer is stored whenever it comes.
	 *
	 * @returns undefined if nothing was sent, because meanwhile another item has ended the queue, or it is too late
	 */
	private async send(item: CreatePlan, until: number): Promise<SentTask | undefined> {
		const input = await sentInput(this.context, item);
		const isStopped = await this.isStopStored();
		if (isStopped) this.queue.close();
		if (isStopped || this.signal?.aborted) throw new Stopped();
		if (this.queue.isOver || clock.now() >= until) return undefined;
		const fields = { ...echo(item), ...referenceOf(item) };
		this.journal.sending(item);
		const sent = await Promise.race([this.request(item, input, fields), this.graceIsOver]);
		if (sent === undefined) throw new Stopped();
		return sent;
	}

	private async request(item: CreatePlan, input: IDataObject, fields: IDataObject) {
		const { model, webhookUrl, itemIndex } = item;
		const sent = await settled(this.client.createTask({ model, input, webhookUrl }));
		if ('value' in sent) {
			const task: SentTask = { ...sent.value, sent: fields };
			this.journal.created(item, task);
			// n8n stores the journal when the node has ended. If the process is killed, only the log is left.
			this.log(`created task ${task.taskId}`, itemIndex);
			return task;
		}
		const { error } = sent;
		const isUnknown = maySendAgain(error) === 'unknown';
		if (!isUnknown) this.journal.forget(item);
		if (isUnknown || this.signal?.aborted) {
			const outcome = isUnknown
				? 'sent, and it is not known whether a task was created'
				: 'created no task';
			// The answer may name the task in a field that is not searched for an id.
			const { message, description = '' } = ItemError.from(error);
			this.log(`${outcome}: ${message}. ${description}`, itemIndex);
		}
		throw error;
	}

	private log(text: string, itemIndex: number): void {
		const { logger } = this.context;
		const place = `(execution ${this.context.getExecutionId()}, item ${itemIndex + 1})`;
		const line = `${this.context.getNode().name}: ${text} ${place}`;
		if (this.signal?.aborted) logger.warn(`${line}, after the execution was stopped`);
		else logger.info(line);
	}

	private explain(item: CreatePlan, error: unknown): unknown {
		if (!(error instanceof ServiceError)) return error;
		if (this.isKeyRefused(error)) this.queue.close(error);
		else if (error.statusCode === 403 && this.queue.hasCreated) {
			// The key has created tasks, so this 403 is not about the key.
			return new ItemError(error.message, {
				description:
					'The service has accepted other items with this key, so the model or the prompt of this item may not be allowed. Change them, and run this item again.',
				statusCode: error.statusCode,
			});
		}
		return maySendAgain(error) === 'unknown' ? this.unknown(item, error) : error;
	}

	/** Whether the service will take no item: 401 concerns the key, and 403 may concern the prompt of one item. */
	private isKeyRefused({ kind, isForeign, statusCode }: ServiceError): boolean {
		if (kind !== 'unauthorized' || isForeign) return false;
		return statusCode === 401 || (!this.queue.hasCreated && ++this.forbidden >= MAX_FORBIDDEN);
	}

	/** The create is never sent again: if the service took the first one, the second would be paid for, too. */
	private unknown(item: CreatePlan, cause: Error): ItemError {
		const why =
			'The task may exist and may be billed once. It was not sent again, so that it is not paid for twice. Look at the tasks or the credits of your account before you run this item again.';
		const message = `${NOT_KNOWN}. ${cause.message}`;
		return new ItemError(message, { ...ItemError.because(cause, why), task: echo(item) });
	}
}
