import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { INode } from 'n8n-workflow';
import type {
	N8nClient,
	StoredCredential,
	StoredWorkflow,
	WorkflowDefinition,
} from '../n8n/client';
import { N8nApiError } from '../n8n/client';

const FOLDER = resolve(__dirname, '../../examples');
const PACKAGE = 'n8n-nodes-media-generation';
const TRIGGER = `${PACKAGE}.mediaGenerationTrigger`;
const CREDENTIAL_TYPE = 'mediaGenerationApi';
const CREDENTIAL_NAME = 'Simulated service';

/** Where the service is, as the credential says it. */
export interface ServiceAccess {
	baseUrl: string;
	apiKey: string;
}

/** @returns the workflow in `examples/<name>.json`, as a user would import it */
export function readExample(name: string): WorkflowDefinition {
	return JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8'));
}

/** Creates the demo's credential, or brings it up to date. */
export async function saveCredential(
	client: N8nClient,
	service: ServiceAccess,
): Promise<StoredCredential> {
	const data = { baseUrl: service.baseUrl, apiKey: service.apiKey };
	const existing = (await client.listCredentials()).find(
		({ name, type }) => name === CREDENTIAL_NAME && type === CREDENTIAL_TYPE,
	);
	return existing
		? await client.updateCredential(existing, data)
		: await client.createCredential(CREDENTIAL_NAME, CREDENTIAL_TYPE, data);
}

/**
 * Puts every workflow of `examples/` into n8n, with the credential chosen in its nodes. Those of an earlier
 * start are brought back to what the files say. What has a trigger is published, so that callbacks reach it.
 *
 * @returns the stored workflows by the names of their files
 */
export async function saveExamples(
	client: N8nClient,
	credential: StoredCredential,
): Promise<Map<string, StoredWorkflow>> {
	const stored = new Map<string, StoredWorkflow>();
	for (const file of readdirSync(FOLDER)
		.filter((name) => name.endsWith('.json'))
		.sort()) {
		const name = basename(file, '.json');
		const definition = readExample(name);
		const nodes = definition.nodes.map((node) => prepare(node, credential));
		const workflow = await saveWorkflow(client, workflowId(name), { ...definition, nodes });
		const triggers = nodes.filter(({ type }) => type === TRIGGER);
		if (triggers.length > 0) {
			await client.publish(
				workflow.id,
				triggers.map((node) => client.webhookPath(node, 'callback')),
			);
		}
		stored.set(name, workflow);
	}
	return stored;
}

/** Chooses the credential, and gives a trigger the id in its URL that the editor would give it. */
function prepare(node: INode, { id, name }: StoredCredential): INode {
	if (!node.type.startsWith(`${PACKAGE}.`)) return node;
	return {
		...node,
		credentials: { [CREDENTIAL_TYPE]: { id, name } },
		...(node.type === TRIGGER ? { webhookId: node.id } : {}),
	};
}

async function saveWorkflow(
	client: N8nClient,
	id: string,
	definition: WorkflowDefinition,
): Promise<StoredWorkflow> {
	const existing = await findWorkflow(client, id);
	if (existing && !existing.isArchived) return await client.updateWorkflow(id, definition);
	if (existing) await client.deleteWorkflow(id);
	return await client.createWorkflow({ ...definition, id });
}

async function findWorkflow(client: N8nClient, id: string): Promise<StoredWorkflow | undefined> {
	try {
		return await client.getWorkflow(id);
	} catch (error) {
		if (error instanceof N8nApiError && error.status === 404) return undefined;
		throw error;
	}
}

/** An id in n8n's own form that is the same at every start, so that links to an example stay good. */
function workflowId(name: string): string {
	return createHash('sha256').update(`demo/${name}`).digest('hex').slice(0, 16);
}
