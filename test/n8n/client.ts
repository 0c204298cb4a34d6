import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type {
	ExecutionStatus,
	IConnections,
	ICredentialDataDecryptedObject,
	IDataObject,
	INode,
	INodeExecutionData,
	INodeTypeDescription,
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

/** Statuses of an execution that something still happens to. `waiting` is a suspended one. */
const UNFINISHED: ExecutionStatus[] = ['new', 'running', 'waiting', 'unknown'];

const REQUEST_TIMEOUT_MS = 60_000;
const LOOK_EVERY_MS = 150;

/** n8n refused a request, or answered it with an error. */
export class N8nApiError extends Error {
	constructor(
		readonly method: string,
		readonly path: string,
		readonly status: number,
		readonly body: string,
	) {
		super(`n8n answered ${method} ${path} with ${status}: ${body.slice(0, 2_000)}`);
		this.name = 'N8nApiError';
	}
}

/**
 * Speaks to a running n8n as its editor does, over the internal REST interface. Every method throws an
 * `N8nApiError` where n8n refuses.
 */
export class N8nClient {
	private cookie = '';

	/** @param url of the n8n, without a slash at the end */
	constructor(readonly url: string) {}

	/**
	 * Logs in as the owner, and makes the owner first on an instance that has none.
	 *
	 * @throws where the instance has an owner with another e-mail or password
	 */
	async setUp(owner: Owner = TEST_OWNER): Promise<void> {
		const settings = await this.get<{ userManagement: { showSetupOnFirstLoad: boolean } }>(
			'/rest/settings',
		);
		if (settings.userManagement.showSetupOnFirstLoad) {
			await this.send('POST', '/rest/owner/setup', owner);
		}
		await this.login(owner);
	}

	/** Logs in; the session is kept for all later calls. */
	async login({ email, password }: Pick<Owner, 'email' | 'password'>): Promise<void> {
		// The field's name in n8n 1.x is `email`.
		await this.send('POST', '/rest/login', { emailOrLdapLoginId: email, email, password });
	}

	/** The session, for a browser that should be logged in without the login page: name and value. */
	sessionCookie(): { name: string; value: string } {
		const [name = '', value = ''] = this.cookie.split('=');
		return { name, value };
	}

	/** @returns the descriptions of all node types that n8n has loaded, each version on its own */
	async nodeTypes(): Promise<INodeTypeDescription[]> {
		return await this.request<INodeTypeDescription[]>('GET', '/types/nodes.json');
	}

	async createCredential(
		name: string,
		type: string,
		data: ICredentialDataDecryptedObject,
	): Promise<StoredCredential> {
		return await this.send('POST', '/rest/credentials', { name, type, data });
	}

	async updateCredential(
		{ id, name, type }: StoredCredential,
		data: ICredentialDataDecryptedObject,
	): Promise<StoredCredential> {
		return await this.send('PATCH', `/rest/credentials/${id}`, { name, type, data });
	}

	async listCredentials(): Promise<StoredCredential[]> {
		return await this.get('/rest/credentials');
	}

	async deleteCredential(id: string): Promise<void> {
		await this.send('DELETE', `/rest/credentials/${id}`);
	}

	/**
	 * Tests a stored credential as the editor's panel does.
	 *
	 * @param data the stored data, or other data to try with it
	 * @returns n8n's verdict with its message
	 */
	async testCredential(
		{ id, name, type }: StoredCredential,
		data: ICredentialDataDecryptedObject,
	): Promise<{ status: 'OK' | 'Error'; message: string }> {
		return await this.send('POST', '/rest/credentials/test', {
			credentials: { id, name, type, data },
		});
	}

	/** @param definition with an `id`, where the workflow should get that one */
	async createWorkflow(definition: WorkflowDefinition & { id?: string }): Promise<StoredWorkflow> {
		// n8n refuses a workflow without settings, and n8n 1.x one that does not say whether it is active.
		return await this.send('POST', '/rest/workflows', {
			settings: {},
			active: false,
			...definition,
		});
	}

	async getWorkflow(id: string): Promise<StoredWorkflow> {
		return await this.get(`/rest/workflows/${id}`);
	}

	/** @returns all workflows that are not archived, without their nodes */
	async listWorkflows(): Promise<Array<Pick<StoredWorkflow, 'id' | 'name' | 'active'>>> {
		const filter = encodeURIComponent(JSON.stringify({ isArchived: false }));
		return await this.get(`/rest/workflows?take=250&filter=${filter}`);
	}

	/** Saves a workflow. What production triggers run changes only with the next `publish`. */
	async updateWorkflow(id: string, changes: Partial<WorkflowDefinition>): Promise<StoredWorkflow> {
		return await this.send('PATCH', `/rest/workflows/${id}`, changes);
	}

	/** Deletes a workflow; n8n wants it unpublished and archived first. */
	async deleteWorkflow(id: string): Promise<void> {
		const { active, isArchived } = await this.getWorkflow(id);
		if (active) await this.unpublish(id);
		if (!isArchived) await this.send('POST', `/rest/workflows/${id}/archive`, {});
		await this.send('DELETE', `/rest/workflows/${id}`);
	}

	/** Deletes all data tables of the owner; there are none before n8n 2. */
	async deleteDataTables(): Promise<void> {
		const { id: project } = await this.get<{ id: string }>('/rest/projects/personal');
		const path = `/rest/projects/${project}/data-tables`;
		const list = this.get<{ data: Array<{ id: string }> }>(path);
		const { data } = await list.catch(() => ({ data: [] }));
		for (const { id } of data) await this.send('DELETE', `${path}/${id}`);
	}

	/**
	 * Publishes ("activates") the saved version of a workflow and waits until the production webhooks of
	 * its nodes are registered, which n8n does some time after it has answered.
	 *
	 * @param webhooks paths to wait for, as `webhookPath` gives them
	 */
	async publish(id: string, webhooks: string[] = []): Promise<StoredWorkflow> {
		const { versionId } = await this.getWorkflow(id);
		const published = await this.send<StoredWorkflow>('POST', `/rest/workflows/${id}/activate`, {
			versionId,
		});
		for (const path of webhooks) await this.waitForWebhook(path);
		return published;
	}

	/** Takes a published workflow out of production. */
	async unpublish(id: string): Promise<StoredWorkflow> {
		return await this.send('POST', `/rest/workflows/${id}/deactivate`, {});
	}

	/**
	 * @param node a node with a webhook, as stored
	 * @param path the webhook's own path, as the node type declares it
	 * @returns the production path, e.g. `/webhook/<webhook id>/callback`; the one of the test is the same
	 * with `/webhook-test/`
	 */
	webhookPath(node: Pick<INode, 'name' | 'webhookId'>, path: string): string {
		if (!node.webhookId) throw new Error(`The node "${node.name}" has no webhookId.`);
		return `/webhook/${node.webhookId}/${path}`;
	}

	/**
	 * Waits until n8n has registered a production webhook. It asks by CORS preflights, which start nothing.
	 *
	 * @param path e.g. what `webhookPath` gives
	 * @param method HTTP method it is registered for
	 * @param timeoutMs how long to wait, in ms
	 * @throws where it is not there in time
	 */
	async waitForWebhook(path: string, method = 'POST', timeoutMs = 30_000): Promise<void> {
		await until(`the webhook ${method} ${path} to be registered`, timeoutMs, async () => {
			const response = await this.fetch(path, {
				method: 'OPTIONS',
				headers: { origin: this.url, 'access-control-request-method': method },
			});
			await response.arrayBuffer();
			const allowed = response.headers.get('access-control-allow-methods') ?? '';
			return allowed.split(', ').includes(method);
		});
	}

	/**
	 * Runs the saved version of a workflow as the editor's button does.
	 *
	 * @param id the workflow
	 * @param options.trigger name of the trigger node to start from; default: the first trigger without a
	 * webhook
	 * @param options.destination name of the node to stop after; default: run everything
	 * @returns the execution's id, as soon as it has started
	 * @throws where the trigger is one that waits for an event: see `listenForTestEvent`
	 */
	async run(id: string, options: { trigger?: string; destination?: string } = {}): Promise<string> {
		const workflow = await this.getWorkflow(id);
		const trigger = options.trigger ?? findManualTrigger(workflow);
		const answer = await this.startManually(workflow, trigger, options.destination);
		if (answer.executionId === undefined) {
			throw new Error(`"${trigger}" waits for an event; use listenForTestEvent().`);
		}
		return answer.executionId;
	}

	/**
	 * Has a webhook trigger listen for one test event, as "Listen for test event" does. n8n ends it after
	 * two minutes.
	 */
	async listenForTestEvent(id: string, trigger: string): Promise<void> {
		const answer = await this.startManually(await this.getWorkflow(id), trigger);
		if (answer.waitingForWebhook !== true) {
			throw new Error(`"${trigger}" started execution ${answer.executionId} at once.`);
		}
	}

	/** Ends what `listenForTestEvent` began. */
	async stopListening(id: string): Promise<void> {
		await this.send('DELETE', `/rest/test-webhook/${id}`);
	}

	private async startManually(
		workflow: StoredWorkflow,
		trigger: string,
		destination?: string,
	): Promise<{ executionId?: string; waitingForWebhook?: boolean }> {
		return await this.send('POST', `/rest/workflows/${workflow.id}/run`, {
			// Older versions of n8n run this; later ones overlook it and run what is saved, which is the same.
			workflowData: workflow,
			triggerToStartFrom: { name: trigger },
			...(destination === undefined
				? {}
				: { destinationNode: { nodeName: destination, mode: 'inclusive' } }),
		});
	}

	/**
	 * Says something to the chat trigger of a workflow that is not published, as the editor's chat does.
	 *
	 * @param trigger name of the chat trigger
	 * @param text what is said
	 * @returns what the last node put out, when the workflow has ended
	 */
	async chat(id: string, trigger: string, text: string): Promise<IDataObject> {
		const sessionId = randomUUID();
		await this.send('POST', `/rest/workflows/${id}/run`, {
			triggerToStartFrom: { name: trigger },
			chatSessionId: sessionId,
		});
		const message = { action: 'sendMessage', sessionId, chatInput: text };
		return await this.request('POST', `/webhook-test/${id}/${sessionId}`, message);
	}

	/** Stops an execution, a suspended one too. */
	async stopExecution(id: string): Promise<void> {
		await this.send('POST', `/rest/executions/${id}/stop`);
	}

	/** Deletes an execution, a suspended one too. */
	async deleteExecution(id: string): Promise<void> {
		await this.send('POST', '/rest/executions/delete', { ids: [id] });
	}

	/**
	 * Retries an execution that ended in an error and waits for its end.
	 *
	 * @param id the execution to repeat
	 * @param useSavedWorkflow with the workflow as it is saved now, rather than as it was then
	 * @returns the id of the new execution
	 */
	async retryExecution(id: string, useSavedWorkflow = false): Promise<string> {
		const { id: retried } = await this.send<{ id: string }>(
			'POST',
			`/rest/executions/${id}/retry`,
			{ loadWorkflow: useSavedWorkflow },
		);
		return retried;
	}

	/** @returns the latest executions, running and suspended ones among them, newest first; at most 100 */
	async listExecutions(
		filter: { workflowId?: string; status?: ExecutionStatus[] } = {},
	): Promise<ExecutionSummary[]> {
		const query = encodeURIComponent(JSON.stringify(filter));
		const { results } = await this.get<{ results: ExecutionSummary[] }>(
			`/rest/executions?limit=100&filter=${query}`,
		);
		return results;
	}

	/** @returns an execution with the data of its nodes */
	async getExecution(id: string): Promise<Execution> {
		// n8n sends run data as flatted JSON; the library has types for ES modules only.
		const { parse } = await import('flatted');
		const execution = await this.get<(Omit<Execution, 'data'> & { data: string }) | undefined>(
			`/rest/executions/${id}`,
		);
		if (execution === undefined) throw new Error(`n8n has no execution ${id}.`);
		const { data, ...rest } = execution;
		return { ...rest, data: parse(data) as IRunExecutionData };
	}

	/**
	 * Waits until an execution has come to its end, however it ended.
	 *
	 * @param timeoutMs how long to wait, in ms
	 * @throws where it has not ended in time
	 */
	async waitForExecution(id: string, timeoutMs = 60_000): Promise<Execution> {
		return await this.waitForStatus(id, (status) => !UNFINISHED.includes(status), timeoutMs);
	}

	/**
	 * Waits until an execution is suspended.
	 *
	 * @param timeoutMs how long to wait, in ms
	 * @throws where it ends instead, or is not suspended in time
	 */
	async waitForSuspension(id: string, timeoutMs = 60_000): Promise<Execution> {
		const execution = await this.waitForStatus(
			id,
			(status) => status === 'waiting' || !UNFINISHED.includes(status),
			timeoutMs,
		);
		if (execution.status === 'waiting') return execution;
		throw new Error(`Execution ${id} was not suspended; it ended with ${describe(execution)}.`);
	}

	private async waitForStatus(
		id: string,
		wanted: (status: ExecutionStatus) => boolean,
		timeoutMs: number,
	): Promise<Execution> {
		let status: ExecutionStatus = 'unknown';
		await until(
			() => `execution ${id} to end, which is ${status}`,
			timeoutMs,
			async () => {
				status = await this.getStatus(id);
				return wanted(status);
			},
		);
		return await this.getExecution(id);
	}

	/** An execution's status by the list, which spares n8n loading its data. */
	private async getStatus(id: string): Promise<ExecutionStatus> {
		try {
			const latest = await this.listExecutions();
			const listed = latest.find((execution) => execution.id === id);
			return (listed ?? (await this.getExecution(id))).status;
		} catch (error) {
			// n8n says so where it is too busy to hear from its database in time.
			if (error instanceof N8nApiError && error.status === 503) return 'unknown';
			throw error;
		}
	}

	/**
	 * Waits until a workflow has a number of finished executions, e.g. of its trigger.
	 *
	 * @param timeoutMs how long to wait, in ms
	 * @returns all executions of the workflow, newest first
	 * @throws where there are fewer in time
	 */
	async waitForExecutions(
		workflowId: string,
		count: number,
		timeoutMs = 60_000,
	): Promise<ExecutionSummary[]> {
		let executions: ExecutionSummary[] = [];
		await until(
			() =>
				`${count} finished executions of workflow ${workflowId}, which has ${executions.length}`,
			timeoutMs,
			async () => {
				executions = await this.listExecutions({ workflowId });
				return executions.filter(({ status }) => !UNFINISHED.includes(status)).length >= count;
			},
		);
		return executions;
	}

	/** A GET whose answer n8n wraps in `data`. */
	async get<T>(path: string): Promise<T> {
		return await this.send('GET', path);
	}

	/** A request whose answer n8n wraps in `data`, for what this class has no method for. */
	async send<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
		return (await this.request<{ data: T }>(method, path, body)).data;
	}

	private async request<T>(method: string, path: string, body?: unknown): Promise<T> {
		const response = await this.fetch(path, {
			method,
			headers: {
				...(body === undefined ? {} : { 'content-type': 'application/json' }),
				...(this.cookie ? { cookie: this.cookie } : {}),
			},
			body: body === undefined ? undefined : JSON.stringify(body),
		});
		const text = await response.text();
		if (!response.ok) throw new N8nApiError(method, path, response.status, text);
		for (const cookie of response.headers.getSetCookie()) {
			if (cookie.startsWith('n8n-auth=')) this.cookie = cookie.slice(0, cookie.indexOf(';'));
		}
		return (text === '' ? {} : JSON.parse(text)) as T;
	}

	private async fetch(path: string, options: RequestInit): Promise<Response> {
		try {
			const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
			return await fetch(this.url + path, { ...options, signal });
		} catch (error) {
			const reason = error instanceof Error ? (error.cause ?? error) : error;
			throw new Error(`n8n did not answer ${options.method} ${path}: ${String(reason)}`, {
				cause: error,
			});
		}
	}
}

