import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { ICredentialDataDecryptedObject, INode } from 'n8n-workflow';
import {
	type N8nClient,
	type StoredCredential,
	type StoredWorkflow,
	type WorkflowDefinition,
	N8nApiError,
} from './client';
const FOLDER = resolve(__dirname, '../../examples');
const PACKAGE = 'n8n-nodes-media-generation';

/** A prompt of an example that the simulated service fails, so that both of its ends are seen. */
const FAILING_PROMPTS: Record<string, string> = {
	'batch-of-prompts': 'A forest path in autumn fog',
	'rewrite-refused-prompts': 'A dragon asleep in a library, ink drawing',
};
const FAILURE = {
	outcome: 'FAILURE',
	failureMessage: 'The picture was held back by the content filter.',
};

/** @returns the names of the files in `examples/`, without their extension */
export const listExamples = (): string[] =>
	readdirSync(FOLDER)
		.flatMap((file) => /^(.*)\.json$/.exec(file)?.[1] ?? [])
		.sort();

/** The node with the list of prompts, and the list. */
function listOf({ name, nodes }: WorkflowDefinition) {
	const node = nodes.find((each) => each.name === 'Prompts');
	if (!node) throw new Error(`The example ${name} has no node Prompts.`);
	const list = JSON.parse(String(node.parameters.jsonOutput)) as {
		prompts: Array<{ prompt: string; additionalInput?: object }>;
	};
	return { node, list };
}

/** @returns the list in the node *Prompts*; a prompt that is told to fail has further input */
export const promptsOf = (workflow: WorkflowDefinition) => listOf(workflow).list.prompts;

/**
 * @returns the workflow in `examples/<name>.json`, as a user would import it; one prompt of some tells the
 * simulated service to fail it
 */
export function readExample(name: string): WorkflowDefinition {
	const text = readFileSync(join(FOLDER, `${name}.json`), 'utf8');
	const definition = JSON.parse(text) as WorkflowDefinition;
	const refused = FAILING_PROMPTS[name];
	if (refused === undefined) return definition;
	const { node, list } = listOf(definition);
	const failing = list.prompts.find(({ prompt }) => prompt === refused);
	if (!failing) throw new Error(`The example ${name} has no "${refused}".`);
	failing.additionalInput = { simulate: FAILURE };
	node.parameters.jsonOutput = JSON.stringify(list, null, 2);
	return definition;
}

/** Creates the demo's credential for the service, or brings it up to date. */
export const saveCredential = async (
	client: N8nClient,
	data: ICredentialDataDecryptedObject,
): Promise<StoredCredential> => await save(client, 'Simulated service', 'mediaGenerationApi', data);

/** Creates the demo's credential for a language model at this *Base URL*, or brings it up to date. */
export async function saveModelCredential(client: N8nClient, url: string) {
	const data = { apiKey: 'none is needed', url };
	return await save(client, 'Stand-in for a language model', 'openAiApi', data);
}

async function save(
	client: N8nClient,
	name: string,
	type: string,
	data: ICredentialDataDecryptedObject,
): Promise<StoredCredential> {
	const all = await client.listCredentials();
	const existing = all.find((each) => each.name === name && each.type === type);
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
		// An id in n8n's own form that is the same at every start, so that links to an example stay good.
		const id = createHash('sha256').update(`demo/${name}`).digest('hex').slice(0, 16);
		const workflow = await saveWorkflow(client, id, definition);
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
) {
	const webhooks = nodes
		.filter(({ type }) => type === `${PACKAGE}.mediaGenerationTrigger`)
		.map((node) => client.webhookPath(node, 'callback'));
	if (webhooks.length > 0) await client.publish(id, webhooks);
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
		const found = credentials.find((other) => other.type === type);
		return {
			...node,
			...(found && { credentials: { [found.type]: { id: found.id, name: found.name } } }),
			...(HAS_WEBHOOK.test(node.type) && { webhookId: node.id }),
		};
	});
	return { ...definition, nodes };
}

/** Nodes whose webhook's URL carries the node's own id. */
const HAS_WEBHOOK = /\.(mediaGenerationTrigger|chatTrigger|wait)$/;

function credentialType({ type }: INode): string | undefined {
	if (type.startsWith(`${PACKAGE}.`)) return 'mediaGenerationApi';
	if (type === 'n8n-nodes-base.s3') return 's3';
	return type === '@n8n/n8n-nodes-langchain.lmChatOpenAi' ? 'openAiApi' : undefined;
}

async function saveWorkflow(client: N8nClient, id: string, definition: WorkflowDefinition) {
	const existing = await client.getWorkflow(id).catch((error: unknown) => {
		if (error instanceof N8nApiError && error.status === 404) return undefined;
		throw error;
	});
	if (existing && !existing.isArchived) return await client.updateWorkflow(id, definition);
	if (existing) await client.deleteWorkflow(id);
	return await client.createWorkflow({ ...definition, id });
}
