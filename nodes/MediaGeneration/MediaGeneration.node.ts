import {
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
	NodeConnectionTypes,
} from 'n8n-workflow';

import { panelHints } from './panel/hints';
import { completionFields, downloadFields, includeInput, optionFields } from './panel/options';
import { loadModelFields, searchModels } from './panel/models';
import { imageFields, taskFields, toolFields, videoFields } from './panel/resources';
import { runTasks } from './run/actionRun';

/** Creates tasks at the media generation service and brings their results. */
export class MediaGeneration implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Media Generation',
		name: 'mediaGeneration',
		icon: { light: 'file:mediaGeneration.svg', dark: 'file:mediaGeneration.dark.svg' },
		group: ['transform'],
		version: 1,
		// Shows a model that is not a default, without its provider; and that nothing is ordered.
		subtitle:
			'={{ ($parameter["options"]?.["dryRun"] === true ? "dry run · " : "") + $parameter["resource"] + ": " + $parameter["operation"] + (["", "imagevendor/image-model-2-text-to-image", "videovendor/video-model-2-mini"].includes($parameter["model"] || "") ? "" : " · " + String($parameter["model"]).split("/").pop()) }}',
		description:
			'Generate images and videos, many in parallel, with an asynchronous media generation service',
		defaults: { name: 'Media Generation' },
		usableAsTool: true,
		builderHint: {
			searchHint:
				"One node does a whole batch: hand it all items at once. It creates a task for each item, waits for all, and puts out one item for each, with 'resultUrls'. Build no loop, Wait or HTTP Request around it. Each task costs money: test with the option 'dryRun' first.",
		},
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'mediaGenerationApi', required: true }],
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
			includeInput,
			...optionFields,
		],
	};

	methods = { listSearch: { searchModels }, resourceMapping: { loadModelFields } };

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await runTasks(this);
	}
}
