import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { nodeContext, stopSignal, webhookBase } from '../n8n/internals';
import { sleepAndRunAgain, takeInputBack } from '../n8n/runAgain';
import { MIN_READ_INTERVAL_MS } from '../service/client';
import { type Connection, connect } from '../service/connect';
import { ServiceError } from '../service/serviceError';
import { count } from '../shared/count';
import { clock, sleepUntil } from '../shared/clock';
import { ItemError, messageOf } from '../shared/itemError';
import { Semaphore, settled } from '../shared/promises';
import { ReadWindow } from '../wait/readWindow';
import { callbackAddress } from './callbackToken';
import {
	type AwaitedDelivery,
	type DeliveryCheck,
	nextTurnAt,
	NOT_FINISHED,
	noteOverdue,
	parseCheck,
	STORED,
	undelivered,
} from './deliveryCheck';
import { redeliver, TriggerBusy } from './redeliver';
import { hasStarted } from './ledger';

/** The key in the node's context. */
const KEY = 'callbackCheck';

/** No read begins later in a turn, milliseconds: a turn that is killed ends the check, until somebody retries it. */
const TURN_MS = 60_000;

/** So many tasks are under way in a turn at once. */
const MOST_VISITS = 20;

/** After so many answers in a row that say nothing about their task, the rest of a turn reads nothing: the service is down. */
const MOST_UNANSWERED = 3;

/**
 * One turn of the sub-execution that makes up for callbacks that do not come. It ends when the triggers have started for
 * all tasks; until then it sleeps between the turns.
 *
 * @returns what `execute` is to return
 * @throws NodeOperationError that names the tasks that have not started the workflow of their trigger in time; UserError if
 *   another version of this package stored the state
 * @see docs/service.md, section 6: keep polling as a fallback
 */
export async function checkCallbacks(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	takeInputBack(context);
	const kept = nodeContext(context);
	// At first the execution only goes to sleep: then n8n has stored it, and no kill ends it.
	if (kept[KEY] === undefined) {
		return await sleep(context, parseCheck(context.getInputData()[0]?.json));
	}
	const now = Date.now();
	const after = noteOverdue(await makeUpFor(context, parseCheck(kept[KEY])), now);
	if (after.deliveries.length === 0) return [[{ json: { delivered: true } }]];
	const failure = undelivered(after, now);
	if (failure === undefined) return await sleep(context, after);
	throw ItemError.from(failure).toNodeError(context.getNode(), undefined);
}

async function sleep(
	context: IExecuteFunctions,
	check: DeliveryCheck,
): Promise<INodeExecutionData[][]> {
	const left = check.deliveries.length;
	nodeContext(context)[KEY] = { ...check };
	const until = new Date(nextTurnAt(check, Date.now()));
	context.addExecutionHints({
		message: `Not started yet: the trigger's workflow for ${count(left, 'task')}. Next look at ${until.toISOString()}.`,
		location: 'outputPane',
	});
	const error = `The check for missing callbacks was passed over. Deliver its tasks with the operation Task → Send Result Again`;
	const taskIds = check.deliveries.map(({ taskId }) => taskId);
	return await sleepAndRunAgain(context, until, [{ json: { error, taskIds } }]);
}

/** @returns the state after the turn, with the tasks that are left */
async function makeUpFor(context: IExecuteFunctions, check: DeliveryCheck): Promise<DeliveryCheck> {
	const connected = await settled(connect(context));
	if ('error' in connected) {
		const why = messageOf(connected.error);
		context.logger.warn(`${context.getNode().name}: the tasks cannot be checked now. ${why}`);
		return { ...check, isSoon: false };
	}
	// The ledger needs no read.
	const missing = await withoutStarted(context, check.deliveries, connected.value);
	if (Date.now() < (check.notBefore ?? 0)) return { ...check, deliveries: missing, isSoon: false };
	return await new CheckTurn(context, connected.value).run({ ...check, deliveries: missing });
}

/** The tasks that have not started a trigger of this workflow, as far as its ledger knows. @throws the database's error */
async function withoutStarted(
	context: IExecuteFunctions,
	deliveries: readonly AwaitedDelivery[],
	{ baseUrl }: Connection,
): Promise<AwaitedDelivery[]> {
	const missing: AwaitedDelivery[] = [];
	for (const each of deliveries) {
		const { taskId, triggerId } = each;
		const isKnown =
			triggerId !== undefined && (await hasStarted(context, triggerId, { baseUrl, taskId }));
		if (!isKnown) missing.push(each);
	}
	return missing;
}

