import type {
	ExecutionStatus,
	IConnections,
	INode,
	IPinData,
	IRunExecutionData,
	IWorkflowSettings,
	WorkflowExecuteMode,
} from 'n8n-workflow';

/** Who the instance belongs to. */
export interface Owner {
	email: string;
	/** 8 to 64 characters, with a digit and an upper-case letter: n8n's own rule. */
	password: string;
	firstName: string;
	lastName: string;
}

/** The owner of every instance that only tests see. */
export const TEST_OWNER: Owner = {
	email: 'owner@example.com',
	password: 'Media-generation-1',
	firstName: 'Olive',
	lastName: 'Owner',
};

/** A workflow as n8n exports it to a file. */
export interface WorkflowDefinition {
	name: string;
	nodes: INode[];
	connections: IConnections;
	settings?: IWorkflowSettings;
	pinData?: IPinData;
	meta?: Record<string, unknown>;
}

/** A workflow as n8n stores it. */
export interface StoredWorkflow extends WorkflowDefinition {
	id: string;
	active: boolean;
	/** The version that is edited. */
	versionId: string;
	/** The version that production triggers run; null while the workflow is not published. */
	activeVersionId: string | null;
	isArchived: boolean;
}

export interface StoredCredential {
	id: string;
	name: string;
	type: string;
}

/** One line of the list of executions. */
export interface ExecutionSummary {
	id: string;
	workflowId: string;
	mode: WorkflowExecuteMode;
	status: ExecutionStatus;
	/** ISO 8601; null while it waits in a queue. */
	startedAt: string | null;
	stoppedAt?: string;
	/** ISO 8601, where the execution is suspended. */
	waitTill?: string | null;
	retryOf?: string | null;
	retrySuccessId?: string | null;
}

export interface Execution extends ExecutionSummary {
	finished: boolean;
	data: IRunExecutionData;
	workflowData: WorkflowDefinition;
}