/**
 * @param node name of a node
 * @param output index of its output
 * @param run which of its runs, in a loop; default: the last
 * @returns the items that left the node; none where it did not run
 */
export function outputItems(
	execution: Execution,
	node: string,
	output = 0,
	run = -1,
): INodeExecutionData[] {
	return execution.data.resultData.runData[node]?.at(run)?.data?.main?.[output] ?? [];
}

/** @returns status, and message of the error where there is one, for an error's or a test's text */
export function describe({ status, data }: Pick<Execution, 'status' | 'data'>): string {
	const error = data.resultData.error;
	const description = error?.description ? ` (${error.description})` : '';
	return error ? `${status}: ${error.message}${description}` : status;
}

function findManualTrigger({ name, nodes }: WorkflowDefinition): string {
	const trigger = nodes.find(({ type }) => type === 'n8n-nodes-base.manualTrigger');
	if (!trigger) throw new Error(`The workflow "${name}" has no manual trigger; name its trigger.`);
	return trigger.name;
}

/**
 * Waits until a condition holds, and looks often.
 *
 * @param what completes "Waited in vain for …"
 * @param timeoutMs how long to wait, in ms
 * @throws where it does not hold in time
 */
export async function until(
	what: string | (() => string),
	timeoutMs: number,
	condition: () => Promise<boolean>,
): Promise<void> {
	const deadline = performance.now() + timeoutMs;
	while (!(await condition())) {
		if (performance.now() > deadline) {
			const text = typeof what === 'string' ? what : what();
			throw new Error(`Waited ${timeoutMs / 1000} s in vain for ${text}.`);
		}
		await sleep(LOOK_EVERY_MS);
	}
}
