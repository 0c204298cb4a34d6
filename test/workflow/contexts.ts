import { HookContext, WebhookContext } from 'n8n-core';
import {
	type IRunExecutionData,
	type IWebhookData,
	type IWorkflowExecuteAdditionalData,
	type Workflow,
	type WorkflowActivateMode,
	type WorkflowExecuteMode,
} from 'n8n-workflow';

/** The path of the trigger's production URL. */
export const TRIGGER_PATH = '/webhook/3f1c2a/callback';

/** A node, and what n8n knows of its webhook. */
function webhookOf(workflow: Workflow, name: string, data: IWorkflowExecuteAdditionalData) {
	const node = workflow.getNode(name)!;
	const { description } = workflow.nodeTypes.getByNameAndVersion(node.type);
	const webhook: IWebhookData = {
		httpMethod: 'POST',
		node: name,
		path: TRIGGER_PATH,
		webhookDescription: description.webhooks![0]!,
		workflowId: workflow.id,
		workflowExecuteAdditionalData: data,
	};
	return { node, webhook };
}

/**
 * The context of a call of a node's webhook.
 *
 * @param name the node
 * @param run what is stored of the execution that waits; null where the call is to start one
 */
export function contextOfWebhook(
	workflow: Workflow,
	name: string,
	data: IWorkflowExecuteAdditionalData,
	mode: WorkflowExecuteMode,
	run: IRunExecutionData | null = null,
): WebhookContext {
	const { node, webhook } = webhookOf(workflow, name, data);
	return new WebhookContext(workflow, node, data, mode, webhook, [], run);
}

/** The context in which a trigger is published, or the contrary. */
export function contextOfHook(
	workflow: Workflow,
	name: string,
	data: IWorkflowExecuteAdditionalData,
	activation: WorkflowActivateMode,
): HookContext {
	const { node, webhook } = webhookOf(workflow, name, data);
	return new HookContext(workflow, node, data, 'trigger', activation, webhook);
}
