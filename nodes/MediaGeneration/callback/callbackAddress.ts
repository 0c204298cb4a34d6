import {
	type IDataObject,
	type IExecuteFunctions,
	type IHookFunctions,
	type INode,
	NodeHelpers,
	UserError,
} from 'n8n-workflow';

import { isEngineV2, internalsOf, isOnWorker, modeOf, webhookBase } from '../n8n/internals';
import {
	CALLBACK_PATH,
	callbackToken,
	REFERENCE_PARAMETER,
	TOKEN_PARAMETER,
} from '../shared/addresses';
import { isRecord, without } from '../shared/json';

/**
 * The address to give to the service as `webhook_url`.
 *
 * @param url the URL of a Media Generation Trigger, with or without a token
 * @param reference comes back with the callback, and is signed by the token; if left out, the URL keeps its reference
 * @returns the URL with its token
 * @throws UserError if the URL is not an http or https address
 */
export function callbackAddress(url: string, apiKey: string, reference?: string): string {
	const given = url.trim();
	if (!/^https?:/i.test(given) || !URL.canParse(given)) {
		throw new UserError(
			`The parameter 'Callback URL' is not a valid address: '${url.split('?', 1)[0]}'`,
			{
				description:
					'Copy the production URL from the Media Generation Trigger, which starts with https:// or http://.',
			},
		);
	}
	const address = new URL(given);
	const { pathname, searchParams } = address;
	// A URL cannot hold half of a surrogate pair.
	const carried = (reference ?? searchParams.get(REFERENCE_PARAMETER))?.toWellFormed();
	searchParams.delete(REFERENCE_PARAMETER);
	searchParams.set(TOKEN_PARAMETER, callbackToken(pathname, apiKey, carried));
	// The reference comes last: in a decoded address nobody can tell where a reference ends.
	if (carried !== undefined) searchParams.set(REFERENCE_PARAMETER, carried);
	return address.href;
}

/** Whether n8n answers at a callback address only while somebody listens in the editor: nobody checks for results then. */
export const isTestAddress = (callbackUrl: string): boolean =>
	new URL(callbackUrl).pathname.includes('/webhook-test/');

/** The key in the workflow's static data of its published triggers. */
const REGISTRY_KEY = 'mediaGenerationTriggers';

/*
 * Only activation writes here. n8n saves the static data that an activation hook wrote, but not what a webhook wrote,
 * and a run that writes any static data overwrites all of it with its own copy.
 *
 * The key of an entry is the id of a trigger, and the value is the id of its workflow: a copied or exported workflow
 * takes its static data along, and nobody has published the copy.
 */
function registryOf(context: IHookFunctions | IExecuteFunctions): IDataObject {
	const stored = (context.getWorkflowStaticData('global') as IDataObject)[REGISTRY_KEY];
	return isRecord(stored) ? stored : {};
}

/**
 * @throws UserError if n8n's engine v2 runs the trigger's workflow: engine v2 starts the workflow for each callback,
 *   and does not ask the trigger whether the task has started the workflow before
 */
export function refuseEngineV2(context: IHookFunctions | IExecuteFunctions): void {
	if (!isEngineV2(context)) return;
	throw new UserError(
		"A Media Generation Trigger does not work with the engine v2 of this workflow. Put it into a workflow with engine v1, and paste its production URL into 'Callback URL'",
	);
}

/** Whether the workflow's static data name a trigger as published. The default is the node of the context. */
export function isRegistered(
	context: IHookFunctions | IExecuteFunctions,
	{ id } = context.getNode(),
): boolean {
	return registryOf(context)[id] === context.getWorkflow().id;
}

/** Tells the action nodes of the same workflow whether the trigger is published. */
export function register(context: IHookFunctions, isPublished: boolean): void {
	const { id } = context.getNode();
	const others = without(registryOf(context), id);
	const data = context.getWorkflowStaticData('global') as IDataObject;
	data[REGISTRY_KEY] = { ...others, ...(isPublished && { [id]: context.getWorkflow().id ?? '' }) };
}

/**
 * The production URL of the only Media Generation Trigger of this workflow.
 *
 * @throws UserError if there is no published trigger, or more than one
 */
export function triggerOfThisWorkflow(context: IExecuteFunctions): string {
	const triggers = triggersOf(context).filter(({ disabled }) => disabled !== true);
	const registered = triggers.filter((node) => isRegistered(context, node));
	const isTold = registered.length > 0 || isOfEditor(context);
	const urls = urlsOf(context, isTold ? registered : triggers);
	const [url] = urls;
	if (url === undefined) {
		throw new UserError('No published Media Generation Trigger was found in this workflow', {
			description:
				"Add a Media Generation Trigger and publish the workflow, or paste the URL of a trigger into 'Callback URL'. No task was created.",
		});
	}
	if (urls.length > 1) {
		throw new UserError('This workflow has more than one Media Generation Trigger', {
			description: "Paste the production URL of the trigger to notify into 'Callback URL'.",
		});
	}
	return url;
}

function triggersOf(context: IExecuteFunctions): INode[] {
	// n8n adds `Tool` to the type of a node that is a tool.
	const type = String(context.getNode().type).replace(/Tool$/, '');
	const nodes = Object.values(internalsOf(context).workflow?.nodes ?? {});
	return nodes.filter((node) => node.type === `${type}Trigger`);
}

/** The production URLs of triggers at n8n's present address. */
function urlsOf(context: IExecuteFunctions, triggers: INode[]): string[] {
	const base = webhookBase(context);
	if (base === undefined) return [];
	const { id = '' } = context.getWorkflow();
	return triggers.map((node) => NodeHelpers.getNodeWebhookUrl(base, id, node, CALLBACK_PATH));
}

/** The trigger that the result of a task goes to. */
export interface Recipient {
	/** The trigger's address; without n8n's own address, if that is where the trigger is. */
	address: string;
	/** The id of the trigger's node, if the trigger is in this workflow: its ledger tells whether it has started. */
	triggerId?: string | undefined;
}

/** @param address the full address of a trigger */
export function recipientAt(context: IExecuteFunctions, address: string): Recipient {
	const [url] = address.split('?', 1);
	const trigger = triggersOf(context).find((node) => urlsOf(context, [node])[0] === url);
	return { address, ...(trigger && { triggerId: trigger.id }) };
}

/** @returns undefined if the value is no recipient */
export function asRecipient(value: unknown): Recipient | undefined {
	if (!isRecord(value) || typeof value.address !== 'string') return undefined;
	const { address, triggerId } = value;
	return { address, ...(typeof triggerId === 'string' && { triggerId }) };
}

/**
 * The recipient's address with its token, by n8n's present address and the present key. If somebody else has the former
 * address of n8n now, the token must not go there.
 */
export function signedAddress(
	context: IExecuteFunctions,
	{ address }: Recipient,
	apiKey: string,
): string {
	const url = address.startsWith('/') ? `${webhookBase(context)}${address}` : address;
	return callbackAddress(url, apiKey);
}

/** Executions in these modes run the workflow as it stands in the editor, which may not be published. */
const OF_THE_EDITOR = ['manual', 'chat', 'evaluation', 'cli', 'retry'];

/**
 * Whether only the static data tell which trigger is published. A worker of queue mode gets no static data with an
 * execution (n8n 2.41): the trigger of the workflow counts there.
 */
function isOfEditor(context: IExecuteFunctions): boolean {
	// A run from the editor runs the workflows that it calls as they stand in the editor, too.
	const mode = String(internalsOf(context).additionalData?.rootExecutionMode ?? modeOf(context));
	return OF_THE_EDITOR.includes(mode) && !isOnWorker(context);
}
