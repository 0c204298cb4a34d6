import type { IExecuteFunctions } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import { isToCreate } from '../create/taskEntry';
import { connect, type Connection } from '../service/connect';
import { ServiceError } from '../service/serviceError';
import { hasEnded } from '../service/taskRecord';
import { Stopped } from '../shared/clock';
import { messageOf } from '../shared/itemError';
import { settled } from '../shared/promises';
import { BEFORE_LIMIT_MS } from '../wait/nextWake';

/** What a look has found. */
interface Look {
	/** Whether the run needs a whole turn. */
	isNews: boolean;
	/** The service, if the look has connected with it: to look up a credential takes n8n a while. */
	connection?: Connection | undefined;
}

/**
 * Looks whether a run that was woken has anything to do: something is to be created or downloaded, a task's time is up, or
 * its task has ended. The look plans nothing. A run that waits for several tasks reads them all in a whole turn.
 *
 * @throws Stopped if the execution was stopped
 */
export async function look(context: IExecuteFunctions, journal: Journal): Promise<Look> {
	const now = Date.now();
	const waiting = journal.entries().filter(({ end }) => end === undefined);
	const isDue = waiting.some(
		(entry) =>
			isToCreate(entry) ||
			entry.state === 'sent' ||
			entry.task?.state === 'SUCCESS' ||
			entry.overdueAt !== undefined ||
			(entry.until ?? 0) <= now,
	);
	if (isDue || now >= journal.sleepRule.limitAt - BEFORE_LIMIT_MS) return { isNews: true };
	const [looked] = waiting;
	if (waiting.length > 1 || looked?.taskId === undefined) return { isNews: true };
	const { taskId } = looked;
	let connection: Connection | undefined;
	const read = await settled(async () => {
		connection = await connect(context);
		return await connection.client.readTask(taskId);
	});
	looked.trouble = 'error' in read ? messageOf(read.error) : undefined;
	if ('error' in read) {
		// It is final for a task that the run has not created.
		const { error } = read;
		if (error instanceof Stopped) throw error;
		const isFinal = error instanceof ServiceError && error.isNoSuchTask;
		return { isNews: isFinal && looked.sent === undefined, connection };
	}
	const task = read.value;
	Object.assign(looked, { task, readAt: Date.now() });
	if (task.state === 'SUCCESS' && !hasEnded(task)) looked.linklessAt ??= Date.now();
	return { isNews: task.state !== 'PENDING', connection };
}
