import { type IDataObject, type IExecuteFunctions, UserError } from 'n8n-workflow';

import { executionIdOf, stopSignal } from '../n8n/internals';
import { lookForStop } from '../n8n/stops';
import type { TurnRow } from '../n8n/turnRow';
import { echo, sentInput } from '../plan/inputFile';
import { type CreatePlan, referenceOf } from '../plan/planTypes';
import { NOT_KNOWN } from '../report/taskErrors';
import type { ServiceClient } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { clock, graceAfterStop, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import type { CreateQueue, TurnOfQueue } from './createQueue';
import type { Journal } from './journal';
import { placeOf, type TaskEntry } from './taskEntry';

/**
 * Whether a task may have been created, although the create failed. A create may be sent again only if there is
 * certainly none: otherwise both creates may be paid for.
 */
const isUnknown = (error: unknown): boolean =>
	// n8n throws a UserError if n8n itself refuses to send the request.
	error instanceof ServiceError ? error.taken === 'unknown' : !(error instanceof UserError);

/** What one order came to. */
type Sent =
	/** The service took the task. */
	| { outcome: 'accepted' }
	/** Another item has ended the queue, the service has asked for a pause, the turn is over, or it is too late. */
	| { outcome: 'notSent' }
	/** The service certainly did not take the task, and may take it later. */
	| { outcome: 'refused'; error: ServiceError }
	/** Nobody knows whether the service took the task. */
	| { outcome: 'unknown'; error: ServiceError }
	/** There is no task of this item. */
	| { outcome: 'failed'; error: unknown };

const LATE = 'The service did not answer in time';
const LATE_HINT = {
	description: 'If an answer still comes, the task id stands in the log of n8n.',
};

/** Creates the tasks of one run. An order is sent once, unless the service certainly did not take the task. */
export class TaskCreator {
	private readonly refusals = new RefusalsInARow();

	private readonly graceIsOver: Promise<undefined>;
	private readonly isStopStored: () => Promise<boolean>;

	/**
	 * @param onFailure called when an item fails, before the next order is admitted
	 * @param signal aborted when the execution was stopped
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly client: ServiceClient,
		private readonly queue: CreateQueue,
		private readonly journal: Journal,
		private readonly row: Pick<TurnRow, 'note'>,
		private readonly turn: TurnOfQueue,
		private readonly onFailure: () => void,
		private readonly signal = stopSignal(context),
	) {
		this.graceIsOver = graceAfterStop(this.signal);
		this.isStopStored = lookForStop(context);
		queue.hasCreated = journal.taskIds().length > 0;
	}

	/**
	 * Creates the task of an entry. The task is in the journal before this returns.
	 *
	 * @param until when it is too late to send, milliseconds of the clock
	 * @param deadline when nobody waits for the answer any more, milliseconds of the clock. An answer that comes later is
	 *   written down, too.
	 * @returns whether there is a task, counted as unfinished by the account's limits; false if the run orders nothing more in
	 *   this turn, or if it is too late
	 * @throws ItemError if there is no task, or nobody knows whether there is a task
	 * @throws Stopped if the execution was stopped
	 * @see docs/service.md, section 4.1
	 */
	async create(
		entry: TaskEntry,
		plan: CreatePlan,
		until = Infinity,
		deadline = Infinity,
	): Promise<boolean> {
		// While a task of this run is unfinished, the run waits for its end.
		const patience = () =>
			Math.max(plan.patienceMs, this.queue.limits.unfinished > 0 ? plan.timeoutMs : 0);
		let refusals = 0;
		for (let tries = 0; ; tries++) {
			const lastAt = Math.min(until, deadline);
			const entered = await settled(this.queue.enter(patience, lastAt, tries > 0));
			if ('error' in entered) throw refusals > 0 ? entered.error : notSent(entered.error);
			const ticket = entered.value;
			if (ticket === undefined) return false;
			const sent = await this.sendOnce(entry, plan, until, deadline);
			switch (sent.outcome) {
				case 'accepted':
					this.refusals.reset();
					this.queue.accepted(ticket);
					return true;
				case 'notSent':
					this.queue.ended();
					break;
				case 'refused':
					refusals++;
					this.queue.refused(ticket, sent.error);
					break;
				case 'unknown':
					this.onFailure();
					this.queue.doubtful(ticket, sent.error);
					throw this.explain(plan, sent.error);
				case 'failed':
					this.onFailure();
					this.queue.ended();
					throw this.explain(plan, sent.error);
			}
		}
	}

	/**
	 * Sends one request. The journal and the row of the turn have the entry before the request leaves, and the journal has its
	 * task when the answer is there. If the execution is stopped, or the deadline is over, the request goes on, so that its
	 * answer is written down whenever it comes.
	 *
	 * @throws Stopped if the execution was stopped
	 */
	private async sendOnce(
		entry: TaskEntry,
		plan: CreatePlan,
		until: number,
		deadline: number,
	): Promise<Sent> {
		const input = await settled(sentInput(this.context, plan));
		if ('error' in input) return { outcome: 'failed', error: input.error };
		if (await this.isStopStored()) {
			this.queue.close();
			throw new Stopped();
		}
		const { turn, queue } = this;
		const isLate = () =>
			queue.isOver || queue.isPaused || turn.isOver || clock.now() >= Math.min(until, deadline);
		if (isLate()) return { outcome: 'notSent' };
		const noted = await settled(this.row.note(placeOf(entry)));
		if (this.signal?.aborted) throw new Stopped();
		// Without the note nobody would know of the order if n8n were killed.
		if ('error' in noted) turn.end();
		if ('error' in noted || isLate()) return { outcome: 'notSent' };
		turn.noteOrder();
		this.journal.sending(entry, plan.estimatedCostUsd);
		const answered = new AbortController();
		const late = deadline < Infinity ? [lateAt(deadline, answered.signal)] : [];
		const request = this.request(entry, plan, input.value, deadline);
		const ends = [settled(request), this.graceIsOver, ...late];
		const sent = await Promise.race(ends).finally(() => answered.abort());
		if (sent === undefined) throw new Stopped();
		if (sent === 'late')
			return { outcome: 'unknown', error: new ServiceError('noAnswer', LATE, LATE_HINT) };
		if ('value' in sent) return { outcome: 'accepted' };
		const { error } = sent;
		if (!(error instanceof ServiceError)) return { outcome: 'failed', error };
		if (error.isToSendAgain) return { outcome: 'refused', error };
		return { outcome: isUnknown(error) ? 'unknown' : 'failed', error };
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
		if (isUnknown(error) || this.signal?.aborted || isLate) {
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
		const { logger } = this.context;
		const where = `(execution ${executionIdOf(this.context)}, item ${itemIndex + 1})`;
		const line = `${this.context.getNode().name}: ${text} ${where}`;
		if (this.signal?.aborted) logger.warn(`${line}, after the execution was stopped`);
		else if (isLate) logger.warn(`${line}, after the call had ended`);
		else logger.info(line);
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

/** So many refusals in a row that are alike end a batch: they may concern one item each, or whatever is sent. */
const MOST_ALIKE = 5;

/** The same for refusals that concern the key or the address as a rule. */
const MOST_OF_ALL = 3;

/**
 * How many refusals in a row show that the service will take no item. Before the first task the key and the address are
 * in question. A task that was taken shows that both were right.
 */
function enough({ kind, meaning }: ServiceError, hasCreated: boolean): number {
	const { scope, mayBeItem } = meaning;
	// How large a request is concerns that request alone.
	if (kind === 'tooLarge') return Infinity;
	if (scope === 'account') return 1;
	const isOfItem = scope === 'item' || mayBeItem;
	if (hasCreated) return isOfItem ? Infinity : MOST_OF_ALL;
	if (scope === 'item') return MOST_ALIKE;
	return mayBeItem ? MOST_OF_ALL : 1;
}

/** The text of a refusal without the words that have a digit: ids and moments differ each time. */
const textOf = ({ message }: ServiceError): string =>
	message
		.split(/\s+/)
		.filter((word) => !/\d/.test(word))
		.join(' ');

/** Decides when refusals of creates end a batch. */
class RefusalsInARow {
	private last: ServiceError | undefined;
	private inARow = 0;

	/** A create was taken, or nobody knows whether it was taken. */
	reset(): void {
		this.last = undefined;
		this.inARow = 0;
	}

	/**
	 * A create was certainly not taken, and is not sent again.
	 *
	 * @param hasCreated whether the service has taken a task of this run
	 * @returns whether the service will take no item
	 */
	isOfAll(refusal: ServiceError, hasCreated: boolean): boolean {
		this.inARow = this.last !== undefined && this.isLike(refusal, this.last) ? this.inARow + 1 : 1;
		this.last = refusal;
		return this.inARow >= enough(refusal, hasCreated);
	}

	/** A refusal of the key is told by its status. Of the others the text decides, too. */
	private isLike(one: ServiceError, other: ServiceError): boolean {
		if (one.statusCode !== other.statusCode) return false;
		return one.meaning.scope !== 'item' || textOf(one) === textOf(other);
	}
}
