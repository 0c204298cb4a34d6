import type { IDataObject, INode, INodeExecutionData } from 'n8n-workflow';

import { connect, nodeOf, nodeType } from '../../workflow/n8n/nodes';
import type { History } from '../history';

/** An address must bring these signs as they are. */
const REFERENCE = ' & 100 %, für+=#?';

/** *Reference* of a task, where the history has references. */
export const referenceOf = (item: string): string => item + REFERENCE;

/** US dollars for a task, at first. */
export const PRICE_USD = 0.08;

export const MODEL = 'imagevendor/image-model-2-text-to-image';

const credentials = { mediaGenerationApi: { id: 'credential', name: 'Media Generation' } };

const node = (
	name: string,
	type: string,
	parameters: IDataObject = {},
	more: Partial<INode> = {},
) => nodeOf(type, { id: name, name, parameters: parameters as INode['parameters'], ...more });

const retryOnFail = (maxTries: number): Partial<INode> =>
	maxTries > 1 ? { retryOnFail: true, maxTries, waitBetweenTries: 1000 } : {};

/**
 * The nodes of the one workflow that all histories run, with every parameter as n8n stores it.
 *
 * @param isBroken whether the trigger's *Events* are an expression that throws
 * @param isMended whether the service takes all that the node sends
 */
export function nodesOf(
	history: History,
	{ isBroken, isMended }: { isBroken: boolean; isMended: boolean },
): INode[] {
	const { node: media, trigger } = history;
	const input = [
		...(media.isChanging ? ['seed: Math.random()'] : []),
		...(isMended ? ['isMended: true'] : []),
	];
	const { downloadResults = media.downloads, includeInput = true, ...more } = media.more ?? {};
	return [
		node('Start', 'start'),
		node(
			'Media',
			'mediaGeneration',
			{
				resource: 'image',
				operation: 'generate',
				model: MODEL,
				prompt: '={{ $json.prompt }}',
				completion: media.completion,
				callbackUrl: '',
				downloadResults,
				includeInput,
				options: {
					timeout: media.timeoutSeconds,
					suspendAfter: media.suspendAfter,
					ifSomeFail: media.ifSomeFail,
					maxInFlight: media.maxInFlight,
					...(media.budgetItems > 0 && { maxCostUsd: media.budgetItems * PRICE_USD }),
					...(input.length > 0 && {
						additionalInput: `={{ JSON.stringify({ ${input.join(', ')} }) }}`,
					}),
					...(history.hasUploads && {
						files: { file: [{ inputField: 'image', binaryPropertyName: 'file' }] },
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
			{ events: isBroken ? '={{ $json.nothing.at.all }}' : ['SUCCESS', 'FAILURE'] },
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

export const connections = connect(
	'Start > Media',
	'Media > Sink',
	'Media:1 > Failed',
	'Trigger > Done',
	'Again > Redeliver',
);

type OnSink = (node: string, execution: string, items: INodeExecutionData[]) => void;

/** The nodes around ours: one that puts out what the user entered, and one that is the rest of the workflow. */
export const helperNodes = (onSink: OnSink) => ({
	start: nodeType(async (context) => [context.getInputData()]),
	sink: nodeType(async (context) => {
		const items = context.getInputData();
		onSink(context.getNode().name, context.getExecutionId(), items);
		return [items];
	}),
});
