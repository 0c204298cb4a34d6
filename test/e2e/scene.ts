import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject, INode, IWorkflowSettings } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/money';
import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackAddress';
import { type Execution, until, type WorkflowDefinition } from '../n8n/client';
import { LEAN } from '../n8n/settings';
import type { LoggedRequest, SimulatedTask } from '../service/service';
import { Collector } from './collector';
import {
	deliver,
	inARow,
	itemNodes,
	lanes,
	manualTrigger,
	ONE_REQUEST,
	prompts,
	type Steps,
	webhook,
} from './nodes';
import { itemsOf, Run, succeeded } from './run';
import { Stage } from './stage';

/** Options of a wait that sleeps from the start, with all of its tasks under way. */
export const AT_ONCE = { suspendAfter: 0, maxInFlight: 1_000 };

/** Input that is another one each time that n8n reads it: a random seed makes no other order of an item. */
export const RANDOM = {
	additionalInput: '={{ { simulate: $json.simulate, seed: Math.random() } }}',
};

/** The first turn creates some of the tasks, and later ones the others. */
const TURNS: IDataObject = { ...RANDOM, suspendAfter: 0, maxInFlight: 2 };

/** More tasks than a run orders in the time in which it hears of a stop. */
const ALL_AT_ONCE = 1_000;

/** A run has heard of a stop within this time, milliseconds: where n8n tells it nothing, it asks every few seconds. */
const HEARD_MS = 6_000;

/** How images are ordered. */
export interface Order {
	/** Begins the prompts, and so tells the tasks of this run from those of others. */
	name?: string;
	options?: IDataObject;
	/** The node's other parameters. */
	parameters?: IDataObject;
	/** Whether a webhook starts the run: a run by hand is watched, and sleeps later. */
	byWebhook?: boolean;
	/** Further settings of the node, such as *On Error*. */
	node?: Partial<INode>;
	/** Further fields of the items. */
	fields?: IDataObject[];
	/** Nodes behind it. */
	after?: INode[];
	settings?: IWorkflowSettings;
}

/** A published workflow that a trigger of this package starts. */
export interface Published {
	id: string;
	trigger: INode;
	path: string;
	/** Of the trigger, without a token. */
	url: string;
	/** With the token. */
	address: string;
}

interface SceneOptions {
	/** Added to n8n's environment. */
	env?: Record<string, string>;
	/** Default: opens a stage with that environment, and without the editor. */
	open?: () => Promise<Stage>;
	/** Whether each test finds the service and the collector as if no test had been before; default: yes. */
	clears?: boolean;
}

/** Where the tests of a file, or of a `describe`, take place: it is opened before them, and closed after them. */
export function openScene({ env, open, clears = true }: SceneOptions = {}): Scene {
	const scene = new Scene();
	beforeAll(async () => {
		scene.stage = await (open?.() ?? Stage.open({ env: { ...LEAN, ...env } }));
		scene.collector = await Collector.open();
	}, 900_000);
	afterAll(async () => {
		await scene.collector?.close();
		await scene.stage?.close();
	}, 60_000);
	beforeEach(() => {
		if (clears) scene.clear();
	});
	return scene;
}

/**
 * Another account of the same n8n.
 *
 * @param clears whether each test finds the service and the collector as if no test had been before
 */
export function openAccount(of: Scene, clears = true): Scene {
	const scene = new Scene();
	beforeAll(async () => {
		scene.stage = await of.stage.withAnotherAccount();
		scene.collector = await Collector.open();
	});
	afterAll(async () => {
		await scene.collector?.close();
		await scene.stage?.service.close();
	});
	if (clears) beforeEach(() => scene.clear());
	return scene;
}

/** A stage, and the words in which tests tell what happens there. */
export class Scene {
	stage!: Stage;

	/** Counts what the workflows do to the outside world. */
	collector!: Collector;

	get client() {
		return this.stage.client;
	}

	get service() {
		return this.stage.service;
	}

	clear(): void {
		this.service.resetSettings();
		this.service.clear();
		this.collector.reset();
	}

	/** The tasks of the service, oldest first. */
	get tasks(): SimulatedTask[] {
		return [...this.service.tasks.values()];
	}

