import type { INodeExecutionData, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import { type OutputOptions, readOutputOptions } from '../report/outputOptions';
import type { ServiceClient } from '../service/client';
import type { FinishedTask } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { type Clock, systemClock } from '../shared/clock';
import { within } from '../shared/within';
import { type Answer, answer, DUPLICATE, tryAgain } from './answer';
import { checkCallback, explainRead } from './admission';
import { RecentTasks } from './recentCallbacks';
import { pendingTaskId, RESUME_PATH, resumedItems } from './suspension';

/** The answer must be out in 10 s. */
const LIMIT_MS = 8_000;

/** For n8n to store the resumed execution. */
const STORE_LIMIT_MS = 30_000;

/** The specification's least time between two reads of one task (section 4.2). */
const MIN_READ_INTERVAL_MS = 2_000;

/** Reads at once, where many tasks turn out to be finished whose callbacks were lost or came before a restart. */
const MAX_PARALLEL_READS = 25;

/** Tasks of all suspended executions together: of more, those of the oldest are found out again when needed. */
const MAX_REMEMBERED_TASKS = 20_000;

const WAITING: Answer = { status: 200, body: { accepted: true, resumed: false } };

const NOT_WAITING: Answer = {
	status: 404,
	body: { message: 'The execution does not wait for this task' },
};

/**
 * Work that callbacks share. Whoever comes joins a run that has not begun yet, and never one that is under way: it
 * may have missed what the callback tells.
 */
class Shared<T> {
	private last: Promise<T> | undefined;

	private next: Promise<T> | undefined;

	/** @param ready ends when the work may begin */
	async run(ready: () => Promise<void>, work: () => Promise<T>): Promise<T> {
		if (this.next !== undefined) return await this.next;
		const before = this.last;
		this.next = attempt(async () => await before).then(async () => {
			await ready();
			this.next = undefined;
			return await work();
		});
		this.last = this.next;
		return await this.next;
	}
}

/**
 * What this process knows of the tasks that a suspended execution waits for. All of it can be found out again by
 * reading the tasks, so nothing is lost with the process.
 */
class Suspension {
	readonly finished = new Map<string, FinishedTask>();

	/** When a task was last read while it was pending, milliseconds since 1970. */
	private readonly pendingAt = new Map<string, number>();

	private readonly reads = new Map<string, Shared<'finished' | 'pending'>>();

	private readonly looks = new Shared<boolean>();

	constructor(
		readonly taskIds: readonly string[],
		private readonly clock: Clock,
	) {}

	waitsFor(taskId: string): boolean {
		return this.taskIds.includes(taskId);
	}

	/** Reads a task, unless it is known to be finished. */
	async read(client: ServiceClient, taskId: string): Promise<'finished' | 'pending'> {
		if (this.finished.has(taskId)) return 'finished';
		const reads = this.reads.get(taskId) ?? new Shared();
		this.reads.set(taskId, reads);
		return await reads.run(
			async () => await this.mayBeRead(taskId),
			async () => {
				if (this.finished.has(taskId)) return 'finished';
				const task = await client.readTask(taskId, LIMIT_MS);
				if (task.state === 'PENDING') {
					this.pendingAt.set(taskId, this.clock.now());
					return 'pending';
				}
				this.finished.set(taskId, task);
				this.pendingAt.delete(taskId);
				this.reads.delete(taskId);
				return 'finished';
			},
		);
	}

	/**
	 * Whether all tasks are finished. One that is found pending is proof that they are not, so a look costs one read
	 * as a rule. Callbacks that come together share one, and it is never one that began before they came: of the
	 * callbacks that are not lost, whichever is last sees that all are finished.
	 */
	async isComplete(client: ServiceClient): Promise<boolean> {
		return await this.looks.run(
			async () => {
				const [first] = this.unfinished();
				if (first !== undefined) await this.mayBeRead(first);
			},
			async () => await this.look(client),
		);
	}

	private async look(client: ServiceClient): Promise<boolean> {
		for (let parallel = 1; ; parallel = Math.min(2 * parallel, MAX_PARALLEL_READS)) {
			const unknown = this.unfinished();
			if (unknown.length === 0) return true;
			const states = await Promise.all(
				unknown.slice(0, parallel).map(async (taskId) => await this.read(client, taskId)),
			);
			if (states.includes('pending')) return false;
		}
	}

	private unfinished(): string[] {
		return this.taskIds.filter((taskId) => !this.finished.has(taskId));
	}

	/** Ends when a task that was found pending may be read again. */
	private async mayBeRead(taskId: string): Promise<void> {
		const readAt = this.pendingAt.get(taskId);
		if (readAt === undefined || this.finished.has(taskId)) return;
		const left = readAt + MIN_READ_INTERVAL_MS - this.clock.now();
		if (left > 0) await this.clock.sleep(left, undefined);
	}
}

const suspensions = new Map<string, Suspension>();
const resuming = new RecentTasks();

/**
 * Decides about a callback that came to a suspended execution: it is resumed once, when all its tasks are finished,
 * whichever callback came last. Until then callbacks are answered and the execution stays as it is.
 *
 * @returns the finished items for n8n to go on with, or nothing where the callback was answered
 * @see specification, section 6 and its handler rules
 */
export async function admitResume(
	context: IWebhookFunctions,
	clock: Clock = systemClock,
): Promise<IWebhookResponseData> {
	const checked = await checkCallback(context, true, () => pathsOf(context));
	if ('status' in checked) return answer(context, checked);
	const { taskId, connection } = checked;
	// Once: n8n takes long to evaluate it, and answers every time with what it had stored when the callback came.
	let evaluated: INodeExecutionData[] | undefined;
	const storedItems = () => (evaluated ??= evaluateStored(context));
	const suspension = suspensionOf(context, taskId, storedItems, clock);
	if (suspension === undefined) {
		return answer(context, NOT_WAITING);
	}
	const look = async (): Promise<Answer | 'complete'> => {
		const read = await attempt(async () => await suspension.read(connection.client, taskId));
		if ('error' in read) return explainRead(read.error);
		if (read.value === 'pending') return tryAgain('The task is not finished yet');
		return (await suspension.isComplete(connection.client)) ? 'complete' : WAITING;
	};
	const looked = await attempt(async () => await within(look(), LIMIT_MS, clock));
	// Another task could not be read. This one's callback must come again, also where the service does not know that one.
	if ('error' in looked) return answer(context, tryAgain('A task could not be read'));
	if (looked.value === undefined) {
		return answer(context, tryAgain('The service did not answer in time'));
	}
	if (looked.value !== 'complete') return answer(context, looked.value);

	// What this process remembers may be of a suspension that another process has ended: the node may stand in a loop.
	const place = placeOf(context);
	const stored = storedItems();
	if (!isSame(suspension.taskIds, pendingTaskIds(stored))) {
		if (suspensions.get(place) === suspension) suspensions.delete(place);
		return answer(context, NOT_WAITING);
	}
	const key = `${place}/${suspension.taskIds[0]}`;
	for (;;) {
		if (resuming.has(key)) return answer(context, DUPLICATE);
		const earlier = resuming.earlier(key);
		if (earlier === undefined) break;
		if ((await within(earlier, STORE_LIMIT_MS, clock)) === undefined) {
			return answer(context, tryAgain('The execution is being resumed'));
		}
	}
	resuming.settleByAnswer(resuming.begin(key), context.getResponseObject(), () =>
		suspensions.delete(place),
	);
	return {
		workflowData: [resumedItems(stored, suspension.finished, outputOptions(context))],
		webhookResponse: { accepted: true, resumed: true },
	};
}

/** Where an execution is suspended; there is one suspension there at a time. */
function placeOf(context: IWebhookFunctions): string {
	return `${context.getExecutionId()}/${context.getNode().id}`;
}

/** @returns the present suspension, if it waits for the task */
function suspensionOf(
	context: IWebhookFunctions,
	taskId: string,
	storedItems: () => INodeExecutionData[],
	clock: Clock,
): Suspension | undefined {
	const place = placeOf(context);
	const known = suspensions.get(place);
	if (known?.waitsFor(taskId)) return known;
	// Not known yet, or the one before in a loop, which another process has resumed.
	const present = new Suspension(pendingTaskIds(storedItems()), clock);
	if (!present.waitsFor(taskId)) return undefined;
	suspensions.delete(place);
	suspensions.set(place, present);
	forgetOldest();
	return present;
}

function forgetOldest(): void {
	let tasks = 0;
	for (const { taskIds } of suspensions.values()) tasks += taskIds.length;
	for (const [place, { taskIds }] of suspensions) {
		if (tasks <= MAX_REMEMBERED_TASKS || suspensions.size === 1) return;
		suspensions.delete(place);
		tasks -= taskIds.length;
	}
}

/** The items that n8n has stored as the input of the waiting node. */
function evaluateStored(context: IWebhookFunctions): INodeExecutionData[] {
	return context.evaluateExpression('{{ $input.all() }}') as unknown as INodeExecutionData[];
}

function pendingTaskIds(stored: readonly INodeExecutionData[]): string[] {
	return stored.flatMap((item) => pendingTaskId(item) ?? []);
}

function isSame(taskIds: readonly string[], others: readonly string[]): boolean {
	return taskIds.length === others.length && taskIds.every((id, index) => id === others[index]);
}

/**
 * Reads the one option that counts here. The others may hold expressions that can only be evaluated where the node
 * runs, and none of them may keep finished tasks from leaving.
 */
function outputOptions(context: IWebhookFunctions): OutputOptions {
	let split: unknown;
	try {
		split = context.getNodeParameter('options.splitResults', false);
	} catch (error) {
		context.logger.warn(
			`${context.getNode().name}: the option 'Split Results' could not be read, so the results were not split. ${error instanceof Error ? error.message : ''}`,
		);
	}
	return readOutputOptions((name) => (name === 'splitResults' ? split : undefined));
}

/** The paths for which a token is good: the one of this request, and the public one behind a reverse proxy. */
function* pathsOf(context: IWebhookFunctions): Iterable<string> {
	yield context.getRequestObject().originalUrl.split('?', 1)[0] ?? '';
	const url = String(context.evaluateExpression('{{ $execution.resumeUrl }}') ?? '');
	if (URL.canParse(url)) yield `${new URL(url).pathname.replace(/\/+$/, '')}/${RESUME_PATH}`;
}
