import { WorkflowExecute } from 'n8n-core';
import {
	type ExecuteWorkflowData,
	type ExecuteWorkflowOptions,
	type ExecutionStatus,
	type IExecuteData,
	type IExecuteWorkflowInfo,
	type INodeExecutionData,
	type IRun,
	type IRunExecutionData,
	UnexpectedError,
	type WorkflowExecuteMode,
} from 'n8n-workflow';

import { beginning, dataOfRetry, fromStored, toStored } from '../stored';
import { type Definition, enter, isTerminal, type NewRow, type Row } from './database';
import type { MemoryN8n } from './memoryN8n';
import { needsPlace } from './places';
import type { Process } from './process';
import { renameUploads } from './uploads';

/** What a sub-execution starts at, in the list of executions. */
export const SUB = 'Sub';

/** How often the main process looks for executions that are due. */
const EVERY_MS = 60_000;

/** For what is due so soon, the main process sets a timer of its own. */
const AHEAD_MS = 70_000;

/** Who runs which execution when: what n8n stores, and what it makes of sleeps, stops and retries. */
export class Executions {
	constructor(private readonly n8n: MemoryN8n) {}

	/** Stores an execution that begins at a node, and has it run. */
	begin(
		given: Pick<Row, 'mode' | 'start'> & { items: INodeExecutionData[]; definition?: Definition },
		home?: Process,
	): Row {
		const { mode, start, items, definition = this.n8n.storedDefinition?.(start) } = given;
		const { nodes } = definition ?? this.n8n.definition;
		const node = nodes.find(({ name }) => name === start);
		if (!node) throw new UnexpectedError(`No node ${start}`);
		const data = this.startData({ node, data: { main: [items] }, source: null });
		return this.store({ mode, start, data: toStored(data), definition }, home);
	}

	private store(given: NewRow, home?: Process): Row {
		const row = this.n8n.database.insert(given);
		this.dispatch(row, home);
		return row;
	}

	private startData(
		first: IExecuteData,
		more: Parameters<typeof beginning>[1] = {},
	): IRunExecutionData {
		return beginning(first, { ...more, resumeToken: this.n8n.newToken() });
	}

	/**
	 * Gives an execution to a process: the one that stored it, or in queue mode a worker.
	 *
	 * @param isPlaced whether it has its place
	 */
	dispatch(row: Row, home?: Process, isPlaced = false): void {
		const { time, random, processes, setting, database } = this.n8n;
		// The queue outlives whoever put it there. Without one, n8n has an execution run before it answers.
		row.process = setting.isQueueMode ? undefined : home;
		if (row.process && (isPlaced || !this.isLimited(row.process, row))) enter(row, 'running');
		row.hasJob = setting.isQueueMode;
		const take = () => {
			if (isTerminal(row.status) && isPlaced) this.leavePlace(home, row);
			if (isTerminal(row.status) || row.process?.isDead) return;
			const candidates = processes.living(setting.isQueueMode ? 'worker' : 'main');
			const process =
				row.process ?? candidates[random.between(0, candidates.length - 1, 'worker', row.id)];
			if (!process) {
				time.later(1_000, take);
				return;
			}
			row.process = process;
			if (isPlaced || !this.isLimited(process, row)) enter(row, 'running');
			processes.within(process, `execution ${row.id}`, async () => {
				if (!isPlaced) await this.takePlace(process, row);
				try {
					if (isTerminal(row.status)) return;
					enter(row, 'running');
					row.whenPlaced?.();
					const read = await database.query(() => row.data).catch(() => undefined);
					// In one process n8n has the data at hand. A worker's job fails without them.
					if (read === undefined && row.hasJob) processes.failJob(row);
					else await this.execute(process, row, fromStored(read ?? row.data));
				} finally {
					this.leavePlace(process, row);
				}
			});
		};
		time.later(random.between(1, 20, 'dispatch', row.id), take);
	}

	/** Whether n8n's production concurrency limit holds for an execution. */
	private readonly isLimited = ({ places }: Process, { mode }: Row): boolean =>
		places.isLimited && needsPlace(mode);

	private async takePlace(process: Process, row: Row): Promise<void> {
		if (!this.isLimited(process, row)) return;
		await this.n8n.time.wait<void>((go) => process.places.take(row.id, go));
	}

