import {
	type IDataObject,
	type IExecuteFunctions,
	type IHookFunctions,
	type IHttpRequestMethods,
	type INode,
	NodeHelpers,
	UserError,
} from 'n8n-workflow';

import { callN8n } from '../service/connect';
import { isRecord, without } from '../shared/json';
import { isEngineV2, internalsOf, webhookBase } from '../shared/n8nInternals';
import { settled } from '../shared/promises';
import { credentialIdOf } from './startOnce';

/** The path of the trigger's webhook, and of the one that resumes a suspended execution, as the nodes declare it. */
export const CALLBACK_PATH = 'callback';

/** The place in the workflow's static data where its published triggers stand. */
const KEY = 'mediaGenerationTriggers';

/*
 * Only activation writes here: n8n saves static data that an activation hook wrote, but not what a webhook wrote,
 * and a run that writes any overwrites the whole of it with its own copy.
 *
 * Under the id of each trigger stands the id of its workflow, because an exported or copied workflow takes its static
 * data along, and nobody has published the copy.
 */
function registryOf(context: IHookFunctions | IExecuteFunctions): IDataObject {
	const stored = (context.getWorkflowStaticData('global') as IDataObject)[KEY];
	return isRecord(stored) ? stored : {};
}

/**
 * @throws UserError where n8n's engine v2 runs the trigger's workflow: that one starts it for each callback, without
 *   asking the trigger whether the task has started it before
 */
export function refuseEngineV2(context: IHookFunctions | IExecuteFunctions): void {
	if (!isEngineV2(context)) return;
	throw new UserError(
		"A Media Generation Trigger does not work with the engine v2 of this workflow. Put it into a workflow with engine v1, and paste its production URL into 'Callback URL'",
	);
}

/** Whether a trigger is published, as far as its workflow's static data tell; the node of the context, if no other. */
export function isRegistered(
	context: IHookFunctions | IExecuteFunctions,
	{ id } = context.getNode(),
): boolean {
	return registryOf(context)[id] === context.getWorkflow().id;
}

/** Tells the action nodes of the same workflow that the trigger is published, or that it is not. */
export function register(context: IHookFunctions, isPublished: boolean): void {
	const { id } = context.getNode();
	const others = without(registryOf(context), id);
	const data = context.getWorkflowStaticData('global') as IDataObject;
	data[KEY] = { ...others, ...(isPublished && { [id]: context.getWorkflow().id ?? '' }) };
}

/**
 * The production URL of the one Media Generation Trigger of this workflow.
 *
 * @throws UserError where there is none that is active, or more than one, or n8n does not let itself be asked
 */
export async function triggerOfThisWorkflow(context: IExecuteFunctions): Promise<string> {
	const triggers = triggersOf(context).filter(({ disabled }) => disabled !== true);
	const registered = triggers.filter((node) => isRegistered(context, node));
	const urls =
		registered.length > 0
			? urlsOf(context, registered)
			: await publishedOf(context, urlsOf(context, triggers));
	const [url] = urls;
	if (url === undefined) {
		throw new UserError('No active Media Generation Trigger was found in this workflow', {
			description:
				"Add a Media Generation Trigger and publish the workflow, or paste the URL of a trigger into 'Callback URL' (its test URL after you have pressed 'Execute step' there). No task was created.",
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
	// n8n gives the node another type where it is a tool.
	const type = context.getNode().type.replace(/Tool$/, '');
	const nodes = Object.values(internalsOf(context).workflow?.nodes ?? {});
	return nodes.filter((node) => node.type === `${type}Trigger`);
}

/** The production URLs of triggers at n8n's present address: the address when they were published may be gone. */
function urlsOf(context: IExecuteFunctions, triggers: INode[]): string[] {
	const base = webhookBase(context);
	if (base === undefined) return [];
	const { id = '' } = context.getWorkflow();
	return triggers.map((node) => NodeHelpers.getNodeWebhookUrl(base, id, node, CALLBACK_PATH));
}

/** The node of a trigger, and its credential's id, by which its ledger is asked. */
export interface TriggerNode {
	triggerId: string;
	triggerCredentialId: string;
}

/** @returns the trigger of this workflow that is at an address; undefined where it is none of this workflow */
export function triggerAt(context: IExecuteFunctions, address: string): TriggerNode | undefined {
	const [url] = address.split('?', 1);
	const node = triggersOf(context).find((each) => urlsOf(context, [each])[0] === url);
	return node && { triggerId: node.id, triggerCredentialId: credentialIdOf(node) };
}

/** Executions in these modes may run the workflow as it stands in the editor, which may not be published. */
const OF_THE_EDITOR = ['manual', 'chat', 'evaluation', 'retry'];

/**
 * Those of the production URLs whose triggers are published. A worker of queue mode gets no static data with an execution
 * (n8n 2.41), so nothing else tells it, and where the workflow is run from the editor n8n has to be asked.
 */
async function publishedOf(context: IExecuteFunctions, urls: string[]): Promise<string[]> {
	// A sub-workflow is run as it stands in the editor where the workflow that calls it is.
	const mode = String(internalsOf(context).additionalData?.rootExecutionMode ?? context.getMode());
	if (!OF_THE_EDITOR.includes(mode)) return urls;
	const published = await Promise.all(
		urls.map(async (url) => {
			const asked = await settled(isPublished(context, url));
			if ('value' in asked) return asked.value;
			// Whether the execution that is retried was one of the editor is not told.
			if (mode !== 'retry') throw asked.error;
			return true;
		}),
	);
	return urls.filter((_, index) => published[index]);
}

const LIMIT_MS = 10_000;

/**
 * Asks n8n whether it has a webhook for POST requests at a production URL, as a browser does before it sends one (a CORS
 * preflight): that starts nothing.
 *
 * @throws UserError where the answer is not n8n's, or there is none; Stopped where the execution was stopped
 */
async function isPublished(context: IExecuteFunctions, url: string): Promise<boolean> {
	// n8n's request helper sends it, although its type does not have it.
	const method = 'OPTIONS' as IHttpRequestMethods;
	const request = { method, url, headers: { Origin: new URL(url).origin }, timeout: LIMIT_MS };
	const forbidden = `n8n does not let this node ask for the trigger: ${url}`;
	const answer = await callN8n(context, request, forbidden);
	const methods = answer?.headers['access-control-allow-methods'];
	if (typeof methods === 'string') return /\bPOST\b/.test(methods);
	throw new UserError(`It is not known whether the Media Generation Trigger is published: ${url}`, {
		description:
			"Let the worker reach the trigger's production URL, or paste this URL into 'Callback URL'. In a run by hand the worker asks n8n at this URL, and n8n did not answer.",
	});
}
