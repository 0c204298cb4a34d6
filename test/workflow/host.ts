import { ExecutionLifecycleHooks, ExternalSecretsProxy } from 'n8n-core';
import {
	type IWorkflowBase,
	type IWorkflowExecuteAdditionalData,
	type WorkflowExecuteMode,
} from 'n8n-workflow';

/** Where n8n is reached. */
export const N8N_URL = 'https://n8n.test';

/**
 * What n8n tells its engine of an execution, as far as it is the same wherever the nodes run, and as far as the engine and
 * the nodes ask for it.
 */
export function hostData(
	executionId: string,
	mode: WorkflowExecuteMode,
	isActive = true,
	retryOf?: string,
): Omit<IWorkflowExecuteAdditionalData, 'credentialsHelper' | 'executeWorkflow'> {
	const workflowData = { id: 'workflow', name: 'Test', active: isActive } as IWorkflowBase;
	const data: Partial<IWorkflowExecuteAdditionalData> = {
		externalSecretsProxy: new ExternalSecretsProxy(),
		hooks: new ExecutionLifecycleHooks(mode, executionId, workflowData, retryOf),
		executionId,
		currentNodeExecutionIndex: 0,
		variables: {},
		restApiUrl: `${N8N_URL}/rest`,
		instanceBaseUrl: `${N8N_URL}/`,
		formWaitingBaseUrl: `${N8N_URL}/form-waiting`,
		webhookBaseUrl: `${N8N_URL}/webhook`,
		webhookWaitingBaseUrl: `${N8N_URL}/webhook-waiting`,
		webhookTestBaseUrl: `${N8N_URL}/webhook-test`,
		getRunExecutionData: async () => undefined,
	};
	return data as IWorkflowExecuteAdditionalData;
}
