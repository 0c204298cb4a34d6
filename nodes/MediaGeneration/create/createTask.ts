import { type IDataObject, type IExecuteFunctions, UserError } from 'n8n-workflow';

import { executionIdOf, lookForStop } from '../n8n/internals';
import { echo, sentInput } from '../plan/inputFile';
import { type CreatePlan, referenceOf } from '../plan/planTypes';
import { MAY_BE_BILLED, NOT_KNOWN } from '../report/taskErrors';
import type { ServiceClient } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { clock, graceAfterStop, settled, Stopped, withTimeLimit } from '../shared/clock';
import { errorOf, ItemError, storedError, writeLog } from '../shared/itemError';
import type { Ticket } from './accountLimits';
import type { CreateQueue } from './createQueue';
import type { Journal } from './journal';
import type { TaskEntry } from './taskEntry';

/**
 * Whether a task may have been created, although the create failed. A create may be sent again only if there is
 * certainly none: otherwise both creates may be paid for.
 */
const isUnknown = (error: unknown): boolean =>
	// n8n throws a UserError if n8n itself refuses to send the request.
	error instanceof ServiceError ? error.taken === 'unknown' : !(error instanceof UserError);

/** Creates the tasks of one run. An order is sent once, unless the service certainly did not take the task. */
export class TaskCreator {
	private readonly graceIsOver: Promise<'stopped'>;
	private readonly isStopStored: () => Promise<boolean>;

