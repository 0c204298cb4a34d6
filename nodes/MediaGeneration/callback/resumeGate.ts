import type { INodeExecutionData, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import type { TaskRecord } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { type Clock, systemClock } from '../shared/clock';
import { isRecord } from '../shared/json';
import { within } from '../shared/within';
import { checkCallback, explainRead, warn } from './checkCallback';
import { type Answer, answer, tryAgain } from './answer';
import { resumedItems } from './resumedItems';
import { type RunProgress, SuspendedRuns } from './runProgress';
import { pendingTaskId, RESUME_PATH, watcherUrl } from './suspension';
import { callWatcher } from './watcherCall';

/** The answer must be out in 10 s. */
const LIMIT_MS = 8_000;

const WAITING: Answer = { status: 200, body: { accepted: true, resumed: false } };

const NOT_WAITING: Answer = {
	status: 404,
	body: { message: 'The execution does not wait for this task' },
};

const suspendedRuns = new SuspendedRuns(systemClock);

/**
 * Decides about a callback that came to a suspended execution. Only the end of the sub-execution that looks for its
 * tasks resumes it: a callback makes that one look at once, when the others have come too.
 *
 * @returns nothing where the callback was answered; where it came to the sub-execution itself, what it looks with
 * @see specification, section 6 and its handler rules
 */
export async function admitResume(
	context: IWebhookFunctions,
	runs: SuspendedRuns = suspendedRuns,
	clock: Clock = systemClock,
): Promise<IWebhookResponseData> {
	const decided = await attempt(async () => await decide(context, runs, clock));
	if ('value' in decided) return decided.value;
	// Where `webhook` throws, n8n resumes the execution with one empty item, and drops all that the nodes before put out.
	warn(context, 'a callback waits', decided.error);
	return answer(context, tryAgain('n8n could not tell what the execution waits for'));
}

async function decide(
	context: IWebhookFunctions,
	runs: SuspendedRuns,
	clock: Clock,
): Promise<IWebhookResponseData> {
	const checked = await checkCallback(context, true, () => pathsOf(context));
	if ('status' in checked) return answer(context, checked);
	const { taskId, connection } = checked;
	const read = async (id: string) => await connection.client.readTask(id, LIMIT_MS);
	const place = `${context.getExecutionId()}/${context.getNode().id}`;
	const found =
		runs.find(place, taskId) ?? (await firstCallback(context, taskId, read, runs, clock));
	if ('workflowData' in found) return found;
	if ('status' in found) return answer(context, found);
	const run = found;
	const looked = await attempt(
		async () => await within(run.isComplete(taskId, read), LIMIT_MS, clock),
	);
	if ('error' in looked) return answer(context, tryAgain('A task could not be read'));
	if (looked.value === undefined) {
		return answer(context, tryAgain('The service did not answer in time'));
	}
	if (!looked.value || run.watcherUrl === '') return answer(context, WAITING);
	const isLooking = await callWatcher(context, run.watcherUrl, taskId, connection.apiKey);
	if (isLooking) runs.forget(place);
	else {
		context.logger.info(
			`${context.getNode().name}: n8n could not be told at its own address that the tasks are finished; the execution goes on at the next look`,
		);
	}
	return answer(context, { status: 200, body: { accepted: true, resumed: isLooking } });
}

/**
 * What is to be done with the first callback of a run that this process gets.
 *
 * @returns the run; or the answer; or what n8n is to go on with
 */
async function firstCallback(
	context: IWebhookFunctions,
	taskId: string,
	read: (taskId: string) => Promise<TaskRecord>,
	runs: SuspendedRuns,
	clock: Clock,
): Promise<
	RunProgress | Answer | { workflowData: INodeExecutionData[][]; webhookResponse: unknown }
> {
	const stored = storedItems(context);
	// The one item of the sub-execution itself; a user's item may have a field of that name, too.
	const watch = stored.length === 1 ? stored[0]?.json.watch : undefined;
	if (isRecord(watch)) {
		return {
			workflowData: [[{ json: { watch: { ...watch, woken: true } } }]],
			webhookResponse: { accepted: true },
		};
	}
	const taskIds = stored.flatMap((item) => pendingTaskId(item) ?? []);
	if (!taskIds.includes(taskId)) return NOT_WAITING;
	const noted = await attempt(async () => watcherUrl(context));
	if ('error' in noted) {
		warn(context, 'a callback waits', noted.error);
		return tryAgain('The execution was suspended by another version of this package');
	}
	const url = noted.value;
	const place = `${context.getExecutionId()}/${context.getNode().id}`;
	if (url !== undefined) return runs.begin(place, taskIds, url);
	const resumed = await attempt(
		async () => await within(resumedItems(stored, taskIds, read), LIMIT_MS, clock),
	);
	if ('error' in resumed) return explainRead(resumed.error);
	if (resumed.value === undefined) return tryAgain('The tasks are being read');
	if (resumed.value === 'pending') return WAITING;
	return { workflowData: [resumed.value], webhookResponse: { accepted: true, resumed: true } };
}

/** The items that n8n has stored as the input of the waiting node. */
function storedItems(context: IWebhookFunctions): INodeExecutionData[] {
	return context.evaluateExpression('{{ $input.all() }}') as unknown as INodeExecutionData[];
}

/** The paths for which a token is good: the one of this request, and the public one behind a reverse proxy. */
function* pathsOf(context: IWebhookFunctions): Iterable<string> {
	yield context.getRequestObject().originalUrl.split('?', 1)[0] ?? '';
	const url = String(context.evaluateExpression('{{ $execution.resumeUrl }}') ?? '');
	if (URL.canParse(url)) yield `${new URL(url).pathname.replace(/\/+$/, '')}/${RESUME_PATH}`;
}
