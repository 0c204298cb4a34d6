import type { IExecuteFunctions } from 'n8n-workflow';

import { findServiceMessage } from '../service/serviceMessage';
import type { FinishedTask } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { ItemError } from '../shared/itemError';

/** Longer than a trigger takes to answer whatever the service does (10 s), with room for a busy n8n. */
const TRIGGER_TIMEOUT_MS = 30_000;

/**
 * Sends a finished task's callback to a trigger once more, as the service would have. It carries the token and no
 * API key, and of the task only what the trigger reads: the id.
 *
 * @param address the trigger's URL with its token
 * @throws ItemError where the trigger does not answer 200
 * @see specification, section 6
 */
export async function redeliver(
	context: IExecuteFunctions,
	{ taskId, state }: FinishedTask,
	address: string,
): Promise<void> {
	const response = await attempt(
		async () =>
			(await context.helpers.httpRequest({
				method: 'POST',
				url: address,
				headers: { 'Content-Type': 'application/json' },
				body: { taskId, state },
				encoding: 'text',
				timeout: TRIGGER_TIMEOUT_MS,
				returnFullResponse: true,
				ignoreHttpStatusErrors: true,
				disableFollowRedirect: true,
				abortSignal: context.getExecutionCancelSignal(),
			})) as { statusCode: number; body: unknown },
	);
	const { origin, pathname } = new URL(address);
	if ('error' in response) {
		throw new ItemError(`The trigger cannot be reached: ${origin}${pathname}`, {
			description:
				"Check that the workflow of the trigger is published, and that this n8n can reach the address in 'Callback URL'.",
		});
	}
	const { statusCode, body } = response.value;
	if (statusCode === 200) return;
	const said = findServiceMessage(typeof body === 'string' ? parse(body) : body);
	throw new ItemError(
		`The trigger did not take the callback of task ${taskId} (HTTP ${statusCode})${said === undefined ? '' : `: ${said}`}`,
		{ description: explain(statusCode) },
	);
}

function parse(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}

function explain(statusCode: number): string {
	switch (statusCode) {
		case 401:
			return 'The trigger must use a credential with the same API key as this node.';
		case 404:
			return "Check that the workflow of the trigger is published, that 'Callback URL' is its production URL, and that its credential belongs to the account that created the task.";
		case 503:
			return 'The trigger could not read the task from the service at the moment. Try again later.';
		default:
			return "Check that 'Callback URL' is the production URL of a Media Generation Trigger.";
	}
}