	private leavePlace(process: Process | undefined, row: Row): void {
		if (process && this.isLimited(process, row)) process.places.give();
	}

	/** @param root how the execution at the root was started. n8n forgets it when the execution sleeps */
	private async execute(
		process: Process,
		row: Row,
		data: IRunExecutionData,
		root?: WorkflowExecuteMode,
	): Promise<IRun> {
		const { id, mode, start, retryOf, wakes, data: stored } = row;
		const of = retryOf === undefined ? '' : `, of execution ${retryOf}`;
		this.n8n.trace(
			`${process.name}: ${wakes > 0 ? 'wakes' : 'begins'} execution ${id} (${mode}, at ${start}${of})`,
		);
		const workflow = this.n8n.workflow(process, row.definition);
		const additional = this.n8n.additionalData(process, id, mode, root);
		const { hooks } = additional;
		// Each time that an execution goes on begins anew in n8n's log of events.
		row.events.clear();
		hooks?.addHandler('nodeExecuteBefore', (node) => void row.events.set(node, 'started'));
		hooks?.addHandler('nodeExecuteAfter', (node) => void row.events.set(node, 'finished'));
		hooks?.addHandler('workflowExecuteAfter', async (run) => {
			const isSecond = row.isWokenTwice && row.wakes === wakes;
			await this.save(row, run, isSecond ? stored : undefined);
		});
		const execution = new WorkflowExecute(additional, mode, data).processRunExecutionData(workflow);
		process.running.set(id, execution);
		const endTimer = this.limit(row, () => execution.cancel());
		const run = await execution;
		endTimer();
		process.running.delete(id);
		if (wakes > 0) await this.wakeCaller(row, run);
		return run;
	}

	/**
	 * Cancels an execution when its time is up: in one process its time counts from when the execution first ran, on a
	 * worker from each wake.
	 *
	 * @returns ends the timer
	 */
	private limit(row: Row, cancel: () => void): () => void {
		const { executionTimeout = 0 } = row.definition?.settings ?? this.n8n.settings;
		const { time, setting } = this.n8n;
		if (executionTimeout <= 0) return () => undefined;
		row.startedAt ??= time.now;
		const ageMs = setting.isQueueMode ? 0 : time.now - row.startedAt;
		return time.schedule(executionTimeout * 1000 - ageMs, () => {
			this.n8n.trace(`n8n: the time of execution ${row.id} is up`);
			cancel();
		});
	}

	/** @param began the state that a second wake began with */
	private async save(row: Row, run: IRun, began?: string): Promise<void> {
		if (row.mode === 'webhook')
			renameUploads(run, row.id, (...names) => this.n8n.rename?.(...names));
		const data = toStored(run.data);
		const waitTill = run.waitTill?.getTime();
		if (waitTill !== undefined) this.n8n.noteSleep(row, waitTill);
		const longerMs = waitTill === undefined ? 0 : this.n8n.setting.storesLateMs;
		if (longerMs > 0) this.n8n.note('a sleeping execution stored late');
		const store = () => {
			// What a user has stopped stays as it was then, unless a worker has taken notice of it.
			if (began !== undefined && row.data !== began) row.isOutOfDate = true;
			if (row.status !== 'canceled' || (row.hasJob && run.status === 'canceled')) row.data = data;
			const isTwin = row.isWokenTwice && row.status !== 'canceled';
			if (row.status !== 'running' && !isTwin) return;
			const { error } = run.data.resultData;
			// Also where the error is that of an execution before, which was stopped and retried.
			this.end(row, error && run.status === 'success' ? 'error' : run.status);
			row.waitTill = waitTill;
			if (error) this.n8n.trace(`n8n: execution ${row.id} says "${error.message}"`);
		};
		await this.n8n.database.query(store, longerMs).catch((error: unknown) => {
			// The engine ends an execution once more whose sleep could not be stored.
			row.isEndUnstored ??= waitTill === undefined;
			// The engine waits for no hook of an execution that it cancels.
			if (run.status !== 'canceled') throw error;
		});
	}

