import { rmSync } from 'node:fs';
import type { IDataObject, INode } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/estimateCost';
import { N8nClient } from '../n8n/client';
import { type N8nProcess, startN8n } from '../n8n/process';
import { isLikeN8n3, N8N_3, shortMinute } from '../n8n/settings';
import { makeUserFolder } from '../n8n/userFolder';
import { startService } from '../service/service';
import { Cluster, type Servers } from './cluster';
import { type Database, PostgresDatabase, SqliteDatabase } from './database';
import { BorrowedN8n, lentWith } from './lender';
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
	/** Added to n8n's environment. */
	env?: Record<string, string>;
	/** The service of another stage, where both are to use one account. */
	shared?: Stage['service'];
	/** Packages to install beside ours. */
	furtherTarballs?: string[];
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
		private readonly ownCluster: Cluster | undefined,
		private readonly borrowed: BorrowedN8n | undefined,
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
		const setting = { env, shared, furtherTarballs };
		return isLikeN8n3() ? await Stage.openLikeN8n3(setting) : await Stage.make(setting);
	}

	/** As n8n 3 will be: with one worker, which runs everything, and one webhook processor. */
	static async openLikeN8n3(setting: Setting = {}): Promise<Stage> {
		const env = { ...N8N_3, ...PATIENT, ...setting.env };
		return await Stage.openInQueueMode({ ...setting, env, workers: 1, webhooks: 1 });
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
		{ env: further = {}, shared, furtherTarballs = [] }: Setting,
		cluster?: Cluster,
	): Promise<Stage> {
		const env: Record<string, string> = { ...shortMinute(), ...further };
		const lent = furtherTarballs.length === 0 ? lentWith(env) : undefined;
		const borrowed = lent && (await BorrowedN8n.borrow(lent));
		if (borrowed) Object.assign(env, lent);
		const withDatabase = env.DB_TYPE === undefined;
		const n8n =
			borrowed?.process ??
			(await startN8n({
				userFolder: await makeUserFolder({ furtherTarballs, withDatabase }),
				env,
			}));
		const service = shared ?? (await startService({ settings: { latencyMs: 500 } }));
		const client = new N8nClient(n8n.url);
		await client.setUp();
		const { id, name } = await client.createCredential('Media Generation', 'mediaGenerationApi', {
			baseUrl: service.url,
			apiKey: service.apiKey,
		});
		return new Stage(
			service,
			n8n,
			client,
			{ id, name },
			n8n.userFolder,
			env,
			shared === undefined,
			cluster,
			borrowed,
		);
	}

	/** The further processes of an n8n in queue mode. @throws where there are none */
	get cluster(): Cluster {
		if (this.ownCluster === undefined) throw new Error('This n8n is one process.');
		return this.ownCluster;
	}

	/** The process that runs executions, of the first worker in queue mode. */
	get runner(): N8nProcess {
		return this.ownCluster?.workers[0] ?? this.n8n;
	}

	/** The process that takes production webhooks, the first webhook processor in queue mode. */
	get receiver(): N8nProcess {
		return this.ownCluster?.webhooks[0] ?? this.n8n;
	}

	/** Where production webhooks are called, e.g. `http://127.0.0.1:5678`. */
	get webhookUrl(): string {
		return this.receiver.url;
	}

	/** n8n's database; it is there also while n8n is not. */
	get database(): Database {
		const { ownCluster } = this;
		return ownCluster === undefined
			? new SqliteDatabase(() => this.n8n)
			: new PostgresDatabase((statements) => ownCluster.query(statements));
	}

	/** Kills n8n, all of its processes, as a power cut would. */
	async kill(): Promise<void> {
		await Promise.all([this.n8n.kill(), this.ownCluster?.killAll()]);
	}

	/** Shuts n8n down in order, all of its processes. */
	async stop(): Promise<void> {
		await Promise.all([this.n8n.stop(), this.ownCluster?.stopAll()]);
	}

	/**
	 * Starts n8n again on the same data and ports.
	 *
	 * @param env put over the environment of before
	 */
	async restart(env: Record<string, string> = {}): Promise<void> {
		Object.assign(this.env, env);
		const { userFolder, n8n, borrowed } = this;
		[this.n8n] = await Promise.all([
			borrowed?.start(this.env) ?? startN8n({ userFolder, env: this.env, port: n8n.port }),
			this.ownCluster?.restart(env),
		]);
	}

	/** A power cut, and n8n's next start. */
	async killAndRestart(): Promise<void> {
		await this.kill();
		await this.restart();
	}

	async close(): Promise<void> {
		try {
			if (this.borrowed) {
				await this.clearN8n();
				await this.borrowed.giveBack();
			} else {
				await this.n8n.kill();
				await this.ownCluster?.close();
				rmSync(this.userFolder, { recursive: true, force: true });
			}
		} finally {
			if (this.ownsService) await this.service.close();
		}
	}

	/** Leaves n8n to the next test file as it was. */
	private async clearN8n(): Promise<void> {
		const { client } = this;
		const unfinished = await client.listExecutions({ status: ['new', 'running', 'waiting'] });
		// One that ends meanwhile cannot be stopped.
		for (const { id } of unfinished) await client.stopExecution(id).catch(() => undefined);
		for (const { id } of await client.listWorkflows()) await client.deleteWorkflow(id);
		for (const { id } of await client.listCredentials()) await client.deleteCredential(id);
		await client.deleteDataTables();
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

	/** The action node, which generates an image for each item as its fields `prompt` and `simulate` say. */
	image(
		{ options, ...parameters }: IDataObject = {},
		{ name = 'Media', ...more }: Partial<INode> = {},
	): INode {
		const image = { resource: 'image', operation: 'generate', prompt: '={{ $json.prompt }}' };
		const simulate = { additionalInput: '={{ { simulate: $json.simulate } }}' };
		const all = { ...simulate, ...(options as IDataObject) };
		return this.mediaNode('mediaGeneration', name, { ...image, ...parameters, options: all }, more);
	}
}
