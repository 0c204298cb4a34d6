import { EventEmitter } from 'node:events';

import { HookContext, WebhookContext, WorkflowExecute } from 'n8n-core';
import {
	createRunExecutionData,
	type ExecuteWorkflowOptions,
	type IDataObject,
	type IExecuteData,
	type IExecuteWorkflowInfo,
	type ExecuteWorkflowData,
	type INodeExecutionData,
	type INodeTypes,
	type IRun,
	type IRunExecutionData,
	type IWebhookData,
	type IWorkflowExecuteAdditionalData,
	UnexpectedError,
	WAIT_FOR_SUB_EXECUTION,
	Workflow,
	type WorkflowExecuteMode,
} from 'n8n-workflow';

import { credentialsHelper } from '../../workflow/credentials';
import { hostData } from '../../workflow/host';
import type { HandOverTrouble } from '../history';
import type { NodeSources } from './nodeSources';
import { Process, type Role } from './process';
import { ProcessedData } from './processedData';
import { itemOf } from './service';
import type { Activity } from './time';
import type { World } from './world';
import { fromStored, toStored } from './stored';
import { amendCrashed } from './crash';
import { type Definition, isTerminal, outputOfSub, patchParent, SUB } from './subExecution';
import {
	connections,
	helperNodes,
	nodesOf,
	TRIGGER_PATH,
	type TriggerEvents,
	WORKFLOW_ID,
} from './workflow';

export type Status = 'new' | 'running' | 'waiting' | 'success' | 'error' | 'canceled' | 'crashed';

/** An execution as n8n's database keeps it. */
export interface Row {
	id: string;
	mode: WorkflowExecuteMode;
	/** The node that it starts at. */
	start: string;
	status: Status;
	/** All that it has had, in order. */
	readonly statuses: Status[];
	data: string;
	/** What it began with. */
	readonly begin: string;
	retryOf: string | undefined;
	/** The execution whose node has started it, if one has. */
	parent: string | undefined;
	/** How often it has gone on after a wait. */
	resumes: number;
	/** How often it was suspended. */
	waits: number;
	/** Whether its process died while it ran. */
	isKilled: boolean;
	retriedBy: string | undefined;
	/** Where it runs, or ran last. */
	process: Process | undefined;
	/** The nodes that have begun, and whether they have ended, as n8n's log of events has it. */
	readonly events: Map<string, 'started' | 'finished'>;
	/** Whether it was given to a worker as a job of its own. */
	hasJob: boolean;
	/** The workflow of a sub-execution; undefined for the one that the user has made. */
	definition: Definition | undefined;
	/** Until when it waits, by the wall clock. */
	waitTill: number | undefined;
	/** Called once where it ends, in the processes that wait for that. */
	onEnd: Array<{ process: Process; run: () => Promise<unknown> }>;
}

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

/** The model of n8n around its real engine: what it stores, and who runs what when. */
export class N8n {
	readonly rows = new Map<string, Row>();

	readonly sunk: Sunk[] = [];

	/** Waiting executions that a request to their address has had go on. */
	readonly woken: Array<{ at: number; execution: string }> = [];

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

	/** Whether a run has begun to have itself suspended. */
	private hasHandedOver = false;

	/** How many requests to webhooks there have been. */
	private received = 0;

	/** How many of them were taken. */
	private calls = 0;

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

	/** Whether an execution has not come to its end. */
	get isBusy(): boolean {
		return [...this.rows.values()].some(({ status }) => !isTerminal(status));
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
		const process = new Process(name, role, this.sources.load(), kill, onDeath);
		process.isMortal = () => this.world.isTroubled;
		process.counts = () => kill?.of !== 'callbacks' || this.isOfCallback(time.activity.name);
		this.processes.set(name, process);
		if (role === 'main') this.sweep(process);
		if (history.n8n === 'one process' && boots > 0) this.takeForCrashed();
	}

	/** While it starts n8n takes what waits for crashed, since its log has no end of it, and then looks closer. */
	private takeForCrashed(): void {
		for (const row of this.rows.values()) {
			if (row.status === 'waiting') row.statuses.push('crashed', 'waiting');
		}
	}

