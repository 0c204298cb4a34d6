import type { Patch } from './world/nodeSources';

/** A way in which the nodes could be wrong. */
export interface Mutant extends Patch {
	/** What is wrong with it. */
	name: string;
}

const N = 'nodes/MediaGeneration/';

/** Each must be found by the simulation. */
export const mutants: Mutant[] = [
	{
		name: 'the journal does not note that a create is sent',
		file: `${N}create/createTask.ts`,
		search: '\t\tthis.journal.sending(item);\n',
		replacement: '',
	},
	{
		name: 'the journal forgets a create whose answer was lost',
		file: `${N}create/createTask.ts`,
		search: 'if (!isUnknown) this.journal.forget(item);',
		replacement: 'this.journal.forget(item);',
	},
	{
		name: 'the log does not name a created task',
		file: `${N}create/createTask.ts`,
		search: '\t\t\tthis.log(`created task ${task.taskId}`, itemIndex);\n',
		replacement: '',
	},
	{
		name: 'a retry does not look into the journal',
		file: `${N}run/createItem.ts`,
		search: 'const earlier = run.journal.find(item);',
		replacement: 'const earlier = [run.journal.find(item)].find(() => false);',
	},
	{
		name: 'a retry of an execution of which n8n has kept nothing orders again',
		file: `${N}run/actionRun.ts`,
		search:
			'if (createsIn(plan.items).length > 0 && !plan.isDry) await refuseKilledRetry(context);',
		replacement: '',
	},
	{
		name: 'a create without an answer counts as not taken',
		file: `${N}create/createTask.ts`,
		search: "const isNotReached = kind === 'unreachable';",
		replacement: "const isNotReached = kind === 'unreachable' || kind === 'noAnswer';",
	},
	{
		name: 'any 503 counts as not taken',
		file: `${N}create/createTask.ts`,
		search: '(statusCode === 503 && retryAfterMs !== undefined)',
		replacement: 'statusCode === 503',
	},
	{
		name: 'the pause that the service asks for is forgotten',
		file: `${N}service/client.ts`,
		search: 'retryAfterMs: retryAfterMs(headers, Date.now()),',
		replacement: 'retryAfterMs: retryAfterMs(headers, Date.now()) === undefined ? undefined : 0,',
	},
	{
		name: 'keys and tokens are not cut out of what the service says',
		file: `${N}service/client.ts`,
		search: 'parsedJson(this.secrets.hideInRecord(body))',
		replacement: 'parsedJson(body)',
	},
	{
		name: 'the budget is read and not kept',
		file: `${N}plan/planRun.ts`,
		search: 'if (total > budget) {',
		replacement: 'if (total > budget * 1000) {',
	},
	{
		name: 'more tasks are in flight than the user allows',
		file: `${N}run/runContext.ts`,
		search: 'isBounded ? plan.maxInFlight : Infinity;',
		replacement: 'Infinity;',
	},
	{
		name: 'media hosts get the key',
		file: `${N}report/download.ts`,
		search: "\t\tencoding: 'stream',\n",
		replacement: "\t\tencoding: 'stream',\n\t\theaders: { Authorization: 'Bearer key' },\n",
	},
	{
		name: 'waits go by the wall clock',
		file: `${N}shared/clock.ts`,
		search: 'now: () => performance.now(),',
		replacement: 'now: () => Date.now(),',
	},
	{
		name: 'a task is read again before the interval is over',
		file: `${N}wait/pollTask.ts`,
		search: 'due = clock.now() + pollIntervalMs;',
		replacement: 'due = notBefore = clock.now() + 500;',
	},
	{
		name: 'a task that is not finished counts as finished at a check',
		file: `${N}suspend/checkForResults.ts`,
		search: "if (state === 'PENDING') return { ...item, record };",
		replacement: "if (state === 'PENDING') return { ...without(item, 'waits'), record };",
	},
	{
		name: 'the items of a suspended run come out in another order',
		file: `${N}suspend/suspendRun.ts`,
		search: 'items: items.map(',
		replacement: 'items: items.reverse().map(',
	},
	{
		name: 'what was finished before the suspension is lost',
		file: `${N}suspend/suspendRun.ts`,
		search: 'const [{ json, binary } = NOT_BEGUN] = result;',
		replacement: 'const { json, binary = result[0]?.binary } = NOT_BEGUN;',
	},
	{
		name: 'a run is suspended while it may still create a task',
		file: `${N}wait/pollTask.ts`,
		search: 'return this.open.size === 0 && ',
		replacement: 'return ',
	},
	{
		name: 'a run that n8n does not suspend waits for its tasks no more',
		file: `${N}run/actionRun.ts`,
		search: '\trun.suspendAfter.switchOff();\n',
		replacement: '\treturn false;\n',
	},
	{
		name: 'a suspended run is never given up',
		file: `${N}suspend/checkForResults.ts`,
		search: 'waits !== undefined && waits.until <= now;',
		replacement: 'waits !== undefined && waits.until * 2 <= now;',
	},
	{
		name: 'nobody makes up for a lost callback',
		file: `${N}suspend/missingCallbacks.ts`,
		search: 'if (deliveries.length === 0) return;',
		replacement: 'if (deliveries.length >= 0) return;',
	},
	{
		name: 'every item is linked to the first',
		file: `${N}report/taskItems.ts`,
		search: 'pairedItem: { item: itemIndex }',
		replacement: 'pairedItem: { item: itemIndex * 0 }',
	},
	{
		name: 'results come out at the place of another item',
		file: `${N}run/actionRun.ts`,
		search: 'run.results[index] = ended.value;',
		replacement: 'run.results[run.results.length - 1 - index] = ended.value;',
	},
	{
		name: 'a callback address has no token',
		file: `${N}callback/callbackToken.ts`,
		search: '\tsearchParams.set(TOKEN_PARAMETER, callbackToken(pathname, apiKey, carried));\n',
		replacement: '',
	},
	{
		name: 'the beginning of a token is enough',
		file: `${N}callback/callbackToken.ts`,
		search: 'return given.length === right.length && timingSafeEqual(given, right);',
		replacement:
			'return given.length <= right.length && timingSafeEqual(given, right.subarray(0, given.length));',
	},
	{
		name: 'a callback needs no token',
		file: `${N}callback/verifyCallback.ts`,
		search: "const path = isFree ? ''",
		replacement: "const path = isFree || token !== 0 ? ''",
	},
	{
		name: 'a callback starts the workflow before its task is finished',
		file: `${N}callback/trigger.ts`,
		search: "if (task.state === 'PENDING') return tryAgain('The task is not finished yet');",
		replacement: "if (task.state === 'PENDING') return task;",
	},
	{
		name: 'a task that could not be read once is held back for ever',
		file: `${N}callback/trigger.ts`,
		search: '\trecent.delete(key);\n',
		replacement: '',
	},
	{
		name: 'failed tasks start no workflow',
		file: `${N}callback/trigger.ts`,
		search: 'return events.includes(task.state) ? task : NOT_SELECTED;',
		replacement: "return task.state === 'SUCCESS' && events ? task : NOT_SELECTED;",
	},
	{
		name: "an event's own id is taken for the task's",
		file: `${N}service/taskRecord.ts`,
		search: '\t\ttaskId: [body, data, task],\n',
		replacement: '\t\tid: [body, data, task],\n\t\ttaskId: [body, data, task],\n',
	},
	{
		name: 'the ledger is not asked',
		file: `${N}callback/trigger.ts`,
		search: 'if (!isTest && !(await isToStart(context, task.taskId, json))) continue;',
		replacement: 'if (!isTest && !(await isToStart(context, task.taskId, json))) void 0;',
	},
	{
		name: 'who comes second to a row of the ledger starts, too',
		file: `${N}callback/startOnce.ts`,
		search: 'if (isSecondRow(recorded.error)) return false;',
		replacement: 'if (isSecondRow(recorded.error)) return true;',
	},
	{
		name: 'the next try of an execution does not go on with the task that it has begun',
		file: `${N}callback/startOnce.ts`,
		search: '\t\tlogStart(context, start);\n\t\treturn true;',
		replacement: '\t\treturn false;',
	},
	{
		name: 'a row that was written without an answer counts as that of another',
		file: `${N}callback/startOnce.ts`,
		search: "const asked = typeof note === 'number' ? note : 0;",
		replacement: 'const asked = 0;',
	},
	{
		name: 'a failed task is created anew at once',
		file: `${N}run/createItem.ts`,
		search: 'const FIRST_PAUSE_MS = 5_000;',
		replacement: 'const FIRST_PAUSE_MS = 0;',
	},
	{
		name: 'a failed task is created anew without end',
		file: `${N}run/createItem.ts`,
		search: 'count > retryFailed) return',
		replacement: 'retryFailed === 0) return',
	},
	{
		name: 'a pause that was asked for ends with the try',
		file: `${N}create/createTask.ts`,
		search: '\t\t\tnotePause(this.context, error.retryAfterMs);\n',
		replacement: '',
	},
	{
		name: 'an error of the execution that is retried counts as its own',
		file: `${N}suspend/checkExecution.ts`,
		search: 'if (error !== undefined && digest(error) !== earlierError)',
		replacement: 'if (error !== undefined)',
	},
];
