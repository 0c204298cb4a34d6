import type { INodeExecutionData, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import { type Answer, answer, tryAgain } from '../callback/answer';
import { checkCallback, warn } from '../callback/checkCallback';
import { attempt } from '../shared/attempt';
import { type Clock, systemClock } from '../shared/clock';
import { within } from '../shared/within';
import { type RunProgress, SuspendedRuns } from './runProgress';
import { wokenItem } from './checkState';
import { checkUrl, pendingTaskId, RESUME_PATH } from './suspension';
import { wakeCheck } from './wakeCheck';

/** The answer must be out in 10 s. */
const LIMIT_MS = 8_000;

const WAITING: Answer = { status: 200, body: { accepted: true, resumed: false } };

const NOT_WAITING: Answer = {
	status: 404,
	body: { message: 'The execution does not wait for this task' },
};

const suspendedRuns = new SuspendedRuns(systemClock);

/**
 * Decides about a callback that came to a suspended execution. Only the end of the sub-execution that checks its tasks
 * resumes the execution: when the last callback has come, the sub-execution is made to check at once.
 *
 * @returns nothing where the callback was answered; where it came to the sub-execution itself, the item it checks with
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
	const found = runs.find(place, taskId) ?? firstCallback(context, place, taskId, runs);
	if ('workflowData' in found) return found;
	if ('status' in found) return answer(context, found);
	const run = found;
	const isComplete = await attempt(
		async () => await within(run.isComplete(taskId, read), LIMIT_MS, clock),
	);
	if ('error' in isComplete) return answer(context, tryAgain('A task could not be read'));
	if (isComplete.value === undefined) {
		return answer(context, tryAgain('The service did not answer in time'));
	}
	if (!isComplete.value || run.checkUrl === '') return answer(context, WAITING);
	const isWoken = await wakeCheck(context, run.checkUrl, taskId, connection.apiKey);
	if (isWoken) runs.forget(place);
	else {
		context.logger.info(
			`${context.getNode().name}: n8n could not be told at its own address that the tasks are finished; the execution goes on at the next check`,
		);
	}
	return answer(context, { status: 200, body: { accepted: true, resumed: isWoken } });
}

/**
 * What is to be done with the first callback of a run that this process gets.
 *
 * @param place names the execution and the node
 * @returns the run; or the answer; or what n8n is to go on with
 */
function firstCallback(
	context: IWebhookFunctions,
	place: string,
	taskId: string,
	runs: SuspendedRuns,
): RunProgress | Answer | { workflowData: INodeExecutionData[][]; webhookResponse: unknown } {
	const stored = storedItems(context);
	const woken = wokenItem(stored);
	if (woken) return { workflowData: [[woken]], webhookResponse: { accepted: true } };
	const taskIds = stored.flatMap((item) => pendingTaskId(item) ?? []);
	const url = taskIds.includes(taskId) ? checkUrl(context) : undefined;
	return url === undefined ? NOT_WAITING : runs.begin(place, taskIds, url);
}

/** The items that n8n has stored as the input of the waiting node. */
function storedItems(context: IWebhookFunctions): INodeExecutionData[] {
	return context.evaluateExpression('{{ $input.all() }}') as unknown as INodeExecutionData[];
}

/** The paths for which a token is good: the one of this request, and the public one behind a reverse proxy. */
function* pathsOf(context: IWebhookFunctions): Iterable<string> {
	yield context.getRequestObject().originalUrl.split('?', 1)[0] ?? '';
	const url = String(context.evaluateExpression('{{ $execution.resumeUrl }}') ?? '');
	if (URL.canParse(url)) yield `${new URL(url).pathname.replace(/(?<!\/)\/+$/, '')}/${RESUME_PATH}`;
}
