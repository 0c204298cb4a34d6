import { rmSync } from 'node:fs';
import type { IDataObject, INode } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/money';
import { N8nClient, type WorkflowDefinition } from '../n8n/client';
import { type N8nProcess, startN8n } from '../n8n/process';
import { isLikeN8n3, N8N_3, NO_RUNNER, shortMinute } from '../n8n/settings';
import { makeUserFolder } from '../n8n/userFolder';
import { type SimulatedService, startService } from '../service/service';
import { Cluster, type Servers } from './cluster';
import { type Database, PostgresDatabase, SqliteDatabase } from './database';
import { node } from './nodes';

export * from './nodes';

const PACKAGE = 'n8n-nodes-media-generation';

/**
 * A process of n8n has two connections to PostgreSQL. On a busy machine hundreds of callbacks at once wait longer for
 * one than the 20 s after which n8n answers 500.
 */
const PATIENT = { DB_POSTGRESDB_CONNECTION_TIMEOUT: '120000' };

/** What a stage is made of, beside n8n's one process. */
interface Setting {
	/** Added to n8n's environment. Default: no task runner. */
	env?: Record<string, string>;
	/** The service of another stage, where both are to use one account. */
	shared?: SimulatedService;
	/** Packages to install beside ours. */
	furtherTarballs?: string[];
	/** With the package installed. Default: a new one, with a database that is there already. */
	userFolder?: string;
}

/** How many processes n8n has in queue mode, beside the main one. */
interface QueueMode extends Setting {
	workers: number;
	webhooks: number;
	/** Default: those of the machine. */
	servers?: Servers;
}

/**
 * A simulated service and a real n8n that has the packed tarball installed and a credential for the service. With
 * `N8N_SETTINGS=n8n3` that n8n is in queue mode, and has what n8n 3 will set.
 */
export class Stage {
	private constructor(
		readonly service: SimulatedService,
		public n8n: N8nProcess,
		readonly client: N8nClient,
		readonly credential: { id: string; name: string },
		private readonly env: Record<string, string>,
		private readonly ownsService: boolean,
		private readonly ownCluster: Cluster | undefined,
	) {}

	static async open({ env = NO_RUNNER, ...setting }: Setting = {}): Promise<Stage> {
		if (!isLikeN8n3()) return await Stage.make({ ...setting, env });
		// One worker, which runs everything, and one webhook processor.
		const patient = { ...setting, env: { ...PATIENT, ...env } };
		return await Stage.openInQueueMode({ ...patient, workers: 1, webhooks: 1 });
	}

	/** @throws where PostgreSQL or Redis is missing */
	static async openInQueueMode(mode: QueueMode): Promise<Stage> {
		const cluster = await Cluster.prepare(mode.servers, {
			...shortMinute(),
			...(isLikeN8n3() && N8N_3),
			...mode.env,
		});
		try {
			const stage = await Stage.make({ ...mode, env: cluster.env }, cluster);
			await cluster.start(stage.userFolder, mode.workers, mode.webhooks);
			return stage;
		} catch (error) {
			await cluster.close();
			throw error;
		}
	}

	private static async make(
		{ env: further = {}, shared, furtherTarballs = [], userFolder: given }: Setting,
		cluster?: Cluster,
	): Promise<Stage> {
		const env: Record<string, string> = { ...shortMinute(), ...further };
		const withDatabase = env.DB_TYPE === undefined;
		const userFolder = given ?? (await makeUserFolder({ furtherTarballs, withDatabase }));
		const n8n = await startN8n({ userFolder, env });
		try {
			const service = shared ?? (await startService({ settings: { latencyMs: 500 } }));
			const client = new N8nClient(n8n.url);
			await client.setUp();
			const { id, name } = await client.createCredential('Media Generation', 'mediaGenerationApi', {
				baseUrl: service.url,
				apiKey: service.apiKey,
			});
			return new Stage(service, n8n, client, { id, name }, env, shared === undefined, cluster);
		} catch (error) {
			await n8n.kill();
			throw error;
		}
	}