	/** Whether an activity is a callback, or the execution that one has started. */
	private isOfCallback(activity: string): boolean {
		const [kind, id = ''] = activity.split(' ');
		return kind === 'webhook' || this.rows.get(id)?.start === 'Trigger';
	}

	/**
	 * What was running in a process that died: n8n marks it as crashed when it is back. In queue mode the main process
	 * notices that the job of a dead worker stands still, and ends the execution with an error of its own; what had no
	 * job of its own, a sub-execution that had not waited yet, is marked as crashed some time later.
	 */
	private recover(dead: Process): void {
		for (const row of this.rows.values()) {
			if (row.process !== dead || row.status !== 'running') continue;
			row.isKilled = true;
			if (dead.role !== 'worker') this.crash(row);
			else if (row.hasJob) this.world.time.later(60_000, () => this.stall(row));
			else this.world.time.later(60_000, () => this.crash(row));
		}
	}

	private crash(row: Row): void {
		if (row.status !== 'running') return;
		const nodes = row.definition?.nodes ?? nodesOf(this.world.history, this.events);
		row.data = toStored(amendCrashed(fromStored(row.data), nodes, row.events));
		this.end(row, 'crashed');
	}

	private stall(row: Row): void {
		if (row.status !== 'running') return;
		if (!this.living('main')[0]) return this.crash(row);
		const error = { message: 'job stalled more than maxStalledCount' } as never;
		const data = createRunExecutionData({
			resultData: { error, runData: {} },
			resumeToken: this.newToken(),
		});
		row.data = toStored(data);
		this.end(row, 'error');
	}

	private end(row: Row, status: Status): void {
		enter(row, status);
		row.waitTill = undefined;
		if (status === 'waiting') row.waits++;
		this.world.trace(`n8n: execution ${row.id} is ${status}`);
		const { onEnd } = row;
		// Whoever resumed it waits until it stops, be it only to wait again.
		row.onEnd = [];
		if (!isTerminal(status)) return;
		for (const { process, run } of onEnd) this.within(process, `parent of ${row.id}`, run);
	}

