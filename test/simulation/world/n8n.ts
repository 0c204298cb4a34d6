import { EventEmitter } from 'node:events';

import {
	ExecutionLifecycleHooks,
	ExternalSecretsProxy,
	HookContext,
	WebhookContext,
	WorkflowExecute,
} from 'n8n-core';
import {
	createRunExecutionData,
	type IDataObject,
	type IExecuteData,
	type INodeExecutionData,
	type INodeTypes,
	type IRun,
	type IRunExecutionData,
	type IWebhookData,
	type IWorkflowExecuteAdditionalData,
	UnexpectedError,
	Workflow,
	type WorkflowExecuteMode,
} from 'n8n-workflow';

import { credentialsHelper } from './credentials';
import type { NodeSources } from './nodeSources';
import { Process, type Role } from './process';
import { ProcessedData } from './processedData';
import { itemOf } from './service';
import type { Activity } from './time';
import type { World } from './world';
import { fromStored, toStored } from './stored';
import {
	connections,
	helperNodes,
	nodesOf,
	TRIGGER_PATH,
	type TriggerEvents,
	WORKFLOW_ID,
} from './workflow';

type Status = 'new' | 'running' | 'waiting' | 'success' | 'error' | 'canceled' | 'crashed';

/** An execution as n8n's database keeps it. */
export interface Row {
	id: string;
	mode: WorkflowExecuteMode;
	/** The node that it starts at. */
	start: string;
	status: Status;
	data: string;
	retryOf: string | undefined;
	retriedBy: string | undefined;
	/** Where it runs, or ran last. */
	process: Process | undefined;
	startedAt: number;
	endedAt: number | undefined;
}

/** What the rest of a workflow was started with. */
export interface Sunk {
	at: number;
	execution: string;
	mode: WorkflowExecuteMode;
	node: string;
	items: INodeExecutionData[];
}

const BASE = 'https://n8n.test/';

/** The model of n8n around its real engine: what it stores, and who runs what when. */
export class N8n {
	readonly rows = new Map<string, Row>();

	readonly sunk: Sunk[] = [];

	readonly ledger: ProcessedData;

	/** The credential as users have entered it. */
	credential: { baseUrl: string; apiKey: string };

	isActive = false;

	/** How the user has set the trigger's events. */
	events: TriggerEvents = 'both';

	/** How often a user has asked for an item, by its name. */
	readonly asks = new Map<string, number>();

	private staticData = '{}';

	private readonly processes = new Map<string, Process>();

	/** How often each process was started. */
	private readonly boots = new Map<string, number>();

	private asked = 0;

	constructor(
		private readonly world: World,
		private readonly sources: NodeSources,
	) {
		this.ledger = new ProcessedData(world);
		this.credential = { baseUrl: 'https://service.test', apiKey: world.service.key };
		const names: Array<[string, Role]> =
			world.history.n8n === 'one process'
				? [['main', 'main']]
				: [
						['main', 'main'],
						['worker-1', 'worker'],
						['worker-2', 'worker'],
						['webhook-1', 'webhook'],
						['webhook-2', 'webhook'],
					];
		for (const [index, [name, role]] of names.entries()) this.boot(name, role, index);
	}

	/** Starts a process, which dies where the history says so. */
	private boot(name: string, role: Role, index: number): void {
		const { history, time, isTroubled } = this.world;
		const count = history.n8n === 'one process' ? 1 : 5;
		const deaths = history.kills.filter(({ process }) => process % count === index);
		const boots = this.boots.get(name) ?? 0;
		this.boots.set(name, boots + 1);
		const kill = isTroubled ? deaths[boots] : undefined;
		const onDeath = (dead: Process) => {
			this.world.note(`${role === 'main' ? 'main process' : role} killed`);
			this.world.trace(`${name}: dies`);
			time.later(kill?.downMs ?? 1_000, () => {
				this.recover(dead);
				this.boot(name, role, index);
				this.world.trace(`${name}: starts again`);
			});
			return time.count;
		};
		this.processes.set(name, new Process(name, role, this.sources.load(), kill, onDeath));
	}

