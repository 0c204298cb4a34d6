import {
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
	type IWebhookFunctions,
	type IWebhookResponseData,
	NodeConnectionTypes,
} from 'n8n-workflow';

import { completionFields } from './fields/completion';
import { optionFields } from './fields/options';
import { downloadFields } from './fields/output';
import { panelHints } from './fields/panelHints';
import { imageFields, taskFields, videoFields } from './fields/resources';
import { searchModels } from './fields/searchModels';
import { toolFields } from './fields/toolDescription';
import { runTasks } from './run/actionRun';
import { runCheckExecution } from './suspend/checkExecution';
import { CHECK_OPERATIONS } from './suspend/checkWorkflow';
import { handleResumeWebhook, RESUME_PATH } from './suspend/resumeWebhook';

/** Creates tasks at the media generation service and brings their results. */
export class MediaGeneration implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Media Generation',
		name: 'mediaGeneration',
		icon: { light: 'file:mediaGeneration.svg', dark: 'file:mediaGeneration.dark.svg' },
		group: ['transform'],
		version: 1,
		// Shows a model that is not a default, without its provider.
		subtitle:
			'={{ $parameter["resource"] + ": " + $parameter["operation"] + (["", "imagevendor/image-model-2-text-to-image", "videovendor/video-model-2-mini"].includes($parameter["model"] || "") ? "" : " · " + String($parameter["model"]).split("/").pop()) }}',
		description:
			'Generate images and videos, many in parallel, with an asynchronous media generation service',
		defaults: { name: 'Media Generation' },
		usableAsTool: true,
		builderHint: {
			searchHint:
				"One node does a whole batch: hand it all items at once. It creates a task for each item, many in parallel, waits until all are finished and puts out one item for each, with 'resultUrls'. Build no loop, no polling, no Wait and no HTTP Request around it. Each task costs money: test with the option 'dryRun' first. To write results back to rows, set the option 'includeInput'.",
		},
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'mediaGenerationApi', required: true }],
		webhooks: [
			{
				name: 'default',
				httpMethod: 'POST',
				responseMode: 'onReceived',
				responseData: '',
				path: RESUME_PATH,
				// Not registered: the URL that resumes a suspended execution leads here.
				restartWebhook: true,
			},
		],
		hints: panelHints,
		properties: [
			...toolFields,
			{
				displayName: 'Resource',
				name: 'resource',
				type: 'options',
				noDataExpression: true,
				default: 'image',
				options: [
					{ name: 'Image', value: 'image' },
					{ name: 'Video', value: 'video' },
					{ name: 'Task', value: 'task' },
				],
			},
			...imageFields,
			...videoFields,
			...taskFields,
			...completionFields,
			...downloadFields,
			...optionFields,
		],
	};

	/** The list of the field *Model*. */
	methods = { listSearch: { searchModels } };

	/** Nothing to register: n8n gives each suspended execution an address of its own. */
	webhookMethods = {
		default: { checkExists: async () => true, create: async () => true, delete: async () => true },
	};

	/** Decides about a callback to a suspended execution. */
	async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
		return await handleResumeWebhook(this);
	}

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][] | null> {
		// No panel offers these operations: the sub-executions of a wait run this node.
		const { operation } = this.getNode().parameters;
		if (CHECK_OPERATIONS.includes(String(operation)))
			return await runCheckExecution(this, operation);
		return [await runTasks(this)];
	}
}