	get taskIds(): string[] {
		return [...this.service.tasks.keys()];
	}

	get creates(): LoggedRequest[] {
		return this.requests('api', 'POST');
	}

	get reads(): LoggedRequest[] {
		return this.requests('api', 'GET');
	}

	/** The requests that the service, or the host of the results, has got. */
	requests(wanted: LoggedRequest['host'], by: string): LoggedRequest[] {
		return this.service.requests.filter(({ host, method }) => host === wanted && method === by);
	}

	/** The requests for the results of tasks. */
	downloads(taskIds: readonly string[]): LoggedRequest[] {
		const media = this.requests('media', 'GET');
		return media.filter(({ path }) => taskIds.some((taskId) => path.includes(taskId)));
	}

	/** A task that was created elsewhere and takes an hour. */
	slowTask(): SimulatedTask {
		const input = { prompt: 'slow', simulate: { latencyMs: 3_600_000 } };
		return this.service.createTask(IMAGE_MODEL, input);
	}

	/** What whoever runs executions has logged. */
	get log(): string {
		return this.stage.runners.map(({ logFile }) => readFileSync(logFile, 'utf8')).join('\n');
	}

	async logged(text: string): Promise<void> {
		await until(`the log to say '${text}'`, 60_000, () => this.log.includes(text));
	}

	/**
	 * Nodes that create many tasks as fast as they can. With *On Error: Continue* n8n would let the input of a node out that
	 * ends by itself, to the collector.
	 */
	allAtOnce(): Steps {
		return [
			prompts('Prompt', Array<object>(ALL_AT_ONCE).fill({ latencyMs: 3_600_000 })),
			this.image({ options: { maxInFlight: ALL_AT_ONCE } }, { onError: 'continueRegularOutput' }),
			this.collector.node(),
		];
	}

	/** Stops the newest execution of a workflow while `allAtOnce` creates tasks: a few seconds later nothing more is created. */
	async expectStopHeard(workflowId: string): Promise<void> {
		await until('some creates', 60_000, () => this.creates.length >= 10);
		const [latest] = await this.client.listExecutions({ workflowId });
		const stopped = () => this.log.split('The execution was stopped').length;
		const before = stopped();
		await this.client.stopExecution(latest?.id ?? '');
		const stoppedAt = Date.now();
		await until('the end of the run', 2 * 60_000, () => stopped() > before);
		await sleep(HEARD_MS);
		const { creates } = this;
		expect(creates.length).toBeLessThan(ALL_AT_ONCE);
		expect(creates.filter(({ at }) => at > stoppedAt + HEARD_MS)).toEqual([]);
		// n8n keeps no output of a stopped node: its log names what is paid for.
		for (const taskId of this.taskIds) expect(this.log).toContain(taskId);
		expect(this.collector.seen).toEqual([]);
	}

	/** Has n8n without any credential. */
	async deleteCredentials(): Promise<void> {
		const all = await this.client.listCredentials();
		for (const { id } of all) await this.client.deleteCredential(id);
	}

	/** The action node, called `Media` unless `more` says otherwise. */
	media(parameters: IDataObject, { name = 'Media', ...more }: Partial<INode> = {}): INode {
		return this.stage.mediaNode('mediaGeneration', name, parameters, more);
	}

	image: Stage['image'] = (...given) => this.stage.image(...given);

	trigger(
		parameters: IDataObject = {},
		{ name = 'Finished', ...more }: Partial<INode> = {},
	): INode {
		return this.stage.mediaNode('mediaGenerationTrigger', name, parameters, more);
	}

	/** Starts a workflow by hand, or by its webhook if it begins with one. */
	async startWorkflow(definition: WorkflowDefinition): Promise<Run> {
		const { client, stage } = this;
		if (definition.nodes[0]?.webhookId !== undefined) {
			const { id: workflowId } = await stage.callWebhook(definition);
			let started: string | undefined;
			await until('the run to begin', 60_000, async () => {
				started = (await client.listExecutions({ workflowId }))[0]?.id;
				return started !== undefined;
			});
			return new Run(this, started ?? '', workflowId, definition.name);
		}
		const { id } = await client.createWorkflow(definition);
		return new Run(this, await client.run(id), id, definition.name);
	}

