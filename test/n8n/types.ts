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
}

/** A workflow as n8n stores it. */
export interface StoredWorkflow extends WorkflowDefinition {
	id: string;
	active: boolean;
	/** The version that is edited. */
	versionId: string;
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
	mode: WorkflowExecuteMode;
	status: ExecutionStatus;
	/** ISO 8601. */
	stoppedAt?: string;
	/** ISO 8601, where the execution is suspended. */
	waitTill?: string | null;
}

export interface Execution extends ExecutionSummary {
	data: IRunExecutionData;
}
