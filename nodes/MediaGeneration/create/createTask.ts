import { type IExecuteFunctions, UserError } from 'n8n-workflow';

import type { CreatedTask, ServiceClient } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { attempt } from '../shared/attempt';
import { ItemError } from '../shared/itemError';
import type { AccountLimits } from './accountLimits';
import { sentInput } from './requestInput';
import type { Journal } from './journal';
import type { CreatePlan } from '../plan/itemPlan';

/** So often in a row a connection may fail before an item is given up. */
const MAX_UNREACHABLE = 4;

/**
 * Creates the tasks of one run: each at most once, unless the service certainly did not take it.
 */
export class TaskCreator {
	/** Set when the service refused the key: no further request can succeed. */
	private refusal: ServiceError | undefined;

	/**
	 * @param onFailure called when an item fails, before the next one can be let in
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly client: ServiceClient,
		private readonly account: AccountLimits,
		private readonly journal: Journal,
		private readonly onFailure: () => void,
	) {}

	/**
	 * Creates an item's task. It is in the journal before this returns.
	 *
	 * @returns the task, counted as unfinished by the account; undefined where the run creates nothing more
	 * @throws ItemError where there is none, or nobody knows whether there is one
	 * @throws Stopped where the execution was stopped
	 * @see specification, section 4.1
	 */
	async create(item: CreatePlan): Promise<CreatedTask | undefined> {
		if (this.journal.find(item) === 'sent') throw this.unknown(item, undefined);
		for (;;) {
			const ticket = await this.account.enter(item.timeoutMs);
			if (ticket === undefined) return undefined;
			if (this.refusal) {
				this.account.ended();
				throw notSent(this.refusal);
			}
			const sent = await attempt(async () => await this.send(item));
			if ('value' in sent) {
				this.account.accepted();
				return sent.value;
			}
			const { error } = sent;
			if (!(error instanceof ServiceError) || !error.certainlyNotTaken) {
				this.onFailure();
				this.account.ended();
				throw this.explain(item, error);
			}
			this.account.refused(ticket, error);
			if (this.isHopeless(error, item.timeoutMs)) throw error;
		}
	}

	/** Sends one request, and writes down before and after it what is known of the task. */
	private async send(item: CreatePlan): Promise<CreatedTask> {
		const { model, webhookUrl } = item;
		const input = await sentInput(this.context, item);
		this.journal.sending(item);
		const sent = await attempt(
			async () =>
				await this.client.createTask({
					model,
					input,
					...(webhookUrl !== undefined && { webhookUrl }),
				}),
		);
		if ('value' in sent) {
			this.journal.created(item, sent.value);
			this.log(item, sent.value);
			return sent.value;
		}
		const { error } = sent;
		// With a UserError n8n itself refuses to send anything.
		const isRefused =
			error instanceof ServiceError ? !mayHaveBeenTaken(error) : error instanceof UserError;
		if (isRefused) this.journal.forget(item);
		throw error;
	}

	/** n8n stores the journal when the node has ended: of a process that was killed only the log is left. */
	private log({ itemIndex }: CreatePlan, { taskId }: CreatedTask): void {
		const execution = this.context.getExecutionId();
		this.context.logger.info(
			`${this.context.getNode().name}: created task ${taskId} (execution ${execution}, item ${itemIndex})`,
		);
	}

	private explain(item: CreatePlan, error: unknown): unknown {
		if (!(error instanceof ServiceError)) return error;
		if (error.kind === 'unauthorized') this.refusal = error;
		return mayHaveBeenTaken(error) ? this.unknown(item, error) : error;
	}

	/** Never sent a second time: the first may have been taken, and would be paid for twice. */
	private unknown({ model, input }: CreatePlan, error: ServiceError | undefined): ItemError {
		const message = error?.message ?? 'Its answer was lost in an earlier try';
		return new ItemError(`It is not known whether the task was created. ${message}`, {
			description:
				`The task may exist and may be billed once. It was not sent again, so that it is not paid for twice. Look at the tasks or the credits of your account before you run this item again. ${error?.description ?? ''}`.trim(),
			statusCode: error?.statusCode,
			task: { model, input },
		});
	}

	/** Whether to send on is no use: the service lets nobody in, or cannot be reached at all. */
	private isHopeless(error: ServiceError, timeoutMs: number): boolean {
		if (error.kind === 'unreachable') return this.account.unreachable >= MAX_UNREACHABLE;
		return this.account.quietMs > timeoutMs;
	}
}

function notSent({ message, description = '', statusCode }: ServiceError): ItemError {
	return new ItemError(message, {
		description: `This item was not sent any more. ${description}`.trim(),
		statusCode,
	});
}

/** Whether a create without a good answer may all the same have made a task. */
function mayHaveBeenTaken({ kind, certainlyNotTaken }: ServiceError): boolean {
	return (
		(kind === 'noAnswer' ||
			kind === 'serviceDown' ||
			kind === 'unexpectedAnswer' ||
			kind === 'cancelled') &&
		!certainlyNotTaken
	);
}
