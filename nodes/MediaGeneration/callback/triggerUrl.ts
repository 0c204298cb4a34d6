import {
	type IDataObject,
	type IExecuteFunctions,
	type IHookFunctions,
	type INode,
	NodeHelpers,
	UserError,
	type IHttpRequestMethods,
} from 'n8n-workflow';
import { settled } from '../shared/concurrency';
import { Stopped } from '../shared/clock';
import { isEngineV2, internalsOf, webhookBase } from '../shared/n8nInternals';
import { isRecord } from '../shared/json';
import { callN8n } from './callN8n';
import { credentialIdOf } from './startOnce';

/** The path of the trigger's webhook, as its description declares it. */
export const CALLBACK_PATH = 'callback';

/** The place in the workflow's static data where its triggers leave their URLs. */
const KEY = 'mediaGenerationTriggers';

/*
 * Only activation writes here: n8n saves static data that an activation hook wrote, but not what a webhook wrote,
 * and a run that writes any overwrites the whole of it with its own copy.
 *
 * An entry names its workflow, because an exported or copied workflow takes its static data along, and the copy's
 * tasks must not call back to the original's trigger.
 */
type Registry = Record<string, { url: string; workflowId: string }>;

function read(context: IHookFunctions | IExecuteFunctions): Registry {
	const stored = (context.getWorkflowStaticData('global') as IDataObject)[KEY];
	const { id: workflowId = '' } = context.getWorkflow();
	const registry: Registry = {};
	for (const [nodeId, entry] of Object.entries(isRecord(stored) ? stored : {})) {
		if (isRecord(entry) && typeof entry.url === 'string' && entry.workflowId === workflowId) {
			registry[nodeId] = { url: entry.url, workflowId };
		}
	}
	return registry;
}

function write(context: IHookFunctions, registry: Registry): void {
	(context.getWorkflowStaticData('global') as IDataObject)[KEY] = registry;
}

/**
 * Refuses a trigger whose workflow n8n's engine v2 runs: that one starts the workflow for each callback, without asking
 * the trigger whether the task has started it before.
 *
 * @throws UserError there
 */
export function refuseEngineV2(context: IHookFunctions | IExecuteFunctions): void {
	if (!isEngineV2(context)) return;
	throw new UserError(
		"A Media Generation Trigger does not work with the engine v2 of this workflow. Put it into a workflow with engine v1, and paste its production URL into 'Callback URL'",
	);
}

/** Whether the trigger's present production URL is registered already. */
export function isRegistered(context: IHookFunctions): boolean {
	return read(context)[context.getNode().id]?.url === context.getNodeWebhookUrl('default');
}

/** Leaves the trigger's production URL for the action nodes of the same workflow. */
export function register(context: IHookFunctions): void {
	const url = context.getNodeWebhookUrl('default');
	if (url === undefined) return;
	const { id: workflowId = '' } = context.getWorkflow();
	write(context, {
		...read(context),
		[context.getNode().id]: { url, workflowId },
	});
}

/** Takes the trigger's URL back. */
export function unregister(context: IHookFunctions): void {
	const registry = read(context);
	delete registry[context.getNode().id];
	write(context, registry);
}

/**
 * The production URL of the one Media Generation Trigger of this workflow.
 *
 * @throws UserError where there is none that is active, or more than one, or n8n does not let itself be asked
 */
export async function triggerOfThisWorkflow(context: IExecuteFunctions): Promise<string> {
	const triggers = nodesOf(context).filter((node) => isTrigger(context, node));
	const registered = Object.entries(read(context)).map(([nodeId, { url }]) => {
		const trigger = triggers.find(({ id }) => id === nodeId);
		return presentUrl(context, trigger) ?? url;
	});
	const urls = registered.length > 0 ? registered : await publishedTriggers(context);
	if (urls.length > 1) {
		throw new UserError('This workflow has more than one Media Generation Trigger', {
			description: "Paste the production URL of the one to notify into 'Callback URL'.",
		});
	}
	const [url] = urls;
	if (url === undefined) {
		throw new UserError('No active Media Generation Trigger was found in this workflow', {
			description:
				"Add a Media Generation Trigger and publish the workflow, or paste the URL of a trigger into 'Callback URL' (its test URL after you have pressed 'Execute step' there). No task was created.",
		});
	}
	return url;
}

