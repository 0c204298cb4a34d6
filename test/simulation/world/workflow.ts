import type { IDataObject, INode, INodeExecutionData } from 'n8n-workflow';

import { calls, connect, nodeOf, nodeType } from '../../workflow/n8n/nodes';
import type { History } from '../history';

/** The clients of this trigger hang up after a minute. */
export const MCP = '@n8n/n8n-nodes-langchain.mcpTrigger';

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

/** Who goes on with the results; the workflow itself, if it is not said here. */
const COMPLETIONS: Partial<Record<History['workflow'], string>> = {
	triggered: 'trigger',
	returned: 'return',
};

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
	const { node: media, triggerTries, fileSeconds, workflow } = history;
	const completion = COMPLETIONS[workflow] ?? 'wait';
	const input = [
		...(media.isChanging ? ['seed: Math.random()'] : []),
		...(isMended ? ['isMended: true'] : []),
	];
	const { downloadResults = fileSeconds > 0, includeInput = true, ...more } = media.more ?? {};
	const mediaNode = (name: string, prompt: string) =>
		node(
			name,
			'mediaGeneration',
			{
				resource: 'image',
				operation: 'generate',
				model: MODEL,
				prompt,
				completion,
				callbackUrl: '',
				downloadResults,
				includeInput,
				options: {
					// If they are not set, a run whose caller hangs up is held, and ends before.
					...(workflow !== 'hangs up' && {
						timeout: media.timeoutSeconds,
						suspendAfter: media.suspendAfter,
					}),
					ifSomeFail: media.ifSomeFail,
					maxInFlight: media.maxInFlight,
					...(media.budgetItems > 0 && { maxCostUsd: media.budgetItems * PRICE_USD }),
					...(input.length > 0 && {
						additionalInput: `={{ JSON.stringify({ ${input.join(', ')} }) }}`,
					}),
					...(media.hasUploads && {
						files: { file: [{ inputField: 'image', binaryPropertyName: 'file' }] },
					}),
					...(media.retryFailed > 0 && { retryFailed: media.retryFailed }),
					...(media.hasReferences && { reference: `={{ $json.prompt + '${REFERENCE}' }}` }),
					...more,
				},
			},
			{
				credentials,
				onError: media.onError,
				...retryOnFail(media.maxTries),
				...media.settings,
			},
		);
	return [
		node('Start', 'start'),
		mediaNode('Media', '={{ $json.prompt }}'),
		mediaNode('Second', "={{ $('Start').item.json.second }}"),
		node('Loop', 'loop'),
		node('Sink', 'sink'),
		node('Failed', 'sink'),
		node(
			'Trigger',
			'mediaGenerationTrigger',
			{ events: isBroken ? '={{ $json.nothing.at.all }}' : ['SUCCESS', 'FAILURE'] },
			{ credentials, webhookId: '3f1c2a', ...retryOnFail(triggerTries) },
		),
		node(
			'Wait',
			'mediaGeneration',
			{
				...{ resource: 'task', operation: 'wait', taskId: '={{ $json.taskId }}' },
				...{ downloadResults, includeInput, options: { timeout: media.timeoutSeconds } },
			},
			{ credentials, onError: 'continueRegularOutput' },
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

const PLAIN_WAY = ['Start > Media', 'Media > Sink', 'Media:1 > Failed'];

/** How the nodes are connected that the user starts. */
const WAYS: Record<History['workflow'], string[]> = {
	'one node': PLAIN_WAY,
	called: ['Start > Media', 'Media > Sink'],
	'hangs up': ['Start > Media', 'Media > Sink'],
	returned: PLAIN_WAY,
	triggered: [...PLAIN_WAY, 'Trigger > Wait', 'Wait > Done'],
	loop: ['Start > Loop', 'Loop:1 > Media', 'Media > Loop', 'Loop > Sink'],
	'in a row': ['Start > Media', 'Media > Second', 'Second > Sink'],
	beside: ['Start > Media', 'Start > Second', 'Media > Sink', 'Second > Sink'],
};

export const connectionsOf = ({ workflow }: History) =>
	connect(...WAYS[workflow], 'Again > Redeliver');

/** Hands out the items one by one, and at the end all that has come back, as *Loop Over Items* does. */
const loop = nodeType(
	async (context) => {
		const store = context.getContext('node') as { left?: string; done?: string };
		const read = (text = '[]') => JSON.parse(text) as INodeExecutionData[];
		const isFirst = store.left === undefined;
		const left = isFirst ? context.getInputData() : read(store.left);
		const done = isFirst ? [] : [...read(store.done), ...context.getInputData()];
		const [next, ...rest] = left;
		Object.assign(store, { left: JSON.stringify(rest), done: JSON.stringify(done) });
		return await Promise.resolve(next ? [[], [next]] : [done, []]);
	},
	1,
	2,
);

type OnSink = (node: string, execution: string, items: INodeExecutionData[]) => void;

/** The nodes around ours: one that puts out what the user entered, and one that is the rest of the workflow. */
export const helperNodes = (onSink: OnSink) => ({
	loop,
	calls,
	[MCP]: calls,
	start: nodeType(async (context) => [context.getInputData()]),
	sink: nodeType(async (context) => {
		const items = context.getInputData();
		onSink(context.getNode().name, context.getExecutionId(), items);
		return [items];
	}),
});
