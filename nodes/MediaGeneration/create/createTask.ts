import { type IDataObject, type IExecuteFunctions, UserError } from 'n8n-workflow';

import { echo, sentInput } from '../plan/inputFile';
import { type CreatePlan, referenceOf } from '../plan/planTypes';
import { NOT_KNOWN } from '../report/taskErrors';
import type { ServiceClient } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { clock, graceAfterStop, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import { executionIdOf, stopSignal } from '../n8n/internals';
import { storedStop } from '../n8n/storedStop';
import { notePause, pauseLeft } from './askedPause';
import type { Journal } from './journal';
import { RefusalsInARow } from './refusals';
import type { SentTask } from './storedRun';
import type { CreateQueue } from './createQueue';

/**
 * Whether a task may have been created, although the create failed. A create may be sent again only if there is
 * certainly none: otherwise both creates may be paid for.
 */
const isUnknown = (error: unknown): boolean =>
	// n8n throws a UserError if n8n itself refuses to send the request.
	error instanceof ServiceError ? error.taken === 'unknown' : !(error instanceof UserError);

/** Creates the tasks of one run. A create is sent once, unless the service certainly did not take the task. */
export class TaskCreator {
	private readonly refusals = new RefusalsInARow();

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
		this.signal = stopSignal(context);
		this.graceIsOver = graceAfterStop(this.signal);
		this.isStopStored = storedStop(context);
		queue.pause(pauseLeft(context));
		queue.hasCreated = journal.taskIds().length > 0;
	}

	/**
	 * Creates an item's task. The task is in the journal before this returns.
	 *
	 * @param until when it is too late to send, milliseconds of the clock
	 * @param deadline when nobody waits for the answer any more, milliseconds of the clock. An answer that comes later is
	 *   written down, too.
	 * @returns the task, counted as unfinished by the throttle; undefined if the run creates nothing more, or if it is too
	 *   late
	 * @throws ItemError if there is no task, or nobody knows whether there is a task
	 * @throws Stopped if the execution was stopped
	 * @see docs/service.md, section 4.1
	 */
	async create(
		item: CreatePlan,
		until = Infinity,
		deadline = Infinity,
	): Promise<SentTask | undefined> {
		if (this.journal.entryOf(item).state === 'sent')
			throw this.unknown(item, new Error('Its answer was lost in an earlier try'));
		// While a task of this run is unfinished, the run waits for its end.
		const patience = () =>
			Math.max(item.patienceMs, this.queue.throttle.unfinished > 0 ? item.timeoutMs : 0);
		for (let isSent = false; ;) {
			const entered = await settled(this.queue.enter(patience, Math.min(until, deadline)));
			if ('error' in entered) throw isSent ? entered.error : notSent(entered.error);
			const ticket = entered.value;
			if (ticket === undefined) return undefined;
			const sent = await settled(this.send(item, until, deadline));
			if ('value' in sent) {
				if (sent.value) {
					this.refusals.reset();
					this.queue.accepted(ticket);
					return sent.value;
				}
				this.queue.ended();
				continue;
			}
			const { error } = sent;
			if (error instanceof ServiceError && error.meaning.again) {
				notePause(this.context, error.retryAfterMs);
			}
			if (!(error instanceof ServiceError) || !error.isToSendAgain) {
				this.onFailure();
				// Other creates may meet the same trouble.
				if (error instanceof ServiceError && isUnknown(error))
					this.queue.doubtful(ticket, error, patience());
				else this.queue.ended();
				throw this.explain(item, error);
			}
			isSent = true;
			if (this.queue.refused(ticket, error, patience())) throw error;
		}
	}

	/**
	 * Sends one request. The journal has an entry before the request leaves, and another when the answer is there. If the
	 * execution is stopped, or the deadline is over, the request goes on, so that its answer is stored whenever it comes.
	 *
	 * @returns undefined if nothing was sent, because meanwhile another item has ended the queue, the service has asked for a
	 *   pause, or it is too late
	 */
	private async send(
		item: CreatePlan,
		until: number,
		deadline: number,
	): Promise<SentTask | undefined> {
		const input = await sentInput(this.context, item);
		const isStopped = await this.isStopStored();
		if (isStopped) this.queue.close();
		if (isStopped || this.signal?.aborted) throw new Stopped();
		const { isOver, isPaused } = this.queue;
		if (isOver || isPaused || clock.now() >= Math.min(until, deadline)) return undefined;
		const fields = { ...echo(item), ...referenceOf(item) };
		this.journal.sending(item);
		const request = this.request(item, input, fields, deadline);
		const answered = new AbortController();
		const late = deadline < Infinity ? [lateAt(deadline, answered.signal)] : [];
		const ends = [request, this.graceIsOver, ...late];
		const sent = await Promise.race(ends).finally(() => answered.abort());
		if (sent === undefined) throw new Stopped();
		if (sent !== 'late') return sent;
		throw new ServiceError('noAnswer', 'The service did not answer in time', {
			description: 'If an answer still comes, the task id stands in the log of n8n.',
		});
	}

	private async request(
		item: CreatePlan,
		input: IDataObject,
		fields: IDataObject,
		deadline: number,
	): Promise<SentTask> {
		const { model, webhookUrl } = item;
		const sent = await settled(this.client.createTask({ model, input, webhookUrl }));
		const isLate = clock.now() >= deadline;
		if ('value' in sent) {
			const task: SentTask = { ...sent.value, sent: fields };
			this.journal.created(item, task);
			// n8n stores the journal when the node has ended. If the process is killed, only the log is left.
			this.log(`created task ${task.taskId}`, item, isLate);
			return task;
		}
		const { error } = sent;
		if (!isUnknown(error)) this.journal.forget(item);
		if (isUnknown(error) || this.signal?.aborted || isLate) {
			const outcome = isUnknown(error)
				? 'sent, and it is not known whether a task was created'
				: 'created no task';
			// The answer may name the task in a field that is not searched for an id.
			const { message, description = '' } = ItemError.from(error);
			this.log(`${outcome}: ${message}. ${description}`, item, isLate);
		}
		throw error;
	}

	private log(text: string, { itemIndex }: CreatePlan, isLate: boolean): void {
		const { logger } = this.context;
		const where = `(execution ${executionIdOf(this.context)}, item ${itemIndex + 1})`;
		const line = `${this.context.getNode().name}: ${text} ${where}`;
		// A logger that fails must not fail a create that is paid for.
		void settled(async () => {
			if (this.signal?.aborted) logger.warn(`${line}, after the execution was stopped`);
			else if (isLate) logger.warn(`${line}, after the call had ended`);
			else logger.info(line);
		});
	}

	private explain(item: CreatePlan, error: unknown): unknown {
		if (!(error instanceof ServiceError)) return error;
		if (isUnknown(error)) {
			this.refusals.reset();
			return this.unknown(item, error);
		}
		if (this.refusals.isOfAll(error, this.queue.hasCreated)) this.queue.close(error);
		else this.queue.refusedOnce();
		return error;
	}

	/** The create is never sent again: if the service took the first one, the second would be paid for, too. */
	private unknown(item: CreatePlan, cause: Error): ItemError {
		const why =
			'The task may exist and may be billed once. It was not sent again, so that it is not paid for twice. Look at the tasks or the credits of your account before you run this item again.';
		const message = `${NOT_KNOWN}. ${cause.message}`;
		return new ItemError(message, { ...ItemError.because(cause, why), task: echo(item) });
	}
}

/** Resolves at a moment of the clock. */
const lateAt = async (moment: number, signal: AbortSignal): Promise<'late'> => {
	await clock.sleep(Math.max(0, moment - clock.now()), signal);
	return 'late';
};

/** The message says so, since an item that leaves does not show the description. */
export const notSent = (error: unknown): unknown =>
	error instanceof ItemError
		? new ItemError(`This item was not sent. ${error.message}`, error)
		: error;
