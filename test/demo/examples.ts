import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { ICredentialDataDecryptedObject, INode } from 'n8n-workflow';
import {
	type N8nClient,
	type StoredCredential,
	type StoredWorkflow,
	type WorkflowDefinition,
	N8nApiError,
} from '../n8n/client';
const FOLDER = resolve(__dirname, '../../examples');
const PACKAGE = 'n8n-nodes-media-generation';
const TRIGGER = `${PACKAGE}.mediaGenerationTrigger`;
const CHAT_MODEL = '@n8n/n8n-nodes-langchain.lmChatOpenAi';

/** A prompt of an example that the simulated service fails, so that both of its ends are seen. */
const FAILING_PROMPTS: Record<string, string> = {
	'batch-of-prompts': 'A forest path in autumn fog',
	'rewrite-refused-prompts': 'A dragon asleep in a library, ink drawing',
};
const FAILURE = {
	outcome: 'FAILURE',
	failureMessage: 'The picture was held back by the content filter.',
};

/** Where the service is, as the credential says it. */
export interface ServiceAccess {
	baseUrl: string;
	apiKey: string;
}

/** @returns the names of the files in `examples/`, without their extension */
export function listExamples(): string[] {
	return readdirSync(FOLDER)
		.filter((file) => file.endsWith('.json'))
		.map((file) => basename(file, '.json'))
		.sort();
}

/**
 * @returns the workflow in `examples/<name>.json`, as a user would import it; one prompt of some tells the
 * simulated service to fail it
 */
export function readExample(name: string): WorkflowDefinition {
	const definition: WorkflowDefinition = JSON.parse(
		readFileSync(join(FOLDER, `${name}.json`), 'utf8'),
	);
	const failing = FAILING_PROMPTS[name];
	if (failing !== undefined) failPrompt(definition, failing);
	return definition;
}

function failPrompt({ name, nodes }: WorkflowDefinition, text: string): void {
	const node = nodes.find((other) => other.name === 'Prompts');
	const list = JSON.parse(String(node?.parameters.jsonOutput)) as {
		prompts: Array<{ prompt: string; additionalInput?: object }>;
	};
	const failing = list.prompts.find(({ prompt }) => prompt === text);
	if (!node || !failing) throw new Error(`The example ${name} has no "${text}".`);
	failing.additionalInput = { simulate: FAILURE };
	node.parameters.jsonOutput = JSON.stringify(list, null, 2);
}

/** Creates the demo's credential for the service, or brings it up to date. */
export async function saveCredential(
	client: N8nClient,
	{ baseUrl, apiKey }: ServiceAccess,
): Promise<StoredCredential> {
	return await save(client, 'Simulated service', 'mediaGenerationApi', { baseUrl, apiKey });
}

/**
 * Creates the demo's credential for a language model, or brings it up to date.
 *
 * @param url where the model is, as the credential's *Base URL* says it
 */
export async function saveModelCredential(
	client: N8nClient,
	url: string,
): Promise<StoredCredential> {
	return await save(client, 'Stand-in for a language model', 'openAiApi', {
		apiKey: 'none is needed',
		url,
	});
}

async function save(
	client: N8nClient,
	name: string,
	type: string,
	data: ICredentialDataDecryptedObject,
): Promise<StoredCredential> {
	const existing = (await client.listCredentials()).find(
		(credential) => credential.name === name && credential.type === type,
	);
	return existing
		? await client.updateCredential(existing, data)
		: await client.createCredential(name, type, data);
}

/**
 * Puts every workflow of `examples/` into n8n, with the credentials chosen in its nodes. Those of an earlier
 * start are brought back to what the files say. What has a Media Generation Trigger is published, so that
 * callbacks reach it.
 *
 * @returns the stored workflows by the names of their files
 */
export async function saveExamples(
	client: N8nClient,
	credentials: StoredCredential[],
): Promise<Map<string, StoredWorkflow>> {
	const stored = new Map<string, StoredWorkflow>();
	for (const name of listExamples()) {
		const definition = prepare(readExample(name), credentials);
		const workflow = await saveWorkflow(client, workflowId(name), definition);
		await publishTriggers(client, workflow.id, definition);
		stored.set(name, workflow);
	}
	return stored;
}

/** Publishes a workflow that has a Media Generation Trigger, and waits until callbacks reach it. */
export async function publishTriggers(
	client: N8nClient,
	id: string,
	{ nodes }: WorkflowDefinition,
): Promise<void> {
	const triggers = nodes.filter(({ type }) => type === TRIGGER);
	if (triggers.length === 0) return;
	const webhooks = triggers.map((node) => client.webhookPath(node, 'callback'));
	await client.publish(id, webhooks);
}

/**
 * Does to a workflow what a user does in the editor after the import: chooses the credentials. It also gives
 * triggers the id in their URL that the editor would give them.
 */
export function prepare(
	definition: WorkflowDefinition,
	credentials: StoredCredential[],
): WorkflowDefinition {
	const nodes = definition.nodes.map((node): INode => {
		const type = credentialType(node);
		const credential = credentials.find((other) => other.type === type);
		return {
			...node,
			...(credential && {
				credentials: { [credential.type]: { id: credential.id, name: credential.name } },
			}),
			...(HAS_WEBHOOK.test(node.type) ? { webhookId: node.id } : {}),
		};
	});
	return { ...definition, nodes };
}

/** Nodes whose webhook's URL carries the node's own id. */
const HAS_WEBHOOK = /\.(mediaGenerationTrigger|chatTrigger|wait)$/;

function credentialType({ type }: INode): string | undefined {
	if (type.startsWith(`${PACKAGE}.`)) return 'mediaGenerationApi';
	return type === CHAT_MODEL ? 'openAiApi' : undefined;
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
