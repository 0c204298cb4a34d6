import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { isRecord, without } from '../shared/json';
import { NOT_KNOWN } from './taskErrors';

const NOT_FINISHED =
	"The task goes on at the service and is paid for once if it succeeds. Do not order it again. Give the user the taskId; the results can be read with it later, by a tool with the operation 'Get' or 'Wait'.";

const FAILED = 'A failed task is usually free. Change the prompt before you try again.';

const CHARGED =
	'The service says that it charged for it. Tell the user, and do not try again by yourself.';

const MAY_EXIST =
	'The task may exist and may be paid for once. Do not order it again: tell the user to look at the tasks or the credits of the account first.';

const DRY_RUN =
	'Nothing was ordered and nothing is paid for: this tool only says what a task would cost.';

/** An agent does not need these fields, which would fill its memory. */
const NOT_FOR_AGENTS = ['record', 'model', 'input'];

/** The item for an agent: the fields that it can use, and what to do next. */
export function toolAnswer({ json, ...item }: INodeExecutionData): INodeExecutionData {
	// On the error output `details` holds what is known of the task.
	const { details, ...left } = json;
	const answer = without({ ...(isRecord(details) && details), ...left }, ...NOT_FOR_AGENTS);
	const next = nextStep(answer);
	// The advice for people is not repeated to an agent that is told what to do next.
	return { ...item, json: next === undefined ? answer : { ...without(answer, 'advice'), next } };
}

function nextStep({ taskId, state, error, creditsConsumed, dryRun }: IDataObject) {
	if (dryRun === true) return DRY_RUN;
	if (taskId === undefined) return String(error).startsWith(NOT_KNOWN) ? MAY_EXIST : undefined;
	if (state === 'PENDING') return NOT_FINISHED;
	if (state !== 'FAILURE') return undefined;
	return Number(creditsConsumed) > 0 ? CHARGED : FAILED;
}
