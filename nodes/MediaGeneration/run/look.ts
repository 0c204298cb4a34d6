import type { IExecuteFunctions } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import { isToCreate } from '../create/taskEntry';
import { connect } from '../service/connect';
import { messageOf } from '../shared/itemError';
import { settled } from '../shared/promises';

/**
 * Looks whether a run that was woken has anything to do: something is to be created or downloaded, a task's time is up, or
 * a task has ended. The look plans nothing and reads one task, another one each time.
 *
 * @returns whether the run needs a whole turn
 */
export async function hasNews(context: IExecuteFunctions, journal: Journal): Promise<boolean> {
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
	if (isDue || now >= journal.sleepRule.limitAt) return true;
	const looked = waiting[journal.sleeps % waiting.length];
	if (looked?.taskId === undefined) return true;
	const { taskId } = looked;
	const read = await settled(async () => await (await connect(context)).client.readTask(taskId));
	looked.trouble = 'error' in read ? messageOf(read.error) : undefined;
	if ('error' in read) return false;
	looked.task = read.value;
	return read.value.state !== 'PENDING';
}
