import { randomUUID } from 'node:crypto';
import type {
	ICredentialDataDecryptedObject,
	IDataObject,
	INode,
	INodeTypeDescription,
} from 'n8n-workflow';

import { Executions } from './executions';
import { N8nApiError } from './session';
import type { StoredCredential, StoredWorkflow, WorkflowDefinition } from './types';
import { until } from './until';

export { describe, outputItems } from './executions';
export { N8nApiError } from './session';
export * from './types';
export { until } from './until';

/** Speaks to a running n8n as its editor does. Every method throws an `N8nApiError` where n8n refuses. */
export class N8nClient extends Executions {
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

	/** Deletes a workflow; n8n wants it unpublished and archived first, and has that done some time after its answer. */
	async deleteWorkflow(id: string): Promise<void> {
		const { active, isArchived } = await this.getWorkflow(id);
		if (active) await this.unpublish(id);
		if (!isArchived) await this.send('POST', `/rest/workflows/${id}/archive`, {});
		await until(`workflow ${id} to be deleted`, 30_000, async () => {
			const deleting = this.send('DELETE', `/rest/workflows/${id}`);
			return await deleting.then(
				() => true,
				(error: unknown) => {
					if (error instanceof N8nApiError && error.status === 409) return false;
					throw error;
				},
			);
		});
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
}

function findManualTrigger({ name, nodes }: WorkflowDefinition): string {
	const trigger = nodes.find(({ type }) => type === 'n8n-nodes-base.manualTrigger');
	if (!trigger) throw new Error(`The workflow "${name}" has no manual trigger; name its trigger.`);
	return trigger.name;
}