const nodesOf = (context: IExecuteFunctions): INode[] =>
	Object.values(internalsOf(context).workflow?.nodes ?? {});

/** The production URL of a trigger at n8n's present address; the one that it had when it was published may be gone. */
function presentUrl(context: IExecuteFunctions, trigger: INode | undefined): string | undefined {
	const base = webhookBase(context);
	if (base === undefined || trigger === undefined) return undefined;
	return NodeHelpers.getNodeWebhookUrl(
		base,
		context.getWorkflow().id ?? '',
		trigger,
		CALLBACK_PATH,
	);
}

/** The node of a trigger, and its credential's id, by which its ledger is asked. */
export interface TriggerNode {
	triggerId: string;
	triggerCredentialId: string;
}

/** @returns the trigger of this workflow that is at an address; undefined where it is none of this workflow */
export function triggerAt(context: IExecuteFunctions, address: string): TriggerNode | undefined {
	const [url] = address.split('?', 1);
	const node = nodesOf(context).find(
		(each) => isTrigger(context, each) && presentUrl(context, each) === url,
	);
	return node && { triggerId: node.id, triggerCredentialId: credentialIdOf(node) };
}

const isTrigger = (context: IExecuteFunctions, { type }: INode) =>
	type === `${context.getNode().type}Trigger`;

/** Executions in these modes run the workflow as it stands in the editor, which may not be published. */
const OF_THE_EDITOR = ['manual', 'chat', 'evaluation'];

/** Whether the execution that is retried was one of the editor is not told. */
const MAY_BE_OF_THE_EDITOR = 'retry';

/**
 * The production URLs of the published triggers that stand in the workflow of this execution. A worker of queue mode
 * gets no static data with an execution (n8n 2.41), so nothing else tells it, and where the workflow is run from the
 * editor n8n has to be asked whether they are published.
 */
async function publishedTriggers(context: IExecuteFunctions): Promise<string[]> {
	const urls = nodesOf(context)
		.filter((node) => isTrigger(context, node) && node.disabled !== true)
		.flatMap((node) => presentUrl(context, node) ?? []);
	// A sub-workflow is run as it stands in the editor where the workflow that calls it is.
	const mode = String(internalsOf(context).additionalData?.rootExecutionMode ?? context.getMode());
	if (![...OF_THE_EDITOR, MAY_BE_OF_THE_EDITOR].includes(mode)) return urls;
	const published = await Promise.all(
		urls.map(async (url) => {
			const asked = await settled(isPublished(context, url));
			if ('value' in asked) return asked.value;
			if (mode !== MAY_BE_OF_THE_EDITOR || asked.error instanceof Stopped) throw asked.error;
			return true;
		}),
	);
	return urls.filter((_, index) => published[index]);
}

/** How long n8n may take to answer, in ms. */
const LIMIT_MS = 10_000;

/** n8n's request helper sends it, although its type does not have it. */
const OPTIONS = 'OPTIONS' as IHttpRequestMethods;

/**
 * Asks n8n whether it has a webhook for POST requests at an address, as a browser does before it sends one (a CORS
 * preflight): that starts nothing.
 *
 * @param url a production URL
 * @throws UserError where the answer is not n8n's, or there is none; Stopped where the execution was stopped
 */
async function isPublished(context: IExecuteFunctions, url: string): Promise<boolean> {
	const answer = await callN8n(
		context,
		{ method: OPTIONS, url, headers: { Origin: new URL(url).origin }, timeout: LIMIT_MS },
		`n8n does not let this node ask for the trigger: ${url}`,
	);
	const methods = answer?.headers['access-control-allow-methods'];
	if (typeof methods !== 'string') throw unanswered(url);
	return methods.split(',').some((method) => method.trim() === 'POST');
}

const unanswered = (url: string) =>
	new UserError(`It is not known whether the Media Generation Trigger is published: ${url}`, {
		description:
			"In a run by hand on a worker, n8n is asked at the trigger's production URL, and did not answer there. Let the worker reach that address, or paste it into 'Callback URL'.",
	});
