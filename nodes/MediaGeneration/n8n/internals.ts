import type {
	ExecutionStatus,
	FunctionsBase,
	ICredentialDataDecryptedObject,
	ICredentialsHelper,
	IDataObject,
	IExecuteData,
	IExecuteFunctions,
	INode,
	IRunExecutionData,
	ITaskData,
	WorkflowExecuteMode,
} from 'n8n-workflow';

import { clock, settled } from '../shared/clock';
import { hasText, isRecord } from '../shared/json';

/*
 * What n8n's contexts hold and no interface of n8n names (n8n 2.41): who calls, how the execution was started, whether it was
 * stopped, and what n8n stores. What one function relies on stands at the function. Without a note, these tests notice it:
 * test/e2e/process/callers.ts and test/e2e/tools.test.ts (callers), test/e2e/process/callbacks.ts (modes, addresses),
 * test/e2e/restart.test.ts (retries), test/e2e/queue.test.ts (stops), test/e2e/weekly/host.test.ts (engine v2).
 */

/** What the interfaces of n8n name, and some contexts lack: those of webhooks, of other versions, and of other engines. */
type Lacking = Pick<
	IExecuteFunctions,
	| 'getContext'
	| 'getExecuteData'
	| 'getExecutionCancelSignal'
	| 'getExecutionId'
	| 'getMode'
	| 'getParentNodes'
>;

/** Properties that each context of n8n has, although no interface of n8n names them. */
interface N8nInternals extends Partial<Lacking> {
	/** What n8n stores of the execution. */
	runExecutionData?: IRunExecutionData;
	/** Which run of the node this is: a loop has many. */
	runIndex?: number;
	workflow?: { nodes?: Record<string, INode> };
	/** The node as the helpers of the context know it. */
	node?: INode;
	additionalData?: {
		credentialsHelper?: ICredentialsHelper;
		/** n8n's public address with the path of production webhooks. */
		webhookBaseUrl?: unknown;
		/** The mode of the execution at the root of a sub-execution. */
		rootExecutionMode?: unknown;
		/** When n8n's time limit ends the execution, milliseconds since 1970. */
		executionTimeoutTimestamp?: unknown;
		hooks?: {
			/** The execution that *Retry execution* repeats. */
			retryOf?: unknown;
			addHandler?: (
				name: 'workflowExecuteAfter',
				handler: (run: { status: ExecutionStatus }) => Promise<void>,
			) => void;
			handlers?: { sendChunk?: unknown[] };
		};
		/** Whether the caller gets the answer piece by piece. */
		streamingEnabled?: unknown;
		/** Says what the process is doing with the execution. */
		setExecutionStatus?: (status: ExecutionStatus) => void;
	};
}

/**
 * Whether n8n has stored an error because an execution was stopped. The retry of a stopped execution begins with the
 * error of that execution.
 */
const isStopOf = (executionId: string, error: unknown): boolean =>
	isRecord(error) && isRecord(error.extra) && error.extra.executionId === executionId;

/** The same context, with the properties that no interface of n8n names. */
export const internalsOf = (context: object): N8nInternals => context;

/** The id of the execution; undefined if there is none, or n8n does not tell. */
export const executionIdOf = (context: object): string | undefined =>
	internalsOf(context).getExecutionId?.();

/** The execution that *Retry execution* repeats; undefined if this is no retry. */
export function retriedBy(context: object): string | undefined {
	const { retryOf } = internalsOf(context).additionalData?.hooks ?? {};
	return typeof retryOf === 'string' ? retryOf : undefined;
}

/**
 * Whether a worker runs the execution, in queue mode. A worker hands on each piece of an answer, also where nobody asks for
 * pieces (n8n 2.41), shown by test/e2e/queue.test.ts. Of a sub-workflow n8n does not tell.
 */
export function isOnWorker(context: object): boolean {
	const { hooks, streamingEnabled } = internalsOf(context).additionalData ?? {};
	return (hooks?.handlers?.sendChunk?.length ?? 0) > 0 && streamingEnabled !== true;
}

/** How the execution was started; undefined if n8n does not tell. */
export const modeOf = (context: object): WorkflowExecuteMode | undefined =>
	internalsOf(context).getMode?.();

/** Aborted when the execution is stopped; undefined if n8n does not tell. */
export const stopSignal = (context: object): AbortSignal | undefined =>
	internalsOf(context).getExecutionCancelSignal?.();

/** n8n has put this in the place of a run that a kill took away. */
const isMadeUp = ({ executionStatus, data }: ITaskData) =>
	executionStatus === 'crashed' ||
	data?.main?.[0]?.[0]?.json.isArtificialRecoveredEventItem === true;