	/** What was running in a process that died is marked as crashed when n8n is back. */
	private recover(dead: Process): void {
		for (const row of this.rows.values()) {
			if (row.process === dead && row.status === 'running') this.end(row, 'crashed');
		}
	}

	private end(row: Row, status: Status): void {
		row.status = status;
		row.endedAt = this.world.time.now;
		this.world.trace(`n8n: execution ${row.id} is ${status}`);
	}

	/** A query of the present process: done where it takes place, and heard of where the process still lives then. */
	async query<T>(work: () => T): Promise<T> {
		const { time, random } = this.world;
		const { activity } = time;
		if (activity.process && !activity.process.effect()) return await new Promise(() => undefined);
		const there = random.between(1, 5, 'query', time.count);
		const back = random.between(1, 5, 'result', time.count);
		return await new Promise<T>((resolve, reject) => {
			time.later(there, () => {
				try {
					const result = work();
					time.schedule(back, () => resolve(result), activity);
				} catch (error) {
					time.schedule(back, () => reject(error as Error), activity);
				}
			});
		});
	}

	private living(role: Role): Process[] {
		return [...this.processes.values()].filter(
			(process) => process.role === role && !process.isDead,
		);
	}

	/** Does something in a process, as an activity of its own. */
	private within(process: Process, name: string, work: () => Promise<unknown>): void {
		const activity: Activity = { process, name };
		this.world.time.begin(activity, async () => {
			try {
				await work();
			} catch (error) {
				this.world.trace(`${process.name}: ${name}: ${String(error)}`);
			}
		});
	}

	/** A user starts the workflow by hand or by a form, with items of her own. */
	start(): void {
		const ask = ++this.asked;
		const items = Array.from({ length: this.world.history.node.items }, (_, index) => {
			const name = `ask ${ask}, item ${index}`;
			this.asks.set(name, 1);
			return { json: { prompt: name } };
		});
		this.world.trace(`user: starts the workflow with ${items.length} items (ask ${ask})`);
		this.enter('trigger', 'Start', items);
	}

	/** A user delivers the callbacks of all tasks once more. */
	redeliver(): void {
		const items = this.world.service.tasks
			.filter(({ webhookUrl }) => webhookUrl !== undefined)
			.map(({ id }) => ({ json: { taskId: id } }));
		if (items.length === 0) return;
		this.world.trace(`user: redelivers ${items.length} tasks`);
		this.enter('trigger', 'Again', items);
	}

	/** A user stops what runs. */
	stop(): void {
		const row = [...this.rows.values()].findLast(
			({ status, start }) => (status === 'running' || status === 'waiting') && start === 'Start',
		);
		const main = this.living('main')[0];
		if (!row || !main) return;
		this.world.note('stopped by the user');
		this.world.trace(`user: stops execution ${row.id}`);
		this.within(main, `stop of ${row.id}`, async () => {
			const stored = await this.query(() => row.data);
			if (row.status !== 'running' && row.status !== 'waiting') return;
			const { process } = row;
			if (process && !process.isDead) {
				this.within(process, `execution ${row.id}`, async () => {
					process.running.get(row.id)?.cancel();
				});
			}
			const data = fromStored(stored);
			data.resultData.error = { message: 'The execution was cancelled manually' } as never;
			await this.query(() => {
				row.data = toStored(data);
				this.end(row, 'canceled');
			});
		});
	}

