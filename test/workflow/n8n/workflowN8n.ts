import { WorkflowExecute } from 'n8n-core';
import {
	type ICredentialsHelper,
	type INodeExecutionData,
	type IRun,
	type IRunExecutionData,
	type WorkflowExecuteMode,
	createRunExecutionData,
} from 'n8n-workflow';

import { forgetStates } from '../../../nodes/MediaGeneration/n8n/newestState';
import { MediaGenerationApi } from '../../../credentials/MediaGenerationApi.credentials';
import { type Ran, ranOf } from '../engine';
import { credentialsHelper } from '../credentials';
import { store } from '../processedData';
import { fromStored, toStored } from '../stored';
import { buildWorkflow, CREDENTIAL, SOURCE, type TestWorkflow, typesOf } from '../testWorkflow';
import { pass, passTime, passUntil, time } from '../time';
import { type Definition, enter, isTerminal, type Row } from './database';
import { MemoryN8n } from './memoryN8n';
import { nodeType } from './nodes';
import type { Loaded } from './process';
import { Randomness } from './randomness';

const START_OF_SUB = 'n8n-nodes-base.executeWorkflowTrigger';
const passes = nodeType(async (context) => await Promise.resolve([context.getInputData()]));

/** An n8n for the workflow of a test. */
export class WorkflowN8n extends MemoryN8n {
	/** Whether its process dies when an execution goes to sleep, before that is stored. */
	diesAtSleep = false;

	/** The node under test. */
	readonly tested: string;

	/** When executions went to sleep, and until when, milliseconds since 1970. */
	readonly sleeps = new Map<Row, Array<{ from: number; until: number }>>();

	/**
	 * @param test may be changed by the user: its credential, its nodes
	 * @param isQueueMode whether workers run the executions. All processes of a test share the memory of the nodes.
	 * @param productionLimit of executions that run at once
	 */
	constructor(
		readonly test: TestWorkflow,
		isQueueMode = false,
		productionLimit = Infinity,
	) {
		const setting = { slowestQueryMs: 1, storesLateMs: 0, erasesStalled: true };
		super(time, new Randomness(1), { isQueueMode, productionLimit, ...setting });
		this.settings = test.settings ?? {};
		this.tested = buildWorkflow(test).tested.name;
		store.database = this.database;
		this.processes.start();
	}

	load(): Loaded {
		forgetStates();
		const types = typesOf(this.test);
		const nodes = { ...types, [START_OF_SUB]: passes };
		return { nodes, credential: new MediaGenerationApi() };
	}

	get definition(): Definition {
		const { nodes, connectionsBySourceNode: connections } = buildWorkflow(this.test).workflow;
		return { nodes: Object.values(nodes), connections };
	}

	protected credentials({ loaded }: { loaded: Loaded }): ICredentialsHelper {
		const lookUp = async () => await Promise.resolve({ ...(this.test.credential ?? CREDENTIAL) });
		return credentialsHelper(loaded.credential!, lookUp);
	}

	deathOf(): undefined {}

	trace(): void {}

	note(): void {}

	noteSleep(row: Row, until: number): void {
		this.sleeps.set(row, [...(this.sleeps.get(row) ?? []), { from: Date.now(), until }]);
		if (this.diesAtSleep) row.process?.die();
	}

	/** Another workflow has one of the places for so many milliseconds. */
	occupy(ms: number): void {
		const [main] = this.processes.living('main');
		main?.places.take('other', () => this.time.later(ms, () => main.places.give()));
	}

	/** Starts an execution at a node, by default the first one, and does not wait for anything. */
	begin(
		mode: WorkflowExecuteMode = this.test.mode ?? 'trigger',
		start = SOURCE,
		items: INodeExecutionData[] = [{ json: {} }],
	): StoredRun {
		const [main] = this.processes.living('main');
		return new StoredRun(this, this.executions.begin({ mode, start, items }, main));
	}

	/** Starts an execution, and waits until it sleeps or is at its end. */
	async start(...given: Parameters<WorkflowN8n['begin']>): Promise<StoredRun> {
		return await this.begin(...given).rests();
	}

	/** Kills n8n while it runs an execution, and waits until n8n has started again. */
	async kill({ row }: StoredRun): Promise<void> {
		this.processes.living('main')[0]?.die();
		await passUntil(() => row.status === 'crashed');
		await passUntil(() => this.processes.living('main').length > 0);
	}

