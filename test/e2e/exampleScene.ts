import type { ICredentialDataDecryptedObject, IDataObject, INode } from 'n8n-workflow';

import { prepare, readExample } from '../n8n/examples';
import { type LanguageModel, startLanguageModel } from '../n8n/languageModel';
import type { Execution, StoredCredential, WorkflowDefinition } from '../n8n/client';
import type { SimulatedTask } from '../service/service';
import { promptOf, Run, succeeded } from './run';
import { openScene, type Scene } from './scene';
import { Stage } from './stage';

/** Opens a scene in which the examples are run, with a stand-in for a language model. */
export function openExamples(): Examples {
	// Only an n8n with the editor tells its node types.
	const scene = openScene({ open: async () => await Stage.open() });
	const examples = new Examples(scene);
	beforeAll(async () => await examples.open());
	afterAll(async () => await examples.model?.close());
	return examples;
}

/** The models of the account, in place of the placeholders that the examples come with. */
const OWN_MODELS = [
	{ id: 'acme/painter-9', priceUsd: 0.08, unit: 'task' },
	{ id: 'acme/video-9', priceUsd: 0.1025, unit: 'second' },
];

export class Examples {
	model!: LanguageModel;

	private credentials: StoredCredential[] = [];

	constructor(readonly scene: Scene) {}

	async open(): Promise<void> {
		const { client, stage } = this.scene;
		this.model = await startLanguageModel();
		const access = { apiKey: 'none', url: this.model.url };
		this.credentials = [
			await client.createCredential('My account', 'mediaGenerationApi', {
				baseUrl: stage.service.url,
				apiKey: stage.service.apiKey,
				models: { model: OWN_MODELS },
			}),
			await client.createCredential('Language model', 'openAiApi', access),
		];
	}

	/** Adds a credential for the nodes of its type. */
	async addCredential(name: string, type: string, data: ICredentialDataDecryptedObject) {
		this.credentials.push(await this.scene.client.createCredential(name, type, data));
	}

	/** Imports an example, and chooses own models in its nodes. @param changes parameters of some of its nodes, put over those in the file */
	async import(name: string, changes: Record<string, IDataObject> = {}) {
		const definition = prepare(readExample(name), this.credentials);
		const [image, video] = OWN_MODELS.map(({ id }) => ({ __rl: true, mode: 'list', value: id }));
		for (const { parameters } of definition.nodes) {
			if (parameters.resource === 'image') parameters.model = image;
			if (parameters.resource === 'video') parameters.model = video;
		}
		for (const [node, parameters] of Object.entries(changes)) {
			Object.assign(nodeOf(definition, node).parameters, parameters);
		}
		return { ...definition, id: (await this.scene.client.createWorkflow(definition)).id };
	}

	async start({ id, name }: { id: string; name: string }): Promise<Run> {
		return new Run(this.scene, await this.scene.client.run(id), id, name);
	}

	async run(name: string): Promise<Execution> {
		return succeeded(await (await this.start(await this.import(name))).end());
	}
}

export function nodeOf({ nodes }: WorkflowDefinition, name: string): INode {
	const node = nodes.find((other) => other.name === name);
	if (!node) throw new Error(`There is no node "${name}".`);
	return node;
}

export const promptsOf = (tasks: SimulatedTask[]) =>
	tasks.map(({ record }) => promptOf(record)).sort();

/** The texts that an example's own list holds: by default its prompts. */
export function listed(
	name: string,
	{ node = 'Prompts', list = 'prompts', field = 'prompt' } = {},
): string[] {
	const { parameters } = nodeOf(readExample(name), node);
	const json = JSON.parse(String(parameters.jsonOutput)) as Record<string, IDataObject[]>;
	return (json[list] ?? []).map((entry) => String(entry[field])).sort();
}