/**
 * The number of the run of this node, as the executions have it that this execution goes on from: n8n puts a run into a
 * killed execution for each node that had begun, and was not stored (`ExecutionRecoveryService.amend`, n8n 2.41), shown by
 * test/e2e/restart.test.ts.
 */
export function runNumber(context: IExecuteFunctions): number {
	const { runIndex = 0, runExecutionData } = internalsOf(context);
	const runs = runExecutionData?.resultData.runData[context.getNode().name] ?? [];
	return runIndex - runs.slice(0, runIndex).filter(isMadeUp).length;
}

/** The entry of n8n's stack that runs; undefined if n8n does not tell. */
export const stackEntry = (context: object): IExecuteData | undefined =>
	internalsOf(context).getExecuteData?.();

/** The node as n8n runs it, where n8n tells: what is changed in it holds for this run. */
export const runningNode = (context: IExecuteFunctions): INode =>
	stackEntry(context)?.node ?? context.getNode();

/** The data of the node that n8n stores with the execution. n8n's Agents run a tool without one: nothing is kept. */
export const nodeContext = (context: IExecuteFunctions): IDataObject =>
	(executionIdOf(context) === undefined ? undefined : internalsOf(context).getContext?.('node')) ??
	{};

/**
 * Has the error that the node throws next end the execution. *On Error* would let the input of the node out. It relies on
 * n8n reading the settings of the node object on its stack after the error (n8n 2.41), shown by test/e2e/process/facts.ts and
 * test/e2e/process/callbacks.ts.
 */
export function endWithError(context: IExecuteFunctions): void {
	Object.assign(runningNode(context), { onError: 'stopWorkflow', continueOnFail: false });
}

/** A text as an expression contains it. For n8n an expression ends at the first pair of braces. */
export const inExpression = (text: string): string =>
	JSON.stringify(text).replace(/[{}\u2028\u2029]/g, (sign) => {
		return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
	});

/** The address of n8n's production webhooks by its present settings; undefined if n8n does not tell. */
export function webhookBase(context: object): string | undefined {
	const base = internalsOf(context).additionalData?.webhookBaseUrl;
	return typeof base === 'string' && URL.canParse(base) ? new URL(base).href : undefined;
}

export const settingsOf = (context: FunctionsBase): Record<string, unknown> => ({
	...context.getWorkflowSettings(),
});

/**
 * Whether n8n runs this workflow with engine v2. That engine keeps no data of a node between runs, resumes no execution,
 * and runs a trigger's `webhook` without its `execute`. It does not tell a running node the settings of the workflow, so
 * the id of the execution has to tell.
 */
export function isEngineV2(context: FunctionsBase): boolean {
	if (settingsOf(context).engineType === 'v2') return true;
	// In engine v2 the id is a UUID; in engine v1 it is a number.
	return String(executionIdOf(context)).includes('-');
}

/** Whether the node runs as a tool that n8n has supplied to an agent (before version 3) or to an MCP server. */
export const isSupplied = (context: IExecuteFunctions): boolean => context.isToolExecution();

/** Whether the node runs as a tool of an AI agent or of an MCP server. */
export const isTool = (context: IExecuteFunctions): boolean =>
	// From version 3 on, Agents run a tool as a node: only its type tells.
	isSupplied(context) || String(context.getNode().type).endsWith('Tool');

/** The type of the trigger at the root of an execution and its callers; undefined if n8n has stored no such execution. */
const triggerOf = (data: IRunExecutionData | undefined): string | undefined =>
	data?.executionData?.runtimeData?.triggerNode?.type;

const isMcpTrigger = (type: string | undefined): boolean => type?.endsWith('.mcpTrigger') === true;

/** Whether another execution waits for the end of this one. */
export function isCalled(context: IExecuteFunctions): boolean {
	const { parentExecution } = internalsOf(context).runExecutionData ?? {};
	// A retry names the caller of the execution that it repeats, and nobody waits for the retry.
	return !!parentExecution && parentExecution.shouldResume !== false && modeOf(context) !== 'retry';
}

/**
 * Whether who waits for the answer hangs up after a minute, as the clients of an MCP server do, also through a workflow
 * that is the tool. A caller that orders again then pays twice. The agent of a chat waits for as long as it takes.
 *
 * It relies on n8n's execution context, which a sub-workflow takes over from its caller (n8n 2.41), shown by
 * test/e2e/tools.test.ts. In one process an MCP server calls its tools before it has an execution: then the context names
 * no trigger.
 */
export function hangsUp(context: IExecuteFunctions): boolean {
	const { parentNode } = context as { parentNode?: INode };
	if (isMcpTrigger(parentNode?.type)) return true;
	const { runExecutionData, workflow } = internalsOf(context);
	const root = triggerOf(runExecutionData);
	if (isCalled(context)) {
		const hasContext = runExecutionData?.executionData?.runtimeData !== undefined;
		return root === undefined ? hasContext : isMcpTrigger(root);
	}
	if (!isSupplied(context)) return false;
	// An agent may be the tool that calls.
	const servers = Object.values(workflow?.nodes ?? {}).some(({ type }) => isMcpTrigger(type));
	return isMcpTrigger(root) || (root === undefined && servers);
}