	/** An execution that was under way or asleep when its process died, as n8n has stored it. */
	crashed(data: Parameters<typeof createRunExecutionData>[0]): StoredRun {
		const stored = toStored(createRunExecutionData(data));
		const row = this.database.insert({ mode: 'trigger', start: SOURCE, data: stored });
		this.executions.end(row, 'crashed');
		return new StoredRun(this, row);
	}
}

/** An execution, as n8n stores it. */
export class StoredRun {
	constructor(
		readonly n8n: WorkflowN8n,
		readonly row: Row,
	) {}

	get data(): IRunExecutionData {
		return fromStored(this.row.data);
	}

	/** What the run has come to so far. */
	get ran(): Ran {
		const { status, waitTill, mode } = this.row;
		const end = waitTill === undefined ? {} : { waitTill: new Date(waitTill) };
		const run: Partial<IRun> = { data: this.data, status, mode, ...end };
		return ranOf(run as IRun, this.n8n.tested);
	}

	/** What a node has put out on its first output, in all its runs. */
	itemsOf(name = this.n8n.tested): INodeExecutionData[] {
		const runs = this.data.resultData.runData[name] ?? [];
		return runs.flatMap(({ data }) => data?.main?.[0] ?? []);
	}

	get isAsleep(): boolean {
		return this.row.status === 'waiting';
	}

	/** When the run went to sleep and is to be woken, milliseconds since 1970. */
	get sleeps() {
		return this.n8n.sleeps.get(this.row) ?? [];
	}

	/** For how long the run sleeps, milliseconds. */
	get sleepMs(): number {
		const { from = NaN, until = NaN } = this.sleeps.at(-1) ?? {};
		return until - from;
	}

	/** Waits until the run sleeps or is at its end. */
	async rests(): Promise<this> {
		await passUntil(() => this.isAsleep || isTerminal(this.row.status));
		return this;
	}

	/** The next turn. */
	async wake(): Promise<this> {
		const { wakes } = this.row;
		await passUntil(() => this.row.wakes > wakes);
		return await this.rests();
	}

	/** The turns up to the end. */
	async end(): Promise<Ran> {
		await passUntil(() => isTerminal(this.row.status));
		return this.ran;
	}

	/**
	 * A turn at the end of which the process is killed: nothing of it is stored.
	 *
	 * @param isNoticed whether n8n takes the run for crashed when it starts; otherwise n8n wakes the run again
	 */
	async killedTurn(isNoticed = true): Promise<void> {
		const { data } = this.row;
		this.n8n.diesAtSleep = true;
		await passUntil(() => this.row.status === 'crashed');
		this.n8n.diesAtSleep = false;
		if (isNoticed) return;
		enter(this.row, 'waiting');
		Object.assign(this.row, { data, waitTill: Date.now() });
	}

	/**
	 * n8n wakes the run twice from the same stored state, as at a start at which the run is due.
	 *
	 * @param apartMs how long after the first turn has begun
	 * @returns what the second turn comes to; the run goes on with what the first one has stored
	 */
	async wakeTwice(apartMs: number): Promise<Ran> {
		const { data, wakes, id, mode, process } = this.row;
		await passUntil(() => this.row.wakes > wakes);
		await pass(apartMs);
		const additional = this.n8n.additionalData(process!, id, mode);
		const twin = new WorkflowExecute(additional, mode, fromStored(data));
		const run = await passTime(twin.processRunExecutionData(this.n8n.workflow(process!)));
		await this.rests();
		return ranOf(run, this.n8n.tested);
	}

	/** The stop button, or the one in the list of executions. */
	async stop(): Promise<void> {
		this.n8n.executions.stop(this.row);
		await passUntil(() => this.row.status === 'canceled');
	}

	/** Kills n8n, and waits until it has started again. */
	async kill(): Promise<void> {
		await this.n8n.kill(this);
	}

	/** *Retry execution*, with the workflow that is stored with the execution, or with the one that is saved now. */
	beginRetry(workflow: 'original' | 'saved' = 'original'): StoredRun {
		return new StoredRun(this.n8n, this.n8n.executions.retry(this.row, workflow)!);
	}

	/** The same, and waits until the retry sleeps or is at its end. */
	async retry(workflow?: 'original' | 'saved'): Promise<StoredRun> {
		await passUntil(() => this.n8n.processes.living('main').length > 0);
		return await this.beginRetry(workflow).rests();
	}
}
