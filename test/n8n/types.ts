import type {
	ExecutionStatus,
	IRunExecutionData,
	IWorkflowBase,
	WorkflowExecuteMode,
} from 'n8n-workflow';

/** The owner of every instance that only tests see. */
export const TEST_OWNER = {
	email: 'owner@example.com',
	password: 'Media-generation-1',
	firstName: 'Olive',
	lastName: 'Owner',
};

/** A workflow as n8n exports it to a file. */
export type WorkflowDefinition = Pick<
	IWorkflowBase,
	'name' | 'nodes' | 'connections' | 'settings' | 'pinData'
>;

/** A workflow as n8n stores it. */
export type StoredWorkflow = WorkflowDefinition &
	Required<Pick<IWorkflowBase, 'id' | 'active' | 'isArchived' | 'versionId'>>;

export interface StoredCredential {
	id: string;
	name: string;
	type: string;
}

/** One line of the list of executions. */
export interface ExecutionSummary {
	id: string;
	mode: WorkflowExecuteMode;
	status: ExecutionStatus;
	/** ISO 8601. */
	stoppedAt?: string;
	/** ISO 8601, where the execution is suspended. */
	waitTill?: string | null;
	/** The execution that is retried. */
	retryOf?: string | null;
}

export interface Execution extends ExecutionSummary {
	data: IRunExecutionData;
}