	/** The same n8n with a service of its own: another account. */
	async withAnotherAccount(): Promise<Stage> {
		const service = await startService({ settings: { latencyMs: 500 } });
		const { id, name } = await this.client.createCredential('Another', 'mediaGenerationApi', {
			baseUrl: service.url,
			apiKey: service.apiKey,
		});
		return new Stage(service, this.n8n, this.client, { id, name }, this.env, true, this.ownCluster);
	}

	/** The further processes of an n8n in queue mode. @throws where there are none */
	get cluster(): Cluster {
		if (this.ownCluster === undefined) throw new Error('This n8n is one process.');
		return this.ownCluster;
	}

	get userFolder(): string {
		return this.n8n.userFolder;
	}

	/** The processes that run executions. */
	get runners(): readonly N8nProcess[] {
		return this.ownCluster?.workers ?? [this.n8n];
	}

	/** The first of them. */
	get runner(): N8nProcess {
		return this.runners[0] ?? this.n8n;
	}

	/** The process that takes production webhooks. */
	get receiver(): N8nProcess {
		return this.ownCluster?.webhooks[0] ?? this.n8n;
	}

	get webhookUrl(): string {
		return this.receiver.url;
	}

	/** n8n's database; it is there also while n8n is not. */
	get database(): Database {
		const { ownCluster } = this;
		if (ownCluster === undefined) return new SqliteDatabase(() => this.n8n);
		return new PostgresDatabase((statements) => ownCluster.query(statements));
	}

	/** Kills n8n, all of its processes, as a power cut would. */
	async kill(): Promise<void> {
		await Promise.all([this.n8n.kill(), this.ownCluster?.endAll('kill')]);
	}

	/** Shuts n8n down in order, all of its processes. */
	async stop(): Promise<void> {
		await Promise.all([this.n8n.stop(), this.ownCluster?.endAll('stop')]);
	}

	/** Starts n8n again on the same data and ports. @param changes put over the environment of before */
	async restart(changes: Record<string, string> = {}): Promise<void> {
		Object.assign(this.env, changes);
		const { env } = this;
		const { userFolder, port } = this.n8n;
		[this.n8n] = await Promise.all([
			startN8n({ userFolder, env, port }),
			this.ownCluster?.restart(changes),
		]);
	}

	async killAndRestart(): Promise<void> {
		await this.kill();
		await this.restart();
	}

	async close(): Promise<void> {
		try {
			await this.n8n.kill();
			await this.ownCluster?.close();
			rmSync(this.userFolder, { recursive: true, force: true });
		} finally {
			if (this.ownsService) await this.service.close();
		}
	}

	/** Publishes a workflow with a webhook, and calls that. @returns the workflow's id, and the answer */
	async callWebhook(definition: WorkflowDefinition): Promise<{ id: string; response: Response }> {
		const { id } = await this.client.createWorkflow(definition);
		const start = definition.nodes.find(({ type }) => type === 'n8n-nodes-base.webhook');
		const path = `/webhook/${start?.webhookId}`;
		await this.client.publish(id, [path]);
		return { id, response: await fetch(this.webhookUrl + path, { method: 'POST' }) };
	}

	/** As many finished tasks, created elsewhere, whose callbacks nobody has delivered yet. */
	finishedTasks(count: number): string[] {
		return Array.from({ length: count }, (_, index) => {
			const { taskId } = this.service.createTask(IMAGE_MODEL, { prompt: `Task ${index}` });
			this.service.complete(taskId);
			return taskId;
		});
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

	/**
	 * The action node, which generates an image for each item as its fields `prompt` and `simulate` say. Its file is
	 * downloaded only where the options say so.
	 */
	image(
		{ options, ...parameters }: IDataObject = {},
		{ name = 'Media', ...more }: Partial<INode> = {},
	): INode {
		const image = { resource: 'image', operation: 'generate', prompt: '={{ $json.prompt }}' };
		const simulate = { additionalInput: '={{ { simulate: $json.simulate } }}' };
		const all: IDataObject = { ...simulate, ...(options as IDataObject) };
		// The switches of one node are not meant for the next.
		const { downloadResults = false, includeInput = false, ...others } = all;
		const shown = { downloadResults, includeInput, ...parameters };
		return this.mediaNode('mediaGeneration', name, { ...image, ...shown, options: others }, more);
	}
}
