import type { IDataObject, IExecuteFunctions, IHookFunctions } from 'n8n-workflow';
import { UserError } from 'n8n-workflow';

import { isRecord } from '../shared/json';

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

/** Whether the trigger's present production URL is registered already. */
export function isRegistered(context: IHookFunctions): boolean {
	return read(context)[context.getNode().id]?.url === context.getNodeWebhookUrl('default');
}

/** Leaves the trigger's production URL for the action nodes of the same workflow. */
export function register(context: IHookFunctions): void {
	const url = context.getNodeWebhookUrl('default');
	if (url === undefined) return;
	const { id: workflowId = '' } = context.getWorkflow();
	write(context, { ...read(context), [context.getNode().id]: { url, workflowId } });
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
 * @throws UserError where there is none that is active, or more than one
 */
export function triggerOfThisWorkflow(context: IExecuteFunctions): string {
	const urls = Object.values(read(context)).map(({ url }) => url);
	if (urls.length > 1) {
		throw new UserError('This workflow has more than one Media Generation Trigger', {
			description: "Paste the production URL of the one to notify into 'Callback URL'.",
		});
	}
	const [url] = urls;
	if (url === undefined) {
		throw new UserError('No active Media Generation Trigger was found in this workflow', {
			description:
				"Add one and publish the workflow, or paste the URL of a trigger into 'Callback URL' (its test URL after you have pressed 'Execute step' there).",
		});
	}
	return url;
}