	/** A user retries the execution that failed last. */
	retry(match: (row: Row) => boolean = ({ start }) => start === 'Start'): boolean {
		const row = [...this.rows.values()].findLast(
			(candidate) =>
				['error', 'canceled', 'crashed'].includes(candidate.status) &&
				candidate.retriedBy === undefined &&
				match(candidate),
		);
		if (!row || !this.living('main')[0]) return false;
		const data = fromStored(row.data);
		const { lastNodeExecuted } = data.resultData;
		if (lastNodeExecuted) {
			delete data.resultData.error;
			const runs = data.resultData.runData[lastNodeExecuted];
			if (runs?.at(-1)?.error !== undefined) runs.pop();
		}
		const [next] = data.executionData?.nodeExecutionStack ?? [];
		if (!next) return false;
		this.world.note('retried by the user');
		// Of an execution that was stopped or killed n8n may have kept nothing but its beginning.
		if (next.node.name === 'Start') {
			for (const { json } of next.data.main?.[0] ?? []) {
				const name = itemOf(json);
				this.asks.set(name, (this.asks.get(name) ?? 0) + 1);
			}
		}
		row.retriedBy = this.store('retry', row.start, toStored(data), row.id).id;
		this.world.trace(`user: retries execution ${row.id} as ${row.retriedBy}`);
		return true;
	}

	/** A user switches the workflow on or off. */
	activate(isActive: boolean): void {
		const main = this.living('main')[0];
		if (!main) return;
		this.world.trace(`user: switches the workflow ${isActive ? 'on' : 'off'}`);
		this.within(main, 'activation', async () => {
			const workflow = this.workflow(main);
			const node = workflow.getNode('Trigger');
			if (!node) throw new UnexpectedError('No trigger');
			const data = this.additionalData(main, 'activation', 'trigger');
			const hook = new HookContext(
				workflow,
				node,
				data,
				'trigger',
				isActive ? 'activate' : 'update',
				webhookData(workflow, data),
			);
			const methods = main.nodes.mediaGenerationTrigger.webhookMethods?.default;
			if (isActive) await methods?.create?.call(hook);
			else await methods?.delete?.call(hook);
			const staticData = JSON.stringify(workflow.staticData);
			await this.query(() => {
				this.staticData = staticData;
				this.isActive = isActive;
			});
		});
	}

	/** Stores a new execution and has it run. */
	private enter(mode: WorkflowExecuteMode, start: string, items: INodeExecutionData[]): void {
		this.store(mode, start, toStored(startData(this.stackOf(start, items))), undefined);
	}

	private stackOf(start: string, items: INodeExecutionData[]): IExecuteData {
		const node = nodesOf(this.world.history, this.events).find(({ name }) => name === start);
		if (!node) throw new UnexpectedError(`No node ${start}`);
		return { node, data: { main: [items] }, source: null };
	}

	private store(
		mode: WorkflowExecuteMode,
		start: string,
		data: string,
		retryOf: string | undefined,
		home?: Process,
	): Row {
		const id = String(this.rows.size + 1);
		const row: Row = {
			id,
			mode,
			start,
			status: 'new',
			data,
			retryOf,
			retriedBy: undefined,
			process: undefined,
			startedAt: this.world.time.now,
			endedAt: undefined,
		};
		this.rows.set(id, row);
		this.dispatch(row, home);
		return row;
	}

	/** Gives an execution to a process: the one that stored it, or in queue mode the next worker that is free. */
	private dispatch(row: Row, home: Process | undefined): void {
		const { history, time, random } = this.world;
		const take = () => {
			if (row.status !== 'new') return;
			const candidates = this.living(history.n8n === 'queue mode' ? 'worker' : 'main');
			const process =
				home && !home.isDead && home.role === 'main' && history.n8n === 'one process'
					? home
					: candidates[random.between(0, candidates.length - 1, 'worker', row.id)];
			if (!process) {
				time.later(1_000, take);
				return;
			}
			row.status = 'running';
			row.process = process;
			this.within(process, `execution ${row.id}`, async () => await this.execute(process, row));
		};
		time.later(random.between(1, 20, 'dispatch', row.id), take);
	}

