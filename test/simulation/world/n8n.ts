import {
	type IDataObject,
	type INodeExecutionData,
	type INodeTypes,
	type IWorkflowExecuteAdditionalData,
	UnexpectedError,
	Workflow,
	type WorkflowExecuteMode,
} from 'n8n-workflow';

import { HOUR } from '../../durations';
import { credentialsHelper } from '../../workflow/credentials';
import { hostData } from '../../workflow/host';
import { fromStored } from '../../workflow/stored';
import type { HandOverTrouble } from '../history';
import { Database, isTerminal, type Row } from './database';
import type { NodeSources } from './nodeSources';
import type { Process } from './process';
import { ProcessedData } from './processedData';
import { Processes } from './processes';
import { Runner } from './runner';
import { BASE_URL } from './service';
import type { Definition } from './subExecution';
import { WaitTracker } from './waitTracker';
import { Webhooks } from './webhooks';
import { connections, helperNodes, nodesOf, WORKFLOW_ID } from './workflow';
import type { World } from './world';

/** What the rest of a workflow was started with. */
interface Sunk {
	at: number;
	execution: string;
	node: string;
	items: INodeExecutionData[];
}

/** The model of n8n around its real engine: what it stores, and what it hands to the engine. */
export class N8n {
	readonly database: Database;
	readonly processes: Processes;
	readonly runner: Runner;
	readonly waitTracker: WaitTracker;
	readonly webhooks: Webhooks;
	readonly ledger: ProcessedData;
	readonly sunk: Sunk[] = [];

	/** The credential as users have entered it. */
	credential: { baseUrl: string; apiKey: string };

	isActive = false;

	/** Whether an expression of the trigger throws. */
	isTriggerBroken = false;

	/** The workflow's, as JSON. */
	staticData = '{}';

	/** Whether a run has begun to have itself suspended. */
	private hasHandedOver = false;

	constructor(
		private readonly world: World,
		sources: NodeSources,
	) {
		this.database = new Database(world);
		this.ledger = new ProcessedData(world);
		this.runner = new Runner(world);
		this.waitTracker = new WaitTracker(world);
		this.webhooks = new Webhooks(world);
		this.processes = new Processes(world, sources, (main) => this.waitTracker.sweep(main));
		this.credential = { baseUrl: BASE_URL, apiKey: world.service.key };
	}

	/** All executions, oldest first. */
	get rows(): readonly Row[] {
		return this.database.rows;
	}

	row(id: string | undefined): Row | undefined {
		return this.rows.find((row) => row.id === id);
	}

	/** Whether an execution has not come to its end. */
	get isBusy(): boolean {
		return this.rows.some(({ status }) => !isTerminal(status));
	}

	/** How often each task has started the workflow of the trigger. */
	starts(taskId: string): number {
		return this.sunk
			.filter(({ node }) => node === 'Done')
			.flatMap(({ items }) => items.filter(({ json }) => json.taskId === taskId)).length;
	}

	/** Whether an execution that a task's callback began has not come to its end, and none is under way. */
	hasBroken(taskId: string): boolean {
		const begun = this.rows.filter(
			({ start, begin }) => start === 'Trigger' && begin.includes(taskId),
		);
		return (
			begun.every(({ status }) => isTerminal(status)) &&
			begun.some(({ status }) => status !== 'success')
		);
	}

	/**
	 * A run of the workflow begins to have itself suspended: what the history has for this moment happens.
	 *
	 * @throws where n8n is to begin no sub-execution
	 */
	noteHandOver(parentId: string): void {
		const { world } = this;
		const row = this.row(parentId);
		if (row?.start !== 'Start' || this.hasHandedOver) return;
		this.hasHandedOver = true;
		const { handOvers } = world.history;
		for (const { afterMs, what } of handOvers) {
			world.time.later(afterMs, () => {
				if (!world.isTroubled) return;
				world.note(`${what} while a run is suspended`);
				this.inHandOver(what, row);
			});
		}
		const isRefused = handOvers.some(({ what }) => what === 'not begun');
		if (world.isTroubled && isRefused) throw new UnexpectedError('The database is locked');
	}

	private inHandOver(what: HandOverTrouble, row: Row): void {
		const { world } = this;
		if (what === 'tasks end') world.service.endAll();
		else if (what.startsWith('clock')) world.setClock(what === 'clock set back' ? -HOUR : HOUR);
		else world.endRun(row, what);
	}

	/**
	 * The workflow as a process loads it.
	 *
	 * @param definition of a sub-execution; the user's workflow where left out
	 */
	workflow(process: Process, definition?: Definition): Workflow {
		const { nodes, connections: links } = definition ?? {
			nodes: nodesOf(this.world.history, this.isTriggerBroken),
			connections,
		};
		return new Workflow({
			id: WORKFLOW_ID,
			name: 'Simulated',
			nodes: nodes.map((node) => ({ ...node })),
			connections: links,
			active: this.isActive,
			nodeTypes: this.nodeTypes(process),
			staticData: JSON.parse(this.staticData) as IDataObject,
			settings: { executionOrder: 'v1' },
		});
	}

	private nodeTypes({ nodes }: Process): INodeTypes {
		const helpers = helperNodes((...sunk) => this.sink(...sunk));
		const types = { ...nodes, ...helpers, 'n8n-nodes-base.executeWorkflowTrigger': helpers.start };
		const byName = (name: string) => types[name as keyof typeof helpers];
		return { getByName: byName, getByNameAndVersion: byName, getKnownTypes: () => ({}) };
	}

	/** The rest of a workflow begins: something is posted, a customer gets a mail. */
	private sink(node: string, execution: string, items: INodeExecutionData[]): void {
		const { activity, now } = this.world.time;
		if (activity.process && !activity.process.effect()) return;
		this.sunk.push({ at: now, execution, node, items });
		this.world.trace(`n8n: execution ${execution} comes to ${node} with ${items.length} items`);
	}

	/** What n8n tells its engine of an execution in a process. */
	additionalData(
		process: Process,
		executionId: string,
		mode: WorkflowExecuteMode,
	): IWorkflowExecuteAdditionalData {
		const { database, runner } = this;
		const { tellsRetried } = this.world.history;
		const retryOf = tellsRetried ? this.row(executionId)?.retryOf : undefined;
		return {
			...hostData(executionId, mode, this.isActive, retryOf),
			credentialsHelper: credentialsHelper(
				process.nodes.credential,
				async () => await database.query(() => ({ ...this.credential })),
			),
			getRunExecutionData: async (id) =>
				await database.query(() => {
					const row = this.row(id);
					return row && fromStored(row.data);
				}),
			executeWorkflow: async (info, _, options) =>
				await runner.executeWorkflow(process, info, options),
		};
	}
}