	/** Starts nodes in a row. */
	async start(name: string, ...nodes: Steps): Promise<Run> {
		return await this.startWorkflow({ name, ...inARow(manualTrigger(), ...nodes) });
	}

	async run(name: string, ...nodes: Steps): Promise<Execution> {
		return await (await this.start(name, ...nodes)).end();
	}

	/** Starts a workflow that generates images. @param switches of the simulated service, for one item each */
	async startImages(switches: IDataObject[], order: Order = {}): Promise<Run> {
		const { name = 'Prompt', options = {}, fields, after = [], settings } = order;
		const image = this.image({ ...order.parameters, options }, order.node);
		const start = order.byWebhook ? webhook('Start') : manualTrigger();
		const nodes = [start, prompts(name, switches, fields), image, ...after];
		return await this.startWorkflow({ name, ...inARow(...nodes), settings });
	}

	/** Starts a run that creates so many tasks turn by turn. */
	async startTurns(name: string, count: number, { options, ...order }: Order = {}): Promise<Run> {
		const switches = Array<IDataObject>(count).fill({ latencyMs: 2_500 });
		return await this.startImages(switches, { name, ...order, options: { ...TURNS, ...options } });
	}

	async runImages(switches: IDataObject[], order?: Order): Promise<Execution> {
		return await (await this.startImages(switches, order)).end();
	}

	/** Starts a run of an operation on tasks that exist. */
	async startOnTasks(
		operation: string,
		taskIds: string[],
		more: IDataObject = {},
		...after: INode[]
	): Promise<Run> {
		const items = taskIds.map((taskId) => ({ taskId }));
		const taskId = '={{ $json.taskId }}';
		const node = this.media({ resource: 'task', operation, taskId, ...more });
		return await this.start(`Task: ${operation}`, itemNodes('Tasks', items), node, ...after);
	}

	/** `startOnTasks`. @returns the items that leave the node */
	async onTasks(operation: string, taskIds: string[], more?: IDataObject) {
		return itemsOf(succeeded(await (await this.startOnTasks(operation, taskIds, more)).end()));
	}

	/**
	 * Publishes a workflow that a trigger starts and that reports to the collector.
	 *
	 * @param trigger the node
	 * @param more.before nodes between the two
	 * @param more.orders nodes of another lane, which can be run by hand
	 * @param more.id of the workflow, where it is there already
	 */
	async publish(
		trigger: INode = this.trigger(),
		more: { before?: INode[]; orders?: Steps; id?: string } = {},
	): Promise<Published> {
		const { client, stage } = this;
		const { before = [], orders = [] } = more;
		const results = [trigger, ...before, this.collector.node()];
		const rows = orders.length > 0 ? [[manualTrigger(), ...orders], results] : [results];
		const workflow = more.id
			? await client.updateWorkflow(more.id, lanes(...rows))
			: await client.createWorkflow({ name: 'Lane', ...lanes(...rows) });
		const path = client.webhookPath(trigger, 'callback');
		await client.publish(workflow.id, [path]);
		const url = stage.webhookUrl + path;
		const address = callbackAddress(url, this.service.apiKey);
		return { id: workflow.id, trigger, path, url, address };
	}

	/** Delivers the callback of a task. @returns the status of the answer */
	async deliver(address: string, taskId: string): Promise<number> {
		return (await deliver(address, { taskId }, ONE_REQUEST)).status;
	}

	async arrived(taskId: string | undefined, timeoutMs = 240_000): Promise<void> {
		const { seen } = this.collector;
		await until(`task ${taskId} to arrive`, timeoutMs, () => seen.includes(taskId ?? ''));
	}

	/** Waits for tasks to come to the collector: these and no others, each once, in whatever order. */
	async expectArrived(taskIds: readonly string[], timeoutMs?: number): Promise<void> {
		await this.collector.settle(taskIds.length, timeoutMs);
		expect([...this.collector.seen].sort()).toEqual([...taskIds].sort());
	}
}
