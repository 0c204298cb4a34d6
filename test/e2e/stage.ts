import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { IConnections, IDataObject, INode, INodeParameters } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import { N8nClient } from '../n8n/client';
import { installPackage, packPackage } from '../n8n/package';
import { type N8nProcess, startN8n } from '../n8n/process';
import { startService } from '../service/service';

const PACKAGE = 'n8n-nodes-media-generation';

/** A simulated service and a real n8n that has the packed tarball installed and a credential for the service. */
export class Stage {
	/** The key that n8n's credential holds, whatever the service takes for right. */
	readonly credentialKey: string;

	private constructor(
		readonly service: Awaited<ReturnType<typeof startService>>,
		public n8n: N8nProcess,
		readonly client: N8nClient,
		readonly credential: { id: string; name: string },
		readonly userFolder: string,
		private readonly env: Record<string, string>,
		private readonly ownsService: boolean,
	) {
		this.credentialKey = service.apiKey;
	}

	/**
	 * @param env added to n8n's environment
	 * @param shared the service of another stage, where both are to use one account
	 * @param furtherTarballs packages to install beside ours
	 */
	static async open(
		env: Record<string, string> = {},
		shared?: Stage['service'],
		furtherTarballs: string[] = [],
	): Promise<Stage> {
		const { tarball } = await packPackage();
		const userFolder = mkdtempSync(join(tmpdir(), 'media-generation-e2e-'));
		for (const each of [tarball, ...furtherTarballs]) await installPackage(userFolder, each);
		const n8n = await startN8n({ userFolder, env });
		const service = shared ?? (await startService({ settings: { latencyMs: 500 } }));
		const client = new N8nClient(n8n.url);
		await client.setUp();
		const { id, name } = await client.createCredential('Media Generation', 'mediaGenerationApi', {
			baseUrl: service.url,
			apiKey: service.apiKey,
		});
		return new Stage(service, n8n, client, { id, name }, userFolder, env, shared === undefined);
	}

	/** Kills n8n as a power cut would, and starts it again on the same data and port. */
	async killAndRestart(): Promise<void> {
		await this.n8n.kill();
		const { userFolder, env } = this;
		this.n8n = await startN8n({ userFolder, env, port: this.n8n.port });
	}

	async close(): Promise<void> {
		await this.n8n.stop();
		if (this.ownsService) await this.service.close();
		rmSync(this.userFolder, { recursive: true, force: true });
	}

	/** As if no test had been here before. */
	reset(): void {
		this.service.resetSettings();
		this.service.clear();
	}

	/** As many finished tasks, created elsewhere, whose callbacks nobody has delivered yet. */
	finishedTasks(count: number): string[] {
		return Array.from({ length: count }, (_, index) => {
			const { taskId } = this.service.createTask(IMAGE_MODEL, { prompt: `Task ${index}` });
			this.service.complete(taskId);
			return taskId;
		});
	}

	/**
	 * Starts a workflow that generates an image for each of some objects of the simulated service's switches.
	 *
	 * @param options the node's options
	 * @param more.completion when the items leave the node, whose name is `Media`
	 * @param more.node further settings of the node, such as *On Error*
	 * @param more.after nodes behind it
	 * @returns the id of the execution
	 */
	async startImages(
		switches: IDataObject[],
		options: IDataObject = {},
		more: { completion?: string; node?: Partial<INode>; after?: INode[] } = {},
	): Promise<string> {
		const items = switches.map((simulate, index) => ({ prompt: `Prompt ${index}`, simulate }));
		const parameters = {
			resource: 'image',
			operation: 'generate',
			prompt: '={{ $json.prompt }}',
			completion: more.completion ?? 'poll',
			options: { additionalInput: '={{ { simulate: $json.simulate } }}', ...options },
		};
		const workflow = await this.client.createWorkflow({
			name: `Images: ${switches.length}`,
			...inARow(
				manualTrigger(),
				itemsNode('Prompts', items),
				this.mediaNode('mediaGeneration', 'Media', parameters, more.node),
				...(more.after ?? []),
			),
		});
		return await this.client.run(workflow.id);
	}

	/** A node of this package, with the credential. */
	mediaNode(
		type: 'mediaGeneration' | 'mediaGenerationTrigger' | 'mediaGenerationCredits',
		name: string,
		parameters: IDataObject,
		more: Partial<INode> = {},
	): INode {
		const { credential } = this;
		return {
			...node(`${PACKAGE}.${type}`, name, parameters),
			credentials: { mediaGenerationApi: credential },
			...(type === 'mediaGenerationTrigger' && { webhookId: crypto.randomUUID() }),
			...more,
		} as INode;
	}
}

export function node(type: string, name: string, parameters: IDataObject, typeVersion = 1): INode {
	return {
		id: crypto.randomUUID(),
		name,
		type,
		typeVersion,
		position: [0, 0],
		parameters: parameters as INodeParameters,
	};
}

export const manualTrigger = () => node('n8n-nodes-base.manualTrigger', 'Start', {});

/** A node that puts out one item for each given object. */
export function itemsNode(name: string, items: IDataObject[]): INode {
	return node(
		'n8n-nodes-base.code',
		name,
		{ jsCode: `return ${JSON.stringify(items.map((json) => ({ json })))};` },
		2,
	);
}

/** Delivers a callback: the body as JSON, or a text as it is. */
export async function deliver(
	address: string,
	body: unknown,
	init: RequestInit = {},
): Promise<Response> {
	return await fetch(address, {
		method: 'POST',
		headers: { 'content-type': 'application/json' },
		body: typeof body === 'string' ? body : JSON.stringify(body),
		...init,
	});
}

/** Connects nodes in a row: the first output of each to the one after it. */
export function inARow(...nodes: INode[]) {
	const connections: IConnections = {};
	for (const [index, { name }] of nodes.slice(1).entries()) {
		const before = nodes[index]?.name ?? '';
		connections[before] = { main: [[{ node: name, type: 'main', index: 0 }]] };
	}
	return { nodes, connections };
}
