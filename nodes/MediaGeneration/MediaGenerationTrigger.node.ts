import {
	type IExecuteFunctions,
	type IHookFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
	type IWebhookFunctions,
	type IWebhookResponseData,
	NodeConnectionTypes,
} from 'n8n-workflow';

import { isRegistered, refuseEngineV2, register } from './callback/callbackAddress';
import { handleTriggerWebhook } from './callback/gate';
import { startWorkflow } from './callback/ledger';
import { optionsField } from './panel/hints';
import { CALLBACK_PATH } from './shared/addresses';

/** The hooks of a test run must leave the production URL alone, which the published workflow may be using. */
const isTest = (context: IHookFunctions) => context.getActivationMode() === 'manual';

/** Starts a workflow once for each task that the media generation service has finished. */
export class MediaGenerationTrigger implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Media Generation Trigger',
		name: 'mediaGenerationTrigger',
		icon: { light: 'file:mediaGeneration.svg', dark: 'file:mediaGeneration.dark.svg' },
		group: ['trigger'],
		version: 1,
		subtitle:
			'={{ $parameter["events"].map((event) => event === "SUCCESS" ? "task succeeded" : "task failed").join(", ") }}',
		// n8n lists the action node and this trigger as one entry, with this text for both.
		description: 'Generate images and videos, and start a workflow when a task is finished',
		eventTriggerDescription: 'Waiting for a task to finish',
		activationMessage: 'Your trigger is ready.',
		triggerPanel: {
			header: 'Wait for a finished task',
			executionsHelp:
				"<b>To see a task here</b>, click 'Execute step'. Then run 'Repeat Callback' in another workflow, with the 'taskId' of a finished task, and the test URL of this trigger as 'Callback URL'.",
		},
		builderHint: {
			searchHint:
				"Starts a workflow once for each finished task that a Media Generation node created with completion 'trigger'. Use it only where each result is wanted at once: with completion 'wait' the Media Generation node needs no trigger. Build no Webhook node.",
			relatedNodes: [
				{
					nodeType: 'n8n-nodes-media-generation.mediaGeneration',
					relationHint:
						"Creates the tasks, with completion 'trigger' and the same API key. For files, put another one behind the trigger: resource 'task', operation 'wait'",
				},
			],
		},
		defaults: { name: 'Media Generation Trigger' },
		inputs: [],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'mediaGenerationApi', required: true }],
		webhooks: [
			{
				name: 'default',
				httpMethod: 'POST',
				responseMode: 'onReceived',
				// Empty, so that n8n answers with the data from `webhook`.
				responseData: '',
				path: CALLBACK_PATH,
			},
		],
		properties: [
			{
				displayName:
					"When this workflow is published, each finished task of its Media Generation nodes with 'Notify a Trigger' starts it once. For a node in another workflow, copy the production URL above into the 'Callback URL' of that node.",
				name: 'notice',
				type: 'notice',
				default: '',
			},
			{
				displayName:
					"This trigger downloads nothing. For files, put a Media Generation node with 'Wait for Task' behind it.",
				name: 'filesNotice',
				type: 'notice',
				default: '',
			},
			{
				displayName: 'Events',
				name: 'events',
				type: 'multiOptions',
				required: true,
				default: ['SUCCESS', 'FAILURE'],
				description: 'Which finished tasks start the workflow',
				options: [
					{
						name: 'Task Succeeded',
						value: 'SUCCESS',
						description: 'The results are ready',
					},
					{
						name: 'Task Failed',
						value: 'FAILURE',
						description: 'The generation failed; such a task is usually free',
					},
				],
			},
			{
				displayName:
					"Failed tasks do not start this workflow. To include them, add 'Task Failed'; the field 'state' tells which task failed.",
				name: 'onlySucceededNotice',
				type: 'notice',
				default: '',
				displayOptions: { show: { events: ['SUCCESS'] }, hide: { events: ['FAILURE'] } },
			},
			{
				displayName:
					"Succeeded tasks do not start this workflow. To include them, add 'Task Succeeded'. Their results stay at the service: get them with 'Get Task'.",
				name: 'onlyFailedNotice',
				type: 'notice',
				default: '',
				displayOptions: { show: { events: ['FAILURE'] }, hide: { events: ['SUCCESS'] } },
			},
			optionsField([
				{
					displayName: 'Require Token',
					name: 'requireToken',
					type: 'boolean',
					default: true,
					description:
						'Whether to refuse callbacks without a valid token in their URL. Switch this off only if something else creates the tasks, with the URL alone.',
				},
			]),
		],
	};

	webhookMethods = {
		default: {
			async checkExists(this: IHookFunctions): Promise<boolean> {
				refuseEngineV2(this);
				return isTest(this) || isRegistered(this);
			},
			async create(this: IHookFunctions): Promise<boolean> {
				register(this, true);
				return true;
			},
			async delete(this: IHookFunctions): Promise<boolean> {
				if (!isTest(this)) register(this, false);
				return true;
			},
		},
	};

	/** Decides about a callback. n8n stores the execution, answers the caller, and then runs `execute`. */
	async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
		return await handleTriggerWebhook(this);
	}

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await startWorkflow(this);
	}
}