	private async execute(process: Process, row: Row): Promise<void> {
		const data = fromStored(await this.query(() => row.data));
		this.world.trace(`${process.name}: runs execution ${row.id} (${row.mode}, ${row.start})`);
		const workflow = this.workflow(process);
		const additional = this.additionalData(process, row.id, row.mode);
		additional.hooks?.addHandler('workflowExecuteAfter', async (run) => await this.save(row, run));
		const engine = new WorkflowExecute(additional, row.mode, data);
		const execution = engine.processRunExecutionData(workflow);
		process.running.set(row.id, execution);
		await execution;
		process.running.delete(row.id);
	}

	private async save(row: Row, run: IRun): Promise<void> {
		const data = toStored(run.data);
		await this.query(() => {
			row.data = data;
			if (row.status !== 'running') return;
			this.end(row, run.status as Status);
			const { error } = run.data.resultData;
			if (error) this.world.trace(`n8n: execution ${row.id} says "${error.message}"`);
		});
	}

	/**
	 * A request to a webhook of n8n's.
	 *
	 * @param answer called with the answer, if there is one
	 */
	receive(url: URL, body: unknown, answer: (status: number, body: unknown) => void): void {
		const { history, time, random } = this.world;
		const doors = this.living(history.n8n === 'queue mode' ? 'webhook' : 'main');
		const process = doors[random.between(0, doors.length - 1, 'door', time.count)];
		if (!process) {
			time.later(1, () => answer(502, { message: 'Bad gateway' }));
			return;
		}
		if (!this.isActive || url.pathname !== TRIGGER_PATH) {
			time.later(1, () => answer(404, { message: 'The requested webhook is not registered' }));
			return;
		}
		this.within(process, `callback ${time.count}`, async () => {
			const response = new Response((status, said) => {
				if (!process.effect()) return;
				time.later(1, () => answer(status, said));
				time.schedule(1, () => response.close());
			});
			await this.admit(process, url, body, response);
		});
	}

	private async admit(
		process: Process,
		url: URL,
		body: unknown,
		response: Response,
	): Promise<void> {
		const workflow = this.workflow(process);
		const node = workflow.getNode('Trigger');
		if (!node) throw new UnexpectedError('No trigger');
		const data = {
			...this.additionalData(process, 'none', 'webhook'),
			httpRequest: requestOf(url, body),
			httpResponse: response as never,
		} as IWorkflowExecuteAdditionalData;
		const hook = webhookData(workflow, data);
		const context = new WebhookContext(workflow, node, data, 'webhook', hook, [], null);
		const { webhook } = process.nodes.mediaGenerationTrigger;
		let result;
		try {
			result = await webhook?.call(context);
		} catch (error) {
			this.world.trace(`${process.name}: the webhook fails: ${String(error)}`);
			response.status(500).json({ message: 'Error in workflow' });
			return;
		}
		const items = result?.workflowData?.[0];
		if (!items) return;
		const stored = toStored(startData(this.stackOf('Trigger', items)));
		await this.query(() => this.store('webhook', 'Trigger', stored, undefined, process));
		response.status(200).json(result?.webhookResponse);
	}

	private workflow(process: Process): Workflow {
		return new Workflow({
			id: WORKFLOW_ID,
			name: 'Simulated',
			nodes: nodesOf(this.world.history, this.events).map((node) => ({ ...node })),
			connections,
			active: this.isActive,
			nodeTypes: this.nodeTypes(process),
			staticData: JSON.parse(this.staticData) as IDataObject,
			settings: { executionOrder: 'v1' },
		});
	}

	private nodeTypes({ nodes }: Process): INodeTypes {
		const helpers = helperNodes((node, execution, mode, items) =>
			this.sink(node, execution, mode, items),
		);
		const byName = (name: string) => {
			switch (name) {
				case 'mediaGeneration':
					return nodes.mediaGeneration;
				case 'mediaGenerationTrigger':
					return nodes.mediaGenerationTrigger;
				default:
					return helpers[name as keyof typeof helpers];
			}
		};
		return { getByName: byName, getByNameAndVersion: byName, getKnownTypes: () => ({}) };
	}