	/** @param signal aborted when the execution was stopped */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly client: ServiceClient,
		private readonly queue: CreateQueue,
		private readonly journal: Journal,
		private readonly signal: AbortSignal,
	) {
		this.graceIsOver = graceAfterStop(this.signal);
		this.isStopStored = lookForStop(context);
		queue.hasCreated = journal.hasCreated;
	}

	/**
	 * Creates the task of an entry. The task is in the journal before this returns.
	 *
	 * @param when.until when it is too late to send, milliseconds of the clock
	 * @param when.deadline when nobody waits for the answer any more, milliseconds of the clock. An answer that comes later is
	 *   written down, too.
	 * @param when.isInWindow whether this turn may send the order; otherwise it only ends with the others if the service takes
	 *   nothing for too long
	 * @returns whether there is a task, counted as unfinished by the account's limits; false if the run orders nothing more in
	 *   this turn, or if it is too late
	 * @throws ItemError if there is no task, or nobody knows whether there is a task
	 * @throws Stopped if the execution was stopped
	 * @see docs/service.openapi.yaml, section 4.1
	 */
	async create(
		entry: TaskEntry,
		plan: CreatePlan,
		{ until, deadline, isInWindow }: { until: number; deadline: number; isInWindow: boolean },
	): Promise<boolean> {
		const { patienceMs, timeoutMs } = plan;
		let wasSent = false;
		for (let isFirst = false; ; isFirst = true) {
			const lastAt = Math.min(until, deadline);
			const { refused } = entry;
			const order = { patienceMs, timeoutMs, until: lastAt, refused, isFirst, isInWindow };
			const entered = await settled(this.queue.enter(order));
			if ('error' in entered) throw wasSent ? entered.error : whyNot(entry, entered.error);
			const ticket = entered.value;
			if (ticket === undefined) return false;
			const sent = await settled(this.sendOnce(entry, plan, until, deadline));
			if ('value' in sent) {
				if (sent.value) {
					this.queue.accepted(ticket);
					return true;
				}
				this.queue.ended();
				continue;
			}
			const { error } = sent;
			if (error instanceof Stopped) throw error;
			const failure = this.failureOf(entry, plan, ticket, error);
			if (failure !== undefined) throw failure;
			wasSent ||= error instanceof ServiceError && error.isToSendAgain;
		}
	}

	/** Tells the queue why there is no task. @returns the error of the item; undefined if its order is sent again */
	private failureOf(entry: TaskEntry, plan: CreatePlan, ticket: Ticket, error: unknown): unknown {
		const { queue } = this;
		if (!(error instanceof ServiceError)) {
			queue.failed();
			return error;
		}
		if (error.isToSendAgain) {
			queue.refused(ticket, error);
			return undefined;
		}
		if (isUnknown(error)) {
			queue.doubtful(ticket, error);
			return unknown(plan, error);
		}
		if (!queue.turnedDown(ticket, error, entry.refused)) return error;
		entry.refused ??= { at: clock.now(), error: storedError(ItemError.from(error)) };
		return undefined;
	}

	/**
	 * Sends one request. The journal has the entry before the request leaves, and its task when the answer is there. If the
	 * execution is stopped, or the deadline is over, the request goes on, so that its answer is written down whenever it comes.
	 *
	 * @returns whether there is a task; false if nothing was sent: another item has ended the queue, the service has asked for
	 *   a pause, the turn is over, or it is too late
	 * @throws Stopped if the execution was stopped; ServiceError if the order was sent; any other error if it cannot be sent
	 */
	private async sendOnce(
		entry: TaskEntry,
		plan: CreatePlan,
		until: number,
		deadline: number,
	): Promise<boolean> {
		const { queue, signal } = this;
		const input = await sentInput(this.context, plan);
		if (await this.isStopStored()) {
			queue.close();
			throw new Stopped();
		}
		if (queue.isShut || clock.now() >= Math.min(until, deadline)) return false;
		if (signal.aborted) throw new Stopped();
		this.journal.sending(entry, plan.estimatedCostUsd);
		const request = settled(this.request(entry, plan, input, deadline));
		const end = Promise.race([request, this.graceIsOver]);
		const sent = await withTimeLimit(end, deadline - clock.now());
		if (sent === 'stopped') throw new Stopped();
		if (sent === undefined) {
			throw new ServiceError('noAnswer', 'The service did not answer in time', {
				description: 'If an answer still comes, the task id stands in the log of n8n.',
			});
		}
		if ('error' in sent) throw sent.error;
		return true;
	}

	private async request(
		entry: TaskEntry,
		plan: CreatePlan,
		input: IDataObject,
		deadline: number,
	): Promise<void> {
		const { model, webhookUrl } = plan;
		const created = await settled(this.client.createTask({ model, input, webhookUrl }));
		const isLate = clock.now() >= deadline;
		if ('value' in created) {
			const sent = { ...echo(plan), ...referenceOf(plan) };
			this.journal.created(entry, { ...created.value, sent });
			// n8n stores the journal when the node has ended. If the process is killed, only the log is left.
			this.log(`created task ${created.value.taskId}`, plan, isLate);
			return;
		}
		const { error } = created;
		if (!isUnknown(error)) this.journal.forget(entry);
		if (isUnknown(error) || this.signal.aborted || isLate) {
			const outcome = isUnknown(error)
				? 'sent, and it is not known whether a task was created'
				: 'created no task';
			// The answer may name the task in a field that is not searched for an id.
			const { message, description = '' } = ItemError.from(error);
			this.log(`${outcome}: ${message}. ${description}`, plan, isLate);
		}
		throw error;
	}

	private log(text: string, { itemIndex }: CreatePlan, isLate: boolean): void {
		const { context } = this;
		const line = `${text} (execution ${executionIdOf(context)}, item ${itemIndex + 1})`;
		if (this.signal.aborted) writeLog(context, 'warn', `${line}, after the execution was stopped`);
		else if (isLate) writeLog(context, 'warn', `${line}, after the call had ended`);
		else writeLog(context, 'info', line);
	}
}

/** The create is never sent again: if the service took the first one, the second would be paid for, too. */
function unknown(item: CreatePlan, cause: Error): ItemError {
	const message = `${NOT_KNOWN}. ${cause.message}`;
	return new ItemError(message, { ...ItemError.because(cause, MAY_BE_BILLED), task: echo(item) });
}

/**
 * Why an order is not sent. The message says so, since an item that leaves does not show the description; an item that was
 * refused has its own refusal.
 */
export function whyNot({ refused }: TaskEntry, error: unknown): unknown {
	if (!(error instanceof ItemError)) return error;
	return refused
		? errorOf(refused.error)
		: new ItemError(`This item was not sent. ${error.message}`, error);
}
