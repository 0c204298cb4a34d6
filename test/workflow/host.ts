import { ExecutionLifecycleHooks, ExternalSecretsProxy } from 'n8n-core';
import {
	UnexpectedError,
	type IWorkflowExecuteAdditionalData,
	type WorkflowExecuteMode,
} from 'n8n-workflow';

/** Where n8n is reached. */
const BASE = 'https://n8n.test/';

/** What n8n tells its engine of an execution, as far as it is the same wherever the nodes run. */
export function hostData(
	executionId: string,
	mode: WorkflowExecuteMode,
	isActive = true,
	retryOf?: string,
): Omit<IWorkflowExecuteAdditionalData, 'credentialsHelper' | 'executeWorkflow'> {
	const workflowData = {
		id: 'workflow',
		name: 'Test',
		active: isActive,
		activeVersionId: null,
		isArchived: false,
		createdAt: new Date(0),
		updatedAt: new Date(0),
		nodes: [],
		connections: {},
	};
	return {
		externalSecretsProxy: new ExternalSecretsProxy(),
		hooks: new ExecutionLifecycleHooks(mode, executionId, workflowData, retryOf),
		executionId,
		currentNodeExecutionIndex: 0,
		variables: {},
		restApiUrl: `${BASE}rest`,
		instanceBaseUrl: BASE,
		formBaseUrl: `${BASE}form`,
		formWaitingBaseUrl: `${BASE}form-waiting`,
		formTestBaseUrl: `${BASE}form-test`,
		webhookBaseUrl: `${BASE}webhook`,
		webhookWaitingBaseUrl: `${BASE}webhook-waiting`,
		webhookTestBaseUrl: `${BASE}webhook-test`,
		mcpBaseUrl: `${BASE}mcp`,
		mcpTestBaseUrl: `${BASE}mcp-test`,
		logAiEvent: () => {},
		getRuntimeCredential: async () => undefined,
		getRunExecutionData: async () => undefined,
		startRunnerTask: async () => await Promise.reject(new UnexpectedError('No task runners here')),
	};
}
