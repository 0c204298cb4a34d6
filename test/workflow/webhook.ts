import type { IDataObject, IWebhookResponseData, WorkflowExecuteMode } from 'n8n-workflow';

import { callbackToken } from '../../nodes/MediaGeneration/shared/addresses';
import { handleTriggerWebhook } from '../../nodes/MediaGeneration/callback/gate';
import { clock } from '../../nodes/MediaGeneration/shared/clock';
import {
	API_KEY,
	type Credential,
	SERVICE,
	type TestWorkflow,
	TRIGGER,
	TRIGGER_PATH,
	webhookContext,
} from './engine';
import { expressOf, FakeResponse } from './express';

export interface Callback {
	body?: unknown;
	token?: string | string[] | null;
	/** The rest of the query. */
	query?: IDataObject;
	/** The path of the request where it is not the public one. */
	path?: string;
	rawBody?: Buffer;
	headers?: Record<string, string>;
	parameters?: IDataObject;
	/** Sets triggers apart. */
	node?: string;
	apiKey?: string;
	baseUrl?: string;
	/** The whole credential, in place of the two. */
	credential?: Credential;
	mode?: WorkflowExecuteMode;
	/** Of the trigger's workflow. */
	settings?: TestWorkflow['settings'];
	/** Whether n8n cannot look the credential up. */
	isAway?: boolean;
	/** How long n8n takes to look the credential up, milliseconds. */
	lookUpMs?: number;
}

/** A callback that has arrived at the trigger. */
export interface Arrived {
	result: Promise<IWebhookResponseData>;
	response: FakeResponse;
	/** Looks the credential up. */
	lookUp: jest.SpyInstance;
}

/** Delivers a callback to a trigger as n8n hands it on. Unless said otherwise it has the right token. */
export function deliver({
	body = { taskId: 'task-1' },
	path = TRIGGER_PATH,
	apiKey = API_KEY,
	token = callbackToken(TRIGGER_PATH, apiKey),
	headers = {},
	query = {},
	parameters = {},
	node = 'trigger',
	baseUrl = SERVICE,
	credential = { baseUrl, apiKey },
	mode = 'webhook',
	rawBody,
	settings,
	isAway = false,
	lookUpMs = 0,
}: Callback = {}): Arrived {
	const response = new FakeResponse();
	const request = {
		path: `${path}?token=…`,
		query: { ...query, ...(token !== null && { token }) },
		body,
		headers,
		...(rawBody && { rawBody }),
	};
	const context = webhookContext(
		{ node: { ...TRIGGER, id: node, parameters }, credential, settings },
		expressOf(request, response),
		mode,
	);
	const lookUp = jest.spyOn(context, 'getCredentials');
	if (lookUpMs > 0) {
		lookUp.mockImplementation(async () => {
			await clock.sleep(lookUpMs, undefined);
			return { baseUrl, apiKey };
		});
	}
	if (isAway) lookUp.mockRejectedValue(new Error('The database is away'));
	return { result: handleTriggerWebhook(context), response, lookUp };
}

/** What a callback came to: the task that starts the workflow, or the answer it got. */
export async function outcome({ result, response }: Omit<Arrived, 'lookUp'>) {
	const { workflowData, noWebhookResponse } = await result;
	const [items] = workflowData ?? [];
	if (items) return { starts: items.map(({ json }) => json) };
	if (!noWebhookResponse) throw new Error('Neither an execution nor an answer');
	const { statusCode: status, body, headers } = response;
	return { status, body, retryAfter: headers['Retry-After'] };
}