	/** An execution runs no more, be it only for a while. */
	end(row: Row, status: ExecutionStatus): void {
		enter(row, status);
		row.waitTill = undefined;
		if (status === 'waiting') row.sleeps++;
		if (isTerminal(status)) row.endedAt = this.n8n.time.now;
		this.n8n.trace(`n8n: execution ${row.id} is ${status}`);
	}

	/** Has the main process look once a minute for sleeping executions that are due. */
	lookForDue(main: Process): void {
		const { time, processes, database, rows } = this.n8n;
		processes.within(main, 'clock', async () => {
			const due = await database.query(() =>
				rows.filter(
					({ status, waitTill = Infinity }) =>
						status === 'waiting' && waitTill <= time.wall + AHEAD_MS,
				),
			);
			for (const row of due) {
				if (main.timers.has(row.id)) continue;
				main.timers.add(row.id);
				time.schedule((row.waitTill ?? 0) - time.wall, () => {
					main.timers.delete(row.id);
					processes.within(main, `wake of ${row.id}`, async () => await this.wake(main, row));
				});
			}
		});
		time.schedule(EVERY_MS, () => this.lookForDue(main), { process: main, name: 'clock' });
	}

	/**
	 * n8n reads an execution first, and waits for a place then; meanwhile it stays asleep, so that each look has it wait once
	 * more. It begins with what was read, whatever was stored since.
	 */
	private async wake(by: Process, row: Row): Promise<void> {
		const { data, waitTill } = row;
		await this.takePlace(by, row);
		try {
			await this.n8n.database.query(() => {
				if (row.status !== 'waiting') throw new UnexpectedError('It does not sleep any more');
				if (row.data !== data) this.n8n.note('an old copy of an execution runs');
				enter(row, 'running');
				const wokenAt = this.n8n.time.now;
				Object.assign(row, { data, process: by, waitTill: undefined, wokenAt });
				row.wakes++;
			});
		} catch (error) {
			this.leavePlace(by, row);
			throw error;
		}
		this.dispatch(row, by, true);
		this.n8n.noteWake?.(row, () => this.takeForAsleep(row, { data, waitTill }));
	}

	/** n8n takes an execution that it has woken for asleep, and will wake it again from what was stored. */
	takeForAsleep(row: Row, stored: Pick<Row, 'data' | 'waitTill'>): void {
		if (row.status !== 'running') return;
		this.n8n.note('woken twice');
		this.n8n.trace(`n8n: takes execution ${row.id}, which runs, for asleep`);
		Object.assign(row, { ...stored, isWokenTwice: true });
		enter(row, 'waiting');
	}

	/**
	 * Redis has gone back by a moment, after a power cut say: its queue has an execution again that a worker had taken. A worker
	 * runs it, under the same id, with what is stored.
	 */
	runAgain(row: Row): void {
		this.n8n.note('an execution run again');
		this.dispatch(row);
	}

	/** A user stops an execution, awake or asleep. */
	stop(row: Row): void {
		const { database, processes, time } = this.n8n;
		const [main] = processes.living('main');
		const isGoingOn = () => !isTerminal(row.status);
		if (!main) return;
		this.n8n.trace(`user: stops execution ${row.id}`);
		processes.within(main, `stop of ${row.id}`, async () => {
			const stored = await database.query(() => row.data);
			if (!isGoingOn()) return;
			if (main.places.leave(row.id)) {
				// n8n takes it for one that does not run, and cancels nothing.
				row.isStopUnheard = row.status === 'running';
				return void (await database.query(() => this.end(row, 'canceled')));
			}
			const { process } = row;
			if (!process?.running.has(row.id)) row.isStopUnheard = row.status === 'running';
			if (process && !process.isDead) {
				processes.within(process, `execution ${row.id}`, async () => {
					process.running.get(row.id)?.cancel();
				});
			}
			const data = fromStored(stored);
			const extra = { executionId: row.id };
			const error = { message: 'The execution was cancelled manually', extra };
			data.resultData.error = { ...error, timestamp: time.wall } as never;
			await database.query(() => {
				row.data = toStored(data);
				this.end(row, 'canceled');
			});
		});
	}

