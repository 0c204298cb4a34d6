import { WebhookContext } from 'n8n-core';
import type { IDataObject, INodeExecutionData, IWebhookData } from 'n8n-workflow';
import { createRunExecutionData } from 'n8n-workflow';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/address';
import { admitResume } from '../../../nodes/MediaGeneration/callback/resumeGate';
import { pendingItem } from '../../../nodes/MediaGeneration/callback/suspension';
import { MediaGeneration } from '../../../nodes/MediaGeneration/MediaGeneration.node';
import { additionalData, API_KEY, buildWorkflow, type Express } from '../../workflow/engine';
import { type Arrived, FakeResponse, SERVICE } from './webhook';

/** The stored item of a task that the execution waits for. */
export const waiting = (taskId: string, itemIndex = 0, more: IDataObject = {}) =>
	pendingItem(
		{
			taskId,
			state: 'PENDING',
			resultUrls: [],
			creditsConsumed: null,
			record: { taskId },
			...more,
		},
		itemIndex,
	);

/** An execution as n8n keeps it while it is suspended. */
export interface Suspended {
	executionId: string;
	stored: INodeExecutionData[];
	parameters?: IDataObject;
}

export interface ResumingCallback {
	taskId?: string;
	body?: unknown;
	token?: string | null;
	path?: string;
	apiKey?: string;
	/** Another process has its own memory, and so its own copy of the module. */
	admit?: typeof admitResume;
}

/** Delivers a callback to a suspended execution as n8n hands it on. */
export function resume(
	{ executionId, stored, parameters = {} }: Suspended,
	{
		taskId = 'task-1',
		body = { taskId },
		path = `/webhook-waiting/${executionId}/callback`,
		apiKey = API_KEY,
		token = callbackToken(`/webhook-waiting/${executionId}/callback`, apiKey),
		admit = admitResume,
	}: ResumingCallback = {},
): Arrived {
	const credential = { baseUrl: SERVICE, apiKey };
	const { workflow, tested } = buildWorkflow({ node: { parameters }, credential });
	const response = new FakeResponse();
	const request = {
		body,
		headers: {},
		query: token === null ? {} : { signature: 'of-n8n', token },
		params: {},
		originalUrl: `${path}?signature=of-n8n&token=…`,
		rawBody: Buffer.from(JSON.stringify(body)),
	};
	const data = {
		...additionalData(credential, 'webhook'),
		executionId,
		httpRequest: request as unknown as Express['httpRequest'],
		httpResponse: response as unknown as Express['httpResponse'],
	};
	const [webhookDescription] = new MediaGeneration().description.webhooks ?? [];
	const webhookData = { webhookDescription } as unknown as IWebhookData;
	const run = createRunExecutionData({
		executionData: {
			nodeExecutionStack: [{ node: tested, data: { main: [stored] }, source: null }],
		},
	});
	const context = new WebhookContext(workflow, tested, data, 'webhook', webhookData, [], run);
	return { result: admit(context), response };
}