	/** The rest of a workflow begins: something is posted, a customer gets a mail. */
	private sink(
		node: string,
		execution: string,
		mode: WorkflowExecuteMode,
		items: INodeExecutionData[],
	): void {
		const { activity, now } = this.world.time;
		if (activity.process && !activity.process.effect()) return;
		this.sunk.push({ at: now, execution, mode, node, items });
		this.world.trace(`n8n: execution ${execution} reaches ${node} with ${items.length} items`);
	}

	private additionalData(
		process: Process,
		executionId: string,
		mode: WorkflowExecuteMode,
	): IWorkflowExecuteAdditionalData {
		const workflowData = {
			id: WORKFLOW_ID,
			name: 'Simulated',
			active: this.isActive,
			activeVersionId: null,
			isArchived: false,
			createdAt: new Date(0),
			updatedAt: new Date(0),
			nodes: [],
			connections: {},
		};
		return {
			credentialsHelper: credentialsHelper(
				process.nodes.credential,
				async () => await this.query(() => ({ ...this.credential })),
			),
			externalSecretsProxy: new ExternalSecretsProxy(),
			hooks: new ExecutionLifecycleHooks(mode, executionId, workflowData),
			executionId,
			currentNodeExecutionIndex: 0,
			variables: {},
			restApiUrl: `${BASE}rest`,
			instanceBaseUrl: BASE,
			formBaseUrl: `${BASE}form`,
			formWaitingBaseUrl: `${BASE}form-waiting`,
			formTestBaseUrl: `${BASE}form-test`,
			webhookBaseUrl: `${BASE}webhook`,
			webhookWaitingBaseUrl: `${BASE}webhook-waiting`,
			webhookTestBaseUrl: `${BASE}webhook-test`,
			mcpBaseUrl: `${BASE}mcp`,
			mcpTestBaseUrl: `${BASE}mcp-test`,
			logAiEvent: () => {},
			getRuntimeCredential: async () => undefined,
			getRunExecutionData: async () => undefined,
			executeWorkflow: async () => await Promise.reject(new UnexpectedError('No sub-workflows')),
			startRunnerTask: async () => await Promise.reject(new UnexpectedError('No task runners')),
		};
	}
}

const startData = (first: IExecuteData): IRunExecutionData =>
	createRunExecutionData({ executionData: { nodeExecutionStack: [first] } });

function webhookData(workflow: Workflow, data: IWorkflowExecuteAdditionalData): IWebhookData {
	const type = workflow.nodeTypes.getByNameAndVersion('mediaGenerationTrigger');
	const [webhookDescription] = type.description.webhooks ?? [];
	if (!webhookDescription) throw new UnexpectedError('The trigger has no webhook');
	return {
		httpMethod: 'POST',
		node: 'Trigger',
		path: TRIGGER_PATH,
		webhookDescription,
		workflowId: WORKFLOW_ID,
		workflowExecuteAdditionalData: data,
	};
}

function requestOf(url: URL, body: unknown): never {
	const rawBody = Buffer.from(JSON.stringify(body));
	return {
		method: 'POST',
		originalUrl: url.pathname + url.search,
		url: url.pathname + url.search,
		headers: { host: url.host, 'content-length': String(rawBody.length) },
		query: Object.fromEntries(url.searchParams),
		params: {},
		body,
		rawBody,
	} as never;
}

/** Express's response, as far as a webhook uses it. */
class Response extends EventEmitter {
	statusCode = 200;

	writableFinished = false;

	destroyed = false;

	headersSent = false;

	constructor(private readonly send: (status: number, body: unknown) => void) {
		super();
	}

	status(code: number): this {
		this.statusCode = code;
		return this;
	}

	set(): this {
		return this;
	}

	json(body: unknown): this {
		this.headersSent = true;
		this.send(this.statusCode, body);
		return this;
	}

	close(): void {
		this.writableFinished = true;
		this.emit('close');
	}
}