	/**
	 * *Retry execution* of the list of executions.
	 *
	 * @param workflow `saved` gives all entries of a node on the stack the same node, as it is saved now
	 * @returns the new execution; undefined if n8n has nothing to begin with
	 */
	retry(row: Row, workflow: 'original' | 'saved' = 'original'): Row | undefined {
		const data = dataOfRetry(row.data);
		const stack = data.executionData?.nodeExecutionStack ?? [];
		if (!stack[0] || !this.n8n.processes.living('main')[0]) return undefined;
		const { start, id: retryOf } = row;
		const saved = start === SUB ? row.definition : this.n8n.storedDefinition?.(start);
		const definition = workflow === 'saved' ? saved : row.definition;
		if (workflow === 'saved') {
			const { nodes } = structuredClone(definition ?? this.n8n.definition);
			for (const entry of stack) {
				entry.node = nodes.find(({ name }) => name === entry.node.name) ?? entry.node;
			}
		}
		const retry = this.store({ mode: 'retry', start, data: toStored(data), retryOf, definition });
		row.retriedBy = retry.id;
		retry.isOfSaved = workflow === 'saved';
		this.n8n.trace(`user: retries execution ${row.id} as ${retry.id} (${workflow} workflow)`);
		return retry;
	}

	/**
	 * A node starts a workflow: one that stands in the node, and that nobody waits for, or the user's, whose end the node waits
	 * for.
	 *
	 * @param info.id the node that the user's workflow begins at
	 * @param root how the execution at the root was started
	 */
	async executeWorkflow(
		process: Process,
		{ code, id }: IExecuteWorkflowInfo,
		{ parentExecution, inputData, doNotWaitToFinish = false }: ExecuteWorkflowOptions,
		root: WorkflowExecuteMode,
	): Promise<ExecuteWorkflowData> {
		const { database, definition: own } = this.n8n;
		const node = code ? code.nodes[0] : own.nodes.find(({ name }) => name === id);
		if (!node || doNotWaitToFinish === !code) throw new UnexpectedError('Not in this n8n');
		const first: IExecuteData = {
			node,
			data: { main: [inputData ?? [{ json: {} }]] },
			metadata: { parentExecution },
			source: null,
		};
		const data = this.startData(first, { parentExecution });
		const row = await database.query(() => {
			const start = code ? SUB : node.name;
			const definition = code ?? this.n8n.storedDefinition?.(start);
			const given = { mode: 'integrated', start, definition, process } as const;
			const stored = database.insert({ ...given, data: toStored(data), caller: parentExecution });
			enter(stored, 'running');
			return stored;
		});
		const executionId = row.id;
		const ended = new Promise<IRun>((resolve, reject) => {
			this.n8n.processes.within(process, `execution ${executionId}`, async () => {
				await this.execute(process, row, data, root).then(resolve, reject);
			});
		});
		if (doNotWaitToFinish) return { executionId, data: [null] };
		const run = await ended;
		if (run.finished !== true && run.status !== 'waiting') {
			throw Object.assign(new Error(), run.data.resultData.error);
		}
		return { executionId, data: [lastItemsOf(run.data)], waitTill: run.waitTill ?? null };
	}

	/** A sub-workflow that slept has ended: its caller, which sleeps since then, goes on with its items. */
	private async wakeCaller({ caller }: Row, { data, status }: IRun): Promise<void> {
		const row = this.n8n.row(caller?.executionId);
		const [main] = this.n8n.processes.living('main');
		if (!row || !main || !caller?.shouldResume || status === 'waiting') return;
		await this.n8n.database.query(() => {
			if (row.status !== 'waiting') return;
			const parked = fromStored(row.data);
			const [first] = parked.executionData?.nodeExecutionStack ?? [];
			if (first) first.data = { main: [lastItemsOf(data)] };
			if (data.resultData.error) parked.resultData.error = data.resultData.error;
			row.data = toStored(parked);
		});
		this.n8n.processes.within(main, `wake of ${row.id}`, async () => await this.wake(main, row));
	}
}

/** What left the node that was run last. */
function lastItemsOf({ resultData }: IRunExecutionData): INodeExecutionData[] {
	const { runData, lastNodeExecuted = '' } = resultData;
	return runData[lastNodeExecuted]?.at(-1)?.data?.main?.[0] ?? [];
}