/** When the caller began to wait, as far as n8n tells; milliseconds since 1970. */
export function calledSince(context: IExecuteFunctions): number {
	const { parentExecution, executionData } = internalsOf(context).runExecutionData ?? {};
	const contexts = [parentExecution?.executionContext, executionData?.runtimeData];
	return Math.min(...contexts.map((each) => each?.establishedAt ?? Infinity));
}

/**
 * Whether the items of a run may have different credentials: an expression in a credential is evaluated for an item. To
 * look up the credential of each item would cost n8n a query of its database for each. It relies on n8n's
 * `credentialsHelper` (n8n 2.41), shown by test/e2e/process/credential.ts.
 *
 * @param type the name of the credential's type
 * @returns also true if n8n does not tell
 */
export async function mayDifferByItem(context: IExecuteFunctions, type: string): Promise<boolean> {
	const { additionalData, node } = internalsOf(context);
	const { credentialsHelper } = additionalData ?? {};
	const details = node?.credentials?.[type];
	const mode = modeOf(context);
	if (credentialsHelper === undefined || details === undefined || mode === undefined) return true;
	const written: ICredentialDataDecryptedObject = await credentialsHelper.getDecrypted(
		additionalData as Parameters<typeof credentialsHelper.getDecrypted>[0],
		details,
		type,
		mode,
		undefined,
		true,
	);
	return hasText(written, (text) => text.startsWith('='));
}

/** Between two questions, milliseconds; and so many times as long as a question takes: n8n parses all that it has stored. */
const PAUSE_MS = 3_000;
const PAUSE_FACTOR = 5;

/**
 * Looks for the stop of a run, as n8n stores it. n8n tells a node of most stops by a signal. But in queue mode a worker
 * hears nothing if a webhook processor started the execution, and a sub-workflow hears nothing if somebody stops its
 * caller: shown on n8n 2.41 by test/e2e/process/facts.ts and test/e2e/queue.test.ts. Only these runs ask.
 *
 * @returns a function to be called before each order, which asks before the first one and then every few seconds. It says
 *   whether n8n had stored a stop when it was asked last.
 */
export function lookForStop(context: IExecuteFunctions): () => Promise<boolean> {
	const own = modeOf(context) === 'webhook' && isOnWorker(context);
	if (!own && !isCalled(context)) return async () => await Promise.resolve(false);
	let askAt = -Infinity;
	let last = Promise.resolve(false);
	const ask = async (): Promise<boolean> => {
		const begunAt = clock.now();
		const found = await settled(hasStoredStop(context, own));
		const now = clock.now();
		askAt = now + Math.max(PAUSE_MS, PAUSE_FACTOR * (now - begunAt));
		// If n8n does not answer, the run goes on.
		return 'value' in found && found.value;
	};
	return async () => {
		if (clock.now() < askAt) return await last;
		// Orders that come together share a question.
		askAt = Infinity;
		last = ask();
		return await last;
	};
}

/** Whether n8n has stored a stop of this execution, if that is asked, or of an execution that waits for its end. */
async function hasStoredStop(context: IExecuteFunctions, own: boolean): Promise<boolean> {
	const id = executionIdOf(context) ?? '';
	const { parentExecution: caller } = internalsOf(context).runExecutionData ?? {};
	if (own && isStopOf(id, (await context.getExecutionDataById(id))?.resultData.error)) return true;
	// A retry names the caller of the execution that it repeats, and nobody waits for the retry.
	let callers = internalsOf(context).additionalData?.rootExecutionMode === 'retry' ? 1 : Infinity;
	for (let next = caller; next?.shouldResume === true && callers > 0; callers--) {
		const { executionId } = next;
		const data = await context.getExecutionDataById(executionId);
		if (isStopOf(executionId, data?.resultData.error) || isOver(data)) return true;
		// n8n does not give the data of each caller that runs, so nothing follows where there are none.
		next = data?.parentExecution;
	}
	return false;
}

/**
 * Whether a caller is at its end, although it waits for the end of this run. A worker stores a stop so: without an error,
 * and with nothing that is still to run. An MCP server's execution ends before its tool begins.
 */
function isOver(data: IRunExecutionData | undefined): boolean {
	const { nodeExecutionStack: toRun, waitingExecution = {} } = data?.executionData ?? {};
	if (toRun?.length !== 0 || Object.keys(waitingExecution).length > 0) return false;
	return !isMcpTrigger(triggerOf(data)) || data?.parentExecution !== undefined;
}