	/** A query of the present process: done where it takes place, and heard of where the process still lives then. */
	async query<T>(work: () => T): Promise<T> {
		const { time, random } = this.world;
		const { activity } = time;
		if (activity.process && !activity.process.effect()) return await new Promise(() => undefined);
		const { slowestQueryMs } = this.world.history;
		const there = random.between(1, slowestQueryMs, 'query', time.count);
		const back = random.between(1, slowestQueryMs, 'result', time.count);
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
		this.begin('trigger', 'Start', items);
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
	 * A user delivers the callbacks of all tasks once more.
	 *
	 * @param startAgain whether those that have not started the workflow are to start it in any case
	 */
	redeliver(startAgain = false): void {
		const items = this.world.service.tasks
			.filter(({ webhookUrl }) => webhookUrl?.includes(TRIGGER_PATH))
			.filter(({ id }) => !startAgain || (this.starts(id) === 0 && this.hasBroken(id)))
			.map(({ id }) => ({ json: { taskId: id, startAgain } }));
		if (items.length === 0) return;
		this.world.note(startAgain ? 'told to start again' : 'redelivered by the user');
		const how = startAgain ? ', which are to start again' : '';
		this.world.trace(`user: redelivers ${items.length} tasks${how}`);
		this.begin('trigger', 'Again', items);
	}

	/** A power cut, by which n8n's main process dies. */
	kill(): void {
		for (const process of this.living('main')) process.die();
	}

	/** A user stops what runs. */
	stop(match: (row: Row) => boolean = ({ start }) => start === 'Start'): void {
		const row = [...this.rows.values()].findLast(
			(candidate) =>
				(candidate.status === 'running' || candidate.status === 'waiting') && match(candidate),
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
			data.resultData.error = {
				message: 'The execution was cancelled manually',
				timestamp: this.world.time.wall,
				extra: { executionId: row.id },
			} as never;
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
		// And where an expression gives something else each time, who retries by hand asks for another picture.
		const { isChanging } = this.world.history.node;
		const keptNothing = isSame(data, fromStored(row.begin));
		if (next.node.name === 'Start' || (next.node.name === 'Media' && (isChanging || keptNothing))) {
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
	private begin(mode: WorkflowExecuteMode, start: string, items: INodeExecutionData[]): void {
		this.store(mode, start, toStored(this.startData(this.stackOf(start, items))), undefined);
	}

	private startData(first: IExecuteData): IRunExecutionData {
		return createRunExecutionData({
			executionData: { nodeExecutionStack: [first] },
			resumeToken: this.newToken(),
		});
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
			statuses: ['new'],
			data,
			begin: data,
			retryOf,
			parent: undefined,
			resumes: 0,
			waits: 0,
			isKilled: false,
			retriedBy: undefined,
			process: undefined,
			events: new Map(),
			hasJob: false,
			definition: undefined,
			waitTill: undefined,
			onEnd: [],
		};
		this.rows.set(id, row);
		if (start !== SUB) this.dispatch(row, home);
		return row;
	}

	/** Gives an execution to a process: the one that stored it, or in queue mode the next worker that is free. */
	private dispatch(row: Row, home: Process | undefined): void {
		const { history, time, random } = this.world;
		const isQueued = history.n8n === 'queue mode';
		// The queue outlives whoever put it there. Without one, n8n has an execution run before it answers.
		row.process = isQueued ? undefined : home;
		if (row.process) enter(row, 'running');
		row.hasJob = isQueued;
		const take = () => {
			if (isTerminal(row.status) || row.process?.isDead) return;
			const candidates = this.living(isQueued ? 'worker' : 'main');
			const process =
				row.process ?? candidates[random.between(0, candidates.length - 1, 'worker', row.id)];
			if (!process) {
				time.later(1_000, take);
				return;
			}
			enter(row, 'running');
			row.process = process;
			this.within(process, `execution ${row.id}`, async () => await this.execute(process, row));
		};
		time.later(random.between(1, 20, 'dispatch', row.id), take);
	}

	private async execute(process: Process, row: Row): Promise<void> {
		const data = fromStored(await this.query(() => row.data));
		const how = row.resumes > 0 ? 'goes on with' : 'begins';
		this.world.trace(`${process.name}: ${how} execution ${row.id}, ${this.whatIs(row)}`);
		await this.runHere(process, row, data);
	}

	/** In words, for the trace. */
	private whatIs({ start, retryOf, parent }: Row): string {
		if (retryOf !== undefined) return `a retry of execution ${retryOf}`;
		switch (start) {
			case 'Start':
				return 'a run of the workflow';
			case 'Trigger':
				return 'which a callback has started';
			case SUB: {
				const isOfSub = this.rows.get(parent ?? '')?.start === SUB;
				return isOfSub
					? `which checks the tasks on behalf of execution ${parent}`
					: `which waits on behalf of execution ${parent}, and has another one check`;
			}
			default:
				return 'which redelivers callbacks';
		}
	}

	private async runHere(process: Process, row: Row, data: IRunExecutionData): Promise<IRun> {
		const workflow = this.workflow(process, row.definition);
		const additional = this.additionalData(process, row.id, row.mode);
		const { hooks } = additional;
		// Each time that an execution goes on begins anew in n8n's log of events.
		row.events.clear();
		hooks?.addHandler('nodeExecuteBefore', (node) => void row.events.set(node, 'started'));
		hooks?.addHandler('nodeExecuteAfter', (node) => void row.events.set(node, 'finished'));
		hooks?.addHandler('workflowExecuteAfter', async (run) => await this.save(row, run));
		const engine = new WorkflowExecute(additional, row.mode, data);
		const execution = engine.processRunExecutionData(workflow);
		process.running.set(row.id, execution);
		const run = await execution;
		process.running.delete(row.id);
		return run;
	}

	private async save(row: Row, run: IRun): Promise<void> {
		const data = toStored(run.data);
		const waitTill = run.waitTill?.getTime();
		await this.query(() => {
			// What a user has stopped stays as it was then, unless a worker has taken notice of it.
			if (row.status !== 'canceled' || (row.hasJob && run.status === 'canceled')) row.data = data;
			if (row.status !== 'running') return;
			const { error } = run.data.resultData;
			// Also where the error is that of an execution before, which was stopped and retried.
			this.end(row, error && run.status === 'success' ? 'error' : (run.status as Status));
			row.waitTill = waitTill;
			if (error) this.world.trace(`n8n: execution ${row.id} says "${error.message}"`);
		});
	}

	/** A node starts a workflow of its own. */
	private async executeWorkflow(
		process: Process,
		info: IExecuteWorkflowInfo,
		options: ExecuteWorkflowOptions,
	): Promise<ExecuteWorkflowData> {
		const { code } = info;
		const [node] = code?.nodes ?? [];
		if (!code || !node) throw new UnexpectedError('No sub-workflow');
		const { parentExecution } = options;
		if (parentExecution?.shouldResume) this.handOver(parentExecution.executionId);
		const data = createRunExecutionData({
			executionData: {
				nodeExecutionStack: [
					{
						node,
						data: { main: [options.inputData ?? [{ json: {} }]] },
						metadata: { parentExecution },
						source: null,
					},
				],
			},
			parentExecution,
			resumeToken: this.newToken(),
		});
		const row = await this.query(() => {
			const stored = this.store('integrated', SUB, toStored(data), undefined);
			enter(stored, 'running');
			return Object.assign(stored, {
				definition: { nodes: code.nodes, connections: code.connections },
				process,
				parent: parentExecution?.executionId,
			});
		});
		this.world.trace(`${process.name}: begins execution ${row.id}, ${this.whatIs(row)}`);
		const running = this.runHere(process, row, data);
		if (options.doNotWaitToFinish) return { executionId: row.id, data: [null] };
		const run = await running;
		if (run.finished || run.status === 'waiting') {
			return { executionId: row.id, data: outputOfSub(run), waitTill: run.waitTill };
		}
		throw Object.assign(new Error(run.data.resultData.error?.message), run.data.resultData.error);
	}

	/** A run of the workflow begins to have itself suspended: what the history has for this moment happens. */
	private handOver(parentId: string): void {
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
	}

	private inHandOver(what: HandOverTrouble, row: Row): void {
		switch (what) {
			case 'stop':
				return this.stop((one) => one === row);
			case 'kill':
				return row.process?.die();
			case 'tasks end':
				return this.world.service.endAll();
			default:
				return this.world.setClock(what === 'clock set back' ? -3_600_000 : 3_600_000);
		}
	}

	private newToken(): string {
		const part = (name: string) =>
			this.world.random.between(0, 0xffffffff, 'token', name, this.rows.size).toString(16);
		// As long as n8n's own, and of the same signs.
		const token = `${part('a')}${part('b')}`.padStart(64, 'e');
		this.world.service.secrets.add(token);
		return token;
	}

	/** n8n's clock: once a minute the main process looks for executions that are due. */
	private sweep(main: Process): void {
		const { time } = this.world;
		this.within(main, 'clock', async () => {
			const due = await this.query(() =>
				[...this.rows.values()].filter(
					({ status, waitTill }) =>
						status === 'waiting' && waitTill !== undefined && waitTill <= time.wall + 70_000,
				),
			);
			for (const row of due) {
				if (main.timers.has(row.id)) continue;
				main.timers.add(row.id);
				time.schedule((row.waitTill ?? 0) - time.wall, () => {
					main.timers.delete(row.id);
					this.within(main, `resume of ${row.id}`, async () => await this.resume(main, row));
				});
			}
			const parked = await this.query(() =>
				[...this.rows.values()].filter(
					({ status, waitTill }) =>
						status === 'waiting' && waitTill === WAIT_FOR_SUB_EXECUTION.getTime(),
				),
			);
			for (const row of parked) await this.resumeIfChildFinished(main, row);
		});
		time.schedule(60_000, () => this.sweep(main), { process: main, name: 'clock' });
	}

	/** Claims a waiting execution, and has it go on. */
	private async resume(by: Process, row: Row, data?: IRunExecutionData): Promise<void> {
		const stored = data ?? fromStored(await this.query(() => row.data));
		await this.query(() => {
			if (row.status !== 'waiting') throw new Error('already being resumed');
			enter(row, 'running');
			row.process = by;
			row.resumes++;
			row.waitTill = undefined;
			row.data = toStored(stored);
		});
		this.dispatch(row, by);
		const { parentExecution } = stored;
		if (!parentExecution || parentExecution.shouldResume === false) return;
		const run = async () => await this.resumeParent(by, row, parentExecution.executionId);
		row.onEnd.push({ process: by, run });
	}

	/** A sub-execution has ended: the execution that waits for it goes on with what it put out. */
	private async resumeParent(by: Process, child: Row, parentId: string): Promise<void> {
		const parent = this.rows.get(parentId);
		if (!parent) return;
		const ended = fromStored(await this.query(() => child.data));
		const data = fromStored(await this.query(() => parent.data));
		if (parent.status !== 'waiting' || !patchParent(data, ended, child.id)) return;
		await this.query(() => {
			parent.data = toStored(data);
		});
		await this.resume(by, parent);
	}

	private async resumeIfChildFinished(by: Process, parent: Row): Promise<void> {
		const data = fromStored(await this.query(() => parent.data));
		const [waiting] = data.executionData?.nodeExecutionStack ?? [];
		const children = waiting?.metadata?.waitingChildExecutionIds;
		if (!Array.isArray(children)) return;
		const ended = children
			.map((id) => this.rows.get(String(id)))
			.find((child) => child && isTerminal(child.status));
		if (ended) await this.resumeParent(by, ended, parent.id);
	}

	/** A call of the address that resumes a waiting execution. */
	private async admitResume(
		process: Process,
		url: URL,
		httpRequest: never,
		response: Response,
	): Promise<void> {
		const [, , id = '', suffix = ''] = url.pathname.split('/');
		const row = this.rows.get(id);
		if (!row) return void response.status(404).json({ message: 'No such execution' });
		const data = fromStored(await this.query(() => row.data));
		if (data.resumeToken !== url.searchParams.get('signature')) {
			return void response.status(401).json({ error: 'Invalid token' });
		}
		if (row.status !== 'waiting') {
			return void response.status(409).json({ message: `The execution is ${row.status}` });
		}
		const [entry] = data.executionData?.nodeExecutionStack ?? [];
		const name = data.resultData.lastNodeExecuted ?? '';
		const workflow = this.workflow(process, row.definition);
		const node = workflow.getNode(name);
		if (!entry || !node) return void response.status(404).json({ message: 'No node' });
		entry.node.disabled = true;
		delete data.waitTill;
		data.resultData.runData[name]?.pop();
		const additional = {
			...this.additionalData(process, id, row.mode),
			httpRequest,
			httpResponse: response as never,
		} as IWorkflowExecuteAdditionalData;
		const hook = webhookData(workflow, additional, 'mediaGeneration', name, suffix);
		const context = new WebhookContext(workflow, node, additional, row.mode, hook, [], data);
		let result;
		try {
			result = await process.nodes.mediaGeneration.webhook?.call(context);
		} catch (error) {
			this.world.trace(`${process.name}: the webhook fails: ${String(error)}`);
			return void response.status(500).json({ message: 'Error in workflow' });
		}
		if (!result?.workflowData) return;
		entry.data.main = result.workflowData;
		try {
			await this.resume(process, row, data);
		} catch {
			return void response.status(500).json({ message: 'already being resumed' });
		}
		this.woken.push({ at: this.world.time.now, execution: id });
		response.status(200).json(result.webhookResponse);
	}

	/**
	 * A request to a webhook of n8n's.
	 *
	 * @param answer called with the answer, if there is one
	 */
	receive(
		url: URL,
		body: unknown,
		answer: (status: number, body: unknown) => void,
		headers: Record<string, unknown> = {},
	): void {
		const { history, time } = this.world;
		const doors = this.living(history.n8n === 'queue mode' ? 'webhook' : 'main');
		// As a load balancer does it.
		const process = doors[this.received++ % doors.length];
		if (!process) {
			time.later(1, () => answer(502, { message: 'Bad gateway' }));
			return;
		}
		const isResume = url.pathname.startsWith('/webhook-waiting/');
		if (!isResume && (!this.isActive || url.pathname !== TRIGGER_PATH)) {
			time.later(1, () => answer(404, { message: 'The requested webhook is not registered' }));
			return;
		}
		this.within(process, `webhook call ${++this.calls}`, async () => {
			const response = new Response((status, said) => {
				if (!process.effect()) return;
				time.later(1, () => answer(status, said));
				time.schedule(1, () => response.close());
			});
			const request = requestOf(url, body, headers);
			if (isResume) await this.admitResume(process, url, request, response);
			else await this.admit(process, request, response);
		});
	}

	private async admit(process: Process, httpRequest: never, response: Response): Promise<void> {
		const workflow = this.workflow(process);
		const node = workflow.getNode('Trigger');
		if (!node) throw new UnexpectedError('No trigger');
		const data = {
			...this.additionalData(process, 'none', 'webhook'),
			httpRequest,
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
		const stored = toStored(this.startData(this.stackOf('Trigger', items)));
		await this.query(() => this.store('webhook', 'Trigger', stored, undefined, process));
		response.status(200).json(result?.webhookResponse);
	}

	private workflow(process: Process, definition?: Definition): Workflow {
		return new Workflow({
			id: WORKFLOW_ID,
			name: 'Simulated',
			nodes: (definition?.nodes ?? nodesOf(this.world.history, this.events)).map((node) => ({
				...node,
			})),
			connections: definition?.connections ?? connections,
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
				case 'n8n-nodes-base.executeWorkflowTrigger':
					return helpers.start;
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
		const count = `${items.length} item${items.length === 1 ? '' : 's'}`;
		this.world.trace(
			`n8n: execution ${execution} goes on behind ${PLACES[node] ?? node} with ${count}`,
		);
	}

	private additionalData(
		process: Process,
		executionId: string,
		mode: WorkflowExecuteMode,
	): IWorkflowExecuteAdditionalData {
		return {
			...hostData(executionId, mode, this.isActive),
			credentialsHelper: credentialsHelper(
				process.nodes.credential,
				async () => await this.query(() => ({ ...this.credential })),
			),
			getRunExecutionData: async (id) =>
				await this.query(() => {
					const row = this.rows.get(id);
					return row && fromStored(row.data);
				}),
			executeWorkflow: async (info, _, options) =>
				await this.executeWorkflow(process, info, options),
		};
	}
}

/** Whether an execution knows of nothing that the other one does not know. */
const isSame = (one: IRunExecutionData, other: IRunExecutionData): boolean =>
	JSON.stringify(one.executionData?.contextData) ===
	JSON.stringify(other.executionData?.contextData);

function enter(row: Row, status: Status): void {
	if (row.status !== status) row.statuses.push(status);
	row.status = status;
}

function webhookData(
	workflow: Workflow,
	data: IWorkflowExecuteAdditionalData,
	typeName = 'mediaGenerationTrigger',
	node = 'Trigger',
	path = TRIGGER_PATH,
): IWebhookData {
	const type = workflow.nodeTypes.getByNameAndVersion(typeName);
	const [webhookDescription] = type.description.webhooks ?? [];
	if (!webhookDescription) throw new UnexpectedError('The trigger has no webhook');
	return {
		httpMethod: 'POST',
		node,
		path,
		webhookDescription,
		workflowId: WORKFLOW_ID,
		workflowExecuteAdditionalData: data,
	};
}

function requestOf(url: URL, body: unknown, headers: Record<string, unknown>): never {
	const rawBody = Buffer.from(JSON.stringify(body));
	return {
		method: 'POST',
		originalUrl: url.pathname + url.search,
		url: url.pathname + url.search,
		headers: {
			...Object.fromEntries(
				Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
			),
			host: url.host,
			'content-length': String(rawBody.length),
		},
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
