import {
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeProperties,
	type INodeType,
	type INodeTypeDescription,
	NodeConnectionTypes,
} from 'n8n-workflow';

import { numberField, optionsField } from './panel/hints';
import { creditsToolFields } from './panel/resources';
import { readCredits } from './run/creditsRun';

const minimumBalance: INodeProperties = {
	...numberField('Minimum Balance (Credits)', 'minimumBalance'),
	hint: 'In credits, and not in US dollars. 0 = no check',
	description: 'Fail the item if fewer credits than this are left',
};

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
				"Reads the balance of the account. As a guard before a batch, set 'minimumBalance': below it the node stops the workflow.",
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
			minimumBalance,
			optionsField([
				{
					displayName: 'Balance Field',
					name: 'balanceField',
					type: 'string',
					default: '',
					placeholder: 'e.g. data.wallet.credits',
					description:
						"Path of the balance in the service's answer, with dots. Empty = look in the usual places.",
				},
				{
					displayName: 'Include Input Fields',
					name: 'includeInput',
					type: 'boolean',
					default: true,
					description:
						'Whether the fields and files of the incoming item go on beside the balance. On if not added.',
				},
				// The same as an option, in workflows that have it there: it is not offered anew.
				{
					...minimumBalance,
					displayOptions: { show: { minimumBalance: [{ _cnd: { exists: true } }] } },
				},
			]),
		],
	};

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return [await readCredits(this)];
	}
}
