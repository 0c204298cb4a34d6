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

export { describe, hasEnded, outputItems } from './executions';
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

	/** Tests a stored credential with these data as the editor's panel does. */
	async testCredential(
		credential: StoredCredential,
		data: ICredentialDataDecryptedObject,
	): Promise<{ status: 'OK' | 'Error'; message: string }> {
		const credentials = { ...credential, data };
		return await this.send('POST', '/rest/credentials/test', { credentials });
	}

	/** @param definition with an `id`, where the workflow should get that one */
	async createWorkflow(definition: WorkflowDefinition & { id?: string }): Promise<StoredWorkflow> {
		// n8n refuses a workflow without settings.
		return await this.send('POST', '/rest/workflows', { settings: {}, ...definition });
	}

	async getWorkflow(id: string): Promise<StoredWorkflow> {
		return await this.get(`/rest/workflows/${id}`);
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
			try {
				await this.send('DELETE', `/rest/workflows/${id}`);
				return true;
			} catch (error) {
				if (error instanceof N8nApiError && error.status === 409) return false;
				throw error;
			}
		});
	}

	/** @returns where the data tables of the owner are, and which there are: none before n8n 2 */
	async dataTables() {
		const { id } = await this.get<{ id: string }>('/rest/projects/personal');
		const path = `/rest/projects/${id}/data-tables`;
		const list = this.get<{ data: Array<{ id: string; name: string }> }>(path);
		return { path, tables: (await list.catch(() => ({ data: [] }))).data };
	}

	/**
	 * Publishes ("activates") the saved version of a workflow.
	 *
	 * @param webhooks paths to wait for, as `webhookPath` gives them: n8n registers them after its answer
	 */
	async publish(id: string, webhooks: string[] = []): Promise<void> {
		const { versionId } = await this.getWorkflow(id);
		await this.send('POST', `/rest/workflows/${id}/activate`, { versionId });
		for (const path of webhooks) await this.waitForWebhook(path);
	}

	async unpublish(id: string): Promise<void> {
		await this.send('POST', `/rest/workflows/${id}/deactivate`, {});
	}

	/** @returns the production path of a node's webhook, e.g. `/webhook/<webhook id>/callback` */
	webhookPath(node: Pick<INode, 'name' | 'webhookId'>, path: string): string {
		if (!node.webhookId) throw new Error(`The node "${node.name}" has no webhookId.`);
		return `/webhook/${node.webhookId}/${path}`;
	}

	/** Waits until n8n has registered a production webhook. It asks by CORS preflights, which start nothing. */
	async waitForWebhook(path: string): Promise<void> {
		await until(`the webhook ${path} to be registered`, 90_000, async () => {
			const headers = { origin: this.url, 'access-control-request-method': 'POST' };
			const response = await this.fetch(path, { method: 'OPTIONS', headers });
			await response.arrayBuffer();
			const allowed = response.headers.get('access-control-allow-methods') ?? '';
			return allowed.split(', ').includes('POST');
		});
	}

	/**
	 * Runs the saved version of a workflow as the editor's button does.
	 *
	 * @param options.trigger name of the node to start from; default: the manual trigger
	 * @param options.destination name of the node to stop after
	 * @returns the execution's id, as soon as it has started
	 */
	async run(id: string, options: { trigger?: string; destination?: string } = {}): Promise<string> {
		const workflow = await this.getWorkflow(id);
		const trigger = options.trigger ?? findManualTrigger(workflow);
		const { executionId } = await this.startManually(workflow, trigger, options.destination);
		if (executionId === undefined) throw new Error(`"${trigger}" waits for an event.`);
		return executionId;
	}

	/** Has a trigger listen for one test event, for two minutes. */
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
			...(destination && { destinationNode: { nodeName: destination, mode: 'inclusive' } }),
		});
	}

	/**
	 * Says something to the chat trigger of a workflow that is not published, as the editor's chat does.
	 *
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
