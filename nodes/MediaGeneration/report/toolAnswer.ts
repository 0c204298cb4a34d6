import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { NOT_KNOWN } from './failedTask';

/** What an agent can use. The record, the model and the input would only fill its memory. */
const FIELDS = [
	'taskId',
	'state',
	'resultUrls',
	'resultUrl',
	'resultIndex',
	'creditsConsumed',
	'estimatedCostUsd',
	'dryRun',
	'delivered',
	'delivery',
	'failedTaskIds',
	'reference',
	'timedOut',
	'error',
];

const NOT_FINISHED =
	"The task goes on at the service and is paid for once if it succeeds. Do not order it again. Give the user the taskId; the results can be read with it later, by a tool with the operation 'Get' or 'Wait'.";

const FAILED = 'A failed task is usually free. Change the prompt before you try again.';

const CHARGED =
	'The service says that it charged for it. Tell the user, and do not try again by yourself.';

const MAY_EXIST =
	'The task may exist and may be paid for once. Do not order it again: tell the user to look at the tasks or the credits of the account first.';

const DRY_RUN =
	'Nothing was ordered and nothing is paid for: this tool only says what a task would cost.';

/** An item as an agent is to read it: the few fields that it can use, and what to do next. */
export function toolAnswer({ json: left, ...item }: INodeExecutionData): INodeExecutionData {
	// What leaves by an error output says there what is known of the task.
	const json: IDataObject = { ...(left.details as IDataObject | undefined), ...left };
	const answer: IDataObject = Object.fromEntries(
		FIELDS.filter((field) => field in json).map((field) => [field, json[field]]),
	);
	const next = nextStep(json);
	return { ...item, json: next === undefined ? answer : { ...answer, next } };
}

function nextStep({
	taskId,
	state,
	error,
	creditsConsumed,
	dryRun,
}: IDataObject): string | undefined {
	if (dryRun === true) return DRY_RUN;
	if (taskId === undefined) return String(error).startsWith(NOT_KNOWN) ? MAY_EXIST : undefined;
	if (state === 'PENDING') return NOT_FINISHED;
	if (state !== 'FAILURE') return undefined;
	return Number(creditsConsumed) > 0 ? CHARGED : FAILED;
}