/** The reads and deliveries of a turn, which share a window. A delivery makes the trigger read the task, too. */
class CheckTurn {
	private readonly window: ReadWindow;
	private readonly giveUpAt = clock.now() + TURN_MS;
	private unanswered = 0;

	/** So that a task that was read is delivered before all others are read: the turn may end in between. */
	private readonly visits = new Semaphore(MOST_VISITS);

	/** The end of the pause that the service asked for, milliseconds since 1970. */
	private notBefore = 0;

	constructor(
		private readonly context: IExecuteFunctions,
		private readonly connection: Connection,
	) {
		this.window = new ReadWindow(stopSignal(context));
	}

	async run(check: DeliveryCheck): Promise<DeliveryCheck> {
		const untried: AwaitedDelivery[] = [];
		const left: AwaitedDelivery[] = [];
		let isSoon = false;
		await Promise.all(
			check.deliveries.map(async (each) => {
				const triedAt = Date.now();
				const last = await this.visits.run(async () => await this.visit(each));
				if (last === 'untried') untried.push(each);
				else if (last !== undefined) left.push({ ...each, last, triedAt });
				// What was delivered starts within a minute.
				isSoon ||= last === STORED && each.last !== STORED;
			}),
		);
		isSoon ||= untried.length > 0 && !this.isDown;
		const isPaused = this.notBefore > Date.now();
		return {
			...check,
			// The next turn begins with the tasks that this turn has not tried.
			deliveries: [...untried, ...left],
			notBefore: isPaused ? this.notBefore : undefined,
			isSoon,
		};
	}

	/** @returns undefined if the trigger has the task, `untried` if the turn is over; otherwise why the trigger has it not */
	private async visit(delivery: AwaitedDelivery): Promise<string | undefined> {
		const { context, connection } = this;
		const read = await this.inWindow(async () => await connection.client.readTask(delivery.taskId));
		if (read === 'untried') return read;
		if ('error' in read) return messageOf(read.error);
		const task = read.value;
		if (task.state === 'PENDING') return NOT_FINISHED;
		const { address, triggerId } = delivery;
		const told = await this.inWindow(async () => {
			// If somebody else has the former address of n8n now, the token must not go there.
			const url = address.startsWith('/') ? `${webhookBase(context)}${address}` : address;
			return await redeliver(context, task, callbackAddress(url, connection.apiKey));
		});
		if (told === 'untried') return told;
		if ('error' in told) return messageOf(told.error);
		if (told.value === undefined) return 'something else answers in place of the trigger';
		// The answer of a trigger only says that n8n has stored an execution. The ledger says whether its items have left.
		return triggerId === undefined || told.value === 'notSelected' ? undefined : STORED;
	}

	/** Does a piece of work when the window has room, and again if the service refuses it because of too many requests. */
	private async inWindow<T>(
		work: () => Promise<T>,
	): Promise<{ value: T } | { error: unknown } | 'untried'> {
		const signal = stopSignal(this.context);
		const tryOnce = async () =>
			this.isDown ? ('untried' as const) : { value: await refusable(work) };
		for (;;) {
			const done = await settled(this.window.read(tryOnce, this.giveUpAt));
			if ('value' in done) {
				if (typeof done.value === 'object') this.unanswered = 0;
				return done.value ?? 'untried';
			}
			const { error } = done;
			if (!(error instanceof ServiceError)) return done;
			if (!error.asksToSlowDown) {
				if (!error.isNotYet && !error.isNoSuchTask) this.unanswered++;
				return done;
			}
			this.notBefore = Math.max(this.notBefore, Date.now() + (error.retryAfterMs ?? 0));
			await sleepUntil(clock.now() + MIN_READ_INTERVAL_MS, signal);
		}
	}

	private get isDown(): boolean {
		return this.unanswered >= MOST_UNANSWERED;
	}
}

/** For a trigger the service has refused a read, too. @throws ServiceError in place of `TriggerBusy` */
async function refusable<T>(work: () => Promise<T>): Promise<T> {
	const done = await settled(work);
	if ('value' in done) return done.value;
	if (!(done.error instanceof TriggerBusy)) throw done.error;
	throw new ServiceError('tooManyRequests', done.error.message);
}
