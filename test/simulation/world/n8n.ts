import {
	type IDataObject,
	type INodeExecutionData,
	type INodeTypes,
	type IWorkflowExecuteAdditionalData,
	UnexpectedError,
	Workflow,
	type WorkflowExecuteMode,
} from 'n8n-workflow';

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
import { connections, helperNodes, nodesOf, type TriggerEvents, WORKFLOW_ID } from './workflow';
import type { World } from './world';

/** What the rest of a workflow was started with. */
export interface Sunk {
	at: number;
	execution: string;
	mode: WorkflowExecuteMode;
	node: string;
	items: INodeExecutionData[];
}

/** What stands before the nodes that are the rest of a workflow. */
const PLACES: Record<string, string> = {
	Sink: 'the node',
	Failed: "the node's error output",
	Done: 'the trigger',
};

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

	/** How the user has set the trigger's events. */
	events: TriggerEvents = 'both';

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

	get rows(): ReadonlyMap<string, Row> {
		return this.database.rows;
	}

	/** Whether an execution has not come to its end. */
	get isBusy(): boolean {
		return [...this.rows.values()].some(({ status }) => !isTerminal(status));
	}

	/** How often each task has started the workflow of the trigger. */
	starts(taskId: string): number {
		return this.sunk
			.filter(({ node }) => node === 'Done')
			.flatMap(({ items }) => items.filter(({ json }) => json.taskId === taskId)).length;
	}

	/** Whether an execution that a task's callback began has not come to its end, and none is under way. */
	hasBroken(taskId: string): boolean {
		const begun = [...this.rows.values()].filter(
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
		const { history, time } = this.world;
		const row = this.rows.get(parentId);
		if (row?.start !== 'Start' || this.hasHandedOver) return;
		this.hasHandedOver = true;
		for (const { afterMs, what } of history.handOvers) {
			time.later(afterMs, () => {
				if (!this.world.isTroubled) return;
				this.world.note(`${what} while a run is suspended`);
				this.inHandOver(what, row);
			});
		}
		if (!this.world.isTroubled || !history.handOvers.some(({ what }) => what === 'not begun'))
			return;
		throw new UnexpectedError('The database is locked');
	}

	private inHandOver(what: HandOverTrouble, row: Row): void {
		switch (what) {
			case 'stop':
				return this.world.user.stop((one) => one === row);
			case 'kill':
				return row.process?.die();
			case 'tasks end':
				return this.world.service.endAll();
			case 'not begun':
				return;
			default:
				return this.world.setClock(what === 'clock set back' ? -3_600_000 : 3_600_000);
		}
	}

	/**
	 * The workflow as a process loads it.
	 *
	 * @param definition of a sub-execution; the user's workflow where left out
	 */
	workflow(process: Process, definition?: Definition): Workflow {
		const { nodes, connections: links } = definition ?? {
			nodes: nodesOf(this.world.history, this.events),
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
	private sink(
		node: string,
		execution: string,
		mode: WorkflowExecuteMode,
		items: INodeExecutionData[],
	): void {
		const { activity, now } = this.world.time;
		if (activity.process && !activity.process.effect()) return;
		this.sunk.push({ at: now, execution, mode, node, items });
		const count = `${items.length} item${items.length === 1 ? '' : 's'}`;
		this.world.trace(
			`n8n: execution ${execution} goes on behind ${PLACES[node] ?? node} with ${count}`,
		);
	}

	/** What n8n tells its engine of an execution in a process. */
	additionalData(
		process: Process,
		executionId: string,
		mode: WorkflowExecuteMode,
	): IWorkflowExecuteAdditionalData {
		const { database, runner } = this;
		const { tellsRetried } = this.world.history;
		const retryOf = tellsRetried ? this.rows.get(executionId)?.retryOf : undefined;
		return {
			...hostData(executionId, mode, this.isActive, retryOf),
			credentialsHelper: credentialsHelper(
				process.nodes.credential,
				async () => await database.query(() => ({ ...this.credential })),
			),
			getRunExecutionData: async (id) =>
				await database.query(() => {
					const row = this.rows.get(id);
					return row && fromStored(row.data);
				}),
			executeWorkflow: async (info, _, options) =>
				await runner.executeWorkflow(process, info, options),
		};
	}
}
