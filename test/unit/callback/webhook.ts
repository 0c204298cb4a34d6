import type { IDataObject, IWebhookResponseData, WorkflowExecuteMode } from 'n8n-workflow';
import { EventEmitter } from 'node:events';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import { admitCallback } from '../../../nodes/MediaGeneration/callback/admitCallback';
import {
	API_KEY,
	type Express,
	type TestWorkflow,
	TRIGGER,
	TRIGGER_PATH,
	webhookContext,
} from '../../workflow/engine';

export const SERVICE = 'https://api.example.com';

/** What stands in for express's response: what was answered, and the events of its connection. */
export class FakeResponse extends EventEmitter {
	statusCode = 200;

	body: unknown;

	readonly headers: Record<string, string> = {};

	writableFinished = false;

	destroyed = false;

	status(code: number): this {
		this.statusCode = code;
		return this;
	}

	set(name: string, value: string): this {
		this.headers[name] = value;
		return this;
	}

	json(body: unknown): this {
		this.body = body;
		this.end();
		return this;
	}

	/** n8n has stored the execution and answers, or could not and says so. */
	end(statusCode = this.statusCode): void {
		this.statusCode = statusCode;
		this.writableFinished = true;
		this.close();
	}

	/** The sender is gone. */
	close(): void {
		this.destroyed = true;
		this.emit('close');
	}
}

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
	mode?: WorkflowExecuteMode;
	/** Of the trigger's workflow. */
	settings?: TestWorkflow['settings'];
}

/** A callback that has arrived at the trigger. */
export interface Arrived {
	result: Promise<IWebhookResponseData>;
	response: FakeResponse;
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
	mode = 'webhook',
	rawBody,
	settings,
}: Callback = {}): Arrived {
	const response = new FakeResponse();
	const request = {
		body,
		headers,
		query: { ...query, ...(token !== null && { token }) },
		params: {},
		originalUrl: `${path}?token=…`,
		rawBody: rawBody ?? Buffer.from(JSON.stringify(body)),
	};
	const context = webhookContext(
		{ node: { ...TRIGGER, id: node, parameters }, credential: { baseUrl, apiKey }, settings },
		{
			httpRequest: request as unknown as Express['httpRequest'],
			httpResponse: response as unknown as Express['httpResponse'],
		},
		mode,
	);
	return { result: admitCallback(context), response };
}

/** What a callback came to: the task that starts the workflow, or the answer it got. */
export async function outcome({ result, response }: Arrived) {
	const { workflowData, noWebhookResponse } = await result;
	const [items] = workflowData ?? [];
	if (items) return { starts: items.map(({ json }) => json) };
	if (!noWebhookResponse) throw new Error('Neither an execution nor an answer');
	const { statusCode: status, body, headers } = response;
	return { status, body, retryAfter: headers['Retry-After'] };
}
