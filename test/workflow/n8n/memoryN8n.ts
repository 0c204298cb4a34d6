import {
	type ICredentialsHelper,
	type IDataObject,
	type INodeTypes,
	type IWorkflowSettings,
	type IWorkflowExecuteAdditionalData,
	Workflow,
	type WorkflowExecuteMode,
} from 'n8n-workflow';

import { hostData } from '../host';
import { fromStored } from '../stored';
import { Database, type Definition, isTerminal, type Row } from './database';
import { Executions } from './executions';
import type { Death, Loaded, Process } from './process';
import { Processes } from './processes';
import type { Randomness } from './randomness';
import type { HistoryTime } from './time';

export interface Setting {
	isQueueMode: boolean;
	/** How many executions run at once that are neither manual, retries nor called; not in queue mode. */
	productionLimit?: number;
	/** How long a query of n8n's database takes at most, milliseconds. */
	slowestQueryMs: number;
	/** How much longer n8n takes to store an execution that goes to sleep, milliseconds. */
	storesLateMs: number;
	/** Whether n8n erases in queue mode what it has stored of an execution whose worker has died. */
	erasesStalled?: boolean;
}

const WORKFLOW_ID = 'workflow';

/**
 * n8n in memory, around n8n-core's own engine: its processes, what it stores, its clock, and what users do with
 * executions. What sleeps is stored as text, and is all that is left when its process dies. What a dead process was at
 * does not go on: its timers do not go off, and it hears no answers.
 */
export abstract class MemoryN8n {
	readonly database: Database;
	readonly processes: Processes;
	readonly executions: Executions;

	isActive = true;

	/** The workflow's, as JSON. */
	staticData = '{}';

	/** The workflow's. */
	settings: IWorkflowSettings = {};

	/** @param random decides how long queries take, and who does what */
	constructor(
		readonly time: HistoryTime,
		readonly random: Randomness,
		readonly setting: Setting,
	) {
		this.database = new Database(this);
		this.processes = new Processes(this);
		this.executions = new Executions(this);
	}

	/** Loads the node types for a process that starts. */
	abstract load(): Loaded;

	/** The user's workflow, as it is saved now. */
	abstract get definition(): Definition;

	protected abstract credentials(process: Process): ICredentialsHelper;

	/** How a process dies that starts for the nth time. */
	abstract deathOf(process: string, boots: number): Death | undefined;

	/** A line for whoever reads what happened. */
	abstract trace(line: string): void;

	/** Something has happened that does not happen every day. */
	abstract note(fault: string): void;

	/** An execution goes to sleep, and is about to be stored. @param waitTill until when, milliseconds since 1970 */
	abstract noteSleep(row: Row, waitTill: number): void;

	/** An execution was woken. @param wakeAgain has n8n take it for asleep all the same */
	noteWake?(row: Row, wakeAgain: () => void): void;

	/** An uploaded file gets another id. */
	rename?(from: string, to: string): void;

	/** What is stored of the user's workflow with an execution; undefined: it runs as it is saved whenever it goes on. */
	storedDefinition?(start: string): Definition | undefined;

	/** A token of the addresses that resume an execution. */
	newToken(): string {
		const { length } = this.rows;
		return [0, 1]
			.map((part) => this.random.between(0, 0xffffffff, 'token', part, length).toString(16))
			.join('')
			.padStart(64, 'e');
	}

	/** All executions, oldest first. */
	get rows(): readonly Row[] {
		return this.database.rows;
	}

	row(id: string | undefined): Row | undefined {
		return this.database.row(id);
	}

	/** Whether an execution has not come to its end. */
	get isBusy(): boolean {
		return this.rows.some(({ status }) => !isTerminal(status));
	}

	/** A workflow as a process loads it. */
	workflow({ loaded }: Process, definition: Definition = this.definition): Workflow {
		const { nodes, connections, settings = this.settings } = definition;
		const byName = (name: string) => loaded.nodes[name]!;
		const nodeTypes: INodeTypes = {
			getByName: byName,
			getByNameAndVersion: byName,
			getKnownTypes: () => ({}),
		};
		return new Workflow({
			id: WORKFLOW_ID,
			name: 'In memory',
			nodes: nodes.map((node) => ({ ...node })),
			connections,
			active: this.isActive,
			nodeTypes,
			staticData: JSON.parse(this.staticData) as IDataObject,
			settings: { executionOrder: 'v1', ...settings },
		});
	}

	/**
	 * What n8n tells its engine of an execution in a process.
	 *
	 * @param rootExecutionMode of a sub-workflow: how the execution at the root was started
	 */
	additionalData(
		process: Process,
		executionId: string,
		mode: WorkflowExecuteMode,
		rootExecutionMode?: WorkflowExecuteMode,
	): IWorkflowExecuteAdditionalData {
		const { database, executions, setting, time } = this;
		const { retryOf, wakes = 0, definition } = this.row(executionId) ?? {};
		// A worker reads it from the database. What wakes an execution in one process hands it on to nobody.
		const isForgotten = wakes > 0 && !setting.isQueueMode;
		const { executionTimeout = 0 } = definition?.settings ?? this.settings;
		return {
			...hostData(executionId, mode, this.isActive, isForgotten ? undefined : retryOf),
			// n8n says so at each wake, also where its own timer counts from the start of the execution.
			...(executionTimeout > 0 && {
				executionTimeoutTimestamp: time.wall + executionTimeout * 1000,
			}),
			credentialsHelper: this.credentials(process),
			getRunExecutionData: async (id) =>
				await database.query(() => {
					const row = this.row(id);
					return row && fromStored(row.data);
				}),
			executeWorkflow: async (info, _, options) =>
				await executions.executeWorkflow(process, info, options, rootExecutionMode ?? mode),
			...(rootExecutionMode && { rootExecutionMode }),
		};
	}
}
