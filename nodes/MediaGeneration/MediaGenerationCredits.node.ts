import {
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
	NodeConnectionTypes,
} from 'n8n-workflow';

import { numberField } from './fields/makers';
import { creditsToolFields } from './fields/toolDescription';
import { readCredits } from './run/creditsRun';

/** Reads the credit balance of the account at the media generation service. */
export class MediaGenerationCredits implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Media Generation Credits',
		name: 'mediaGenerationCredits',
		icon: { light: 'file:mediaGeneration.svg', dark: 'file:mediaGeneration.dark.svg' },
		group: ['input'],
		version: 1,
		subtitle: 'credits: get balance',
		description: 'Read the credits that are left in your media generation account',
		defaults: { name: 'Media Generation Credits' },
		usableAsTool: true,
		builderHint: {
			searchHint:
				"Reads the balance of the account once for all items. As a guard before a batch, set the option 'minimumBalance': below it the node stops the workflow. The items go on beside the balance, so add no Merge. It costs nothing.",
			relatedNodes: [
				{
					nodeType: 'n8n-nodes-media-generation.mediaGeneration',
					relationHint: 'Creates the tasks that use the credits',
				},
			],
		},
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'mediaGenerationApi', required: true }],
		properties: [
			...creditsToolFields,
			{
				displayName: 'Operation',
				name: 'operation',
				type: 'options',
				noDataExpression: true,
				default: 'getBalance',
				options: [
					{
						name: 'Get Balance',
						value: 'getBalance',
						action: 'Get credit balance',
						description: 'Retrieve the credits that are left in the account',
					},
				],
			},
			{
				displayName: 'Options',
				name: 'options',
				type: 'collection',
				placeholder: 'Add option',
				default: {},
				options: [
					{
						displayName: 'Balance Field',
						name: 'balanceField',
						type: 'string',
						default: '',
						placeholder: 'e.g. data.wallet.credits',
						description:
							"Path of the balance in the service's answer, as field names joined by dots. Leave empty to look for it in the usual places.",
					},
					{
						displayName: 'Include Input',
						name: 'includeInput',
						type: 'boolean',
						default: true,
						description:
							'Whether the fields and files of the incoming item go on beside the balance, so that this node can stand before a batch. On if this option is not added.',
					},
					{
						...numberField('Minimum Balance (Credits)', 'minimumBalance'),
						hint: 'In credits. The prices of the models are in US dollars.',
						description: 'Fail the item if fewer credits than this are left. 0 means no check.',
					},
				],
			},
		],
	};

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return [await readCredits(this)];
	}
}
