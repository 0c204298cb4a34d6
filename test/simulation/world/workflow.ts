import {
	type IConnections,
	type IDataObject,
	type INode,
	type INodeExecutionData,
	type INodeType,
	type NodeParameterValueType,
	NodeConnectionTypes,
} from 'n8n-workflow';
import type { History } from '../history';

/** The path of the trigger's production URL. */
export const TRIGGER_PATH = '/webhook/3f1c2a/callback';

/** An address must bring these signs as they are. */
const REFERENCE = ' & 100 %, für+=#?';

/** *Row Name or ID* of a task, where the history has references. */
export const referenceOf = (item: string): string => item + REFERENCE;

const PRICE_USD = 0.08;

const credentials = { mediaGenerationApi: { id: 'credential', name: 'Media Generation' } };

function node(name: string, type: string, parameters: IDataObject = {}, more: Partial<INode> = {}) {
	return {
		id: name,
		name,
		type,
		typeVersion: 1,
		position: [0, 0] as [number, number],
		parameters: parameters as Record<string, NodeParameterValueType> as INode['parameters'],
		...more,
	};
}

const retryOnFail = (maxTries: number): Partial<INode> =>
	maxTries > 1 ? { retryOnFail: true, maxTries, waitBetweenTries: 1000 } : {};

/**
 * The nodes of the one workflow that all histories run, with every parameter as n8n stores it.
 *
 * @param isBroken whether the trigger's *Events* are an expression that throws
 */
export function nodesOf(history: History, isBroken: boolean): INode[] {
	const { node: media, trigger } = history;
	const { downloadResults = media.downloads, ...more } = media.more ?? {};
	return [
		node('Start', 'start'),
		node(
			'Media',
			'mediaGeneration',
			{
				resource: 'image',
				operation: 'generate',
				model: 'imagevendor/image-model-2-text-to-image',
				prompt: '={{ $json.prompt }}',
				completion: media.completion,
				callbackUrl: '',
				downloadResults,
				options: {
					pollInterval: media.pollIntervalSeconds,
					timeout: media.timeoutSeconds,
					suspendAfter: media.suspendAfter,
					ifSomeFail: media.ifSomeFail,
					maxInFlight: media.maxInFlight,
					...(media.budgetItems > 0 && { maxCostUsd: media.budgetItems * PRICE_USD }),
					...(media.isChanging && {
						additionalInput: '={{ JSON.stringify({ seed: Math.random() }) }}',
					}),
					...(media.retryFailed > 0 && { retryFailed: media.retryFailed }),
					...(history.hasReferences && { reference: `={{ $json.prompt + '${REFERENCE}' }}` }),
					...more,
				},
			},
			{
				credentials,
				onError: media.onError,
				...retryOnFail(media.maxTries),
				...media.settings,
			},
		),
		node('Sink', 'sink'),
		node('Failed', 'sink'),
		node(
			'Trigger',
			'mediaGenerationTrigger',
			{
				events: isBroken ? '={{ $json.nothing.at.all }}' : ['SUCCESS', 'FAILURE'],
				options: { ...(trigger.downloads && { downloadResults: true }) },
			},
			{ credentials, webhookId: '3f1c2a', ...retryOnFail(trigger.maxTries) },
		),
		node('Done', 'sink'),
		node('Again', 'start'),
		node(
			'Redeliver',
			'mediaGeneration',
			{
				resource: 'task',
				operation: 'redeliver',
				taskId: '={{ $json.taskId }}',
				callbackUrl: '',
				options: {
					reference: '={{ $json.reference }}',
				},
			},
			{ credentials, onError: 'continueRegularOutput' },
		),
	];
}

const to = (name: string) => [{ node: name, type: NodeConnectionTypes.Main, index: 0 }];

export const connections: IConnections = {
	Start: { main: [to('Media')] },
	Media: { main: [to('Sink'), to('Failed')] },
	Trigger: { main: [to('Done')] },
	Again: { main: [to('Redeliver')] },
};

type OnSink = (node: string, execution: string, items: INodeExecutionData[]) => void;

const helperNode = (name: string, onItems?: OnSink): INodeType => ({
	description: {
		displayName: name,
		name,
		group: ['transform'],
		version: 1,
		description: 'Part of the simulation',
		defaults: { name },
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		properties: [],
	},
	async execute() {
		const items = this.getInputData();
		onItems?.(this.getNode().name, this.getExecutionId(), items);
		return [items];
	},
});

/** The nodes around ours: one that puts out what the user entered, and one that is the rest of the workflow. */
export const helperNodes = (onSink: OnSink) => ({
	start: helperNode('start'),
	sink: helperNode('sink', onSink),
});
