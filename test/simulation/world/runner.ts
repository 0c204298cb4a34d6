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
} from 'n8n-workflow';

import { beginning, fromStored, toStored } from '../../workflow/stored';
import { enter, isTerminal, type Row } from './database';
import { Part } from './part';
import type { Process } from './process';
import { outputOfSub, SUB } from './subExecution';
import { nodesOf } from './workflow';
import type { World } from './world';

/** Who runs which execution when: n8n's queue, its workers, and what they store at the end. */
export class Runner extends Part {
	/** Stores an execution that begins at a node, and has it run. */
	begin(given: Pick<Row, 'mode' | 'start'> & { items: INodeExecutionData[] }, home?: Process): Row {
		const { mode, start, items } = given;
		const node = nodesOf(this.world.history, this.n8n.isTriggerBroken).find(
			({ name }) => name === start,
		);
		if (!node) throw new UnexpectedError(`No node ${start}`);
		const data = this.startData({ node, data: { main: [items] }, source: null });
		return this.store({ mode, start, data: toStored(data) }, home);
	}

	/** Stores an execution, and has it run. */
	store(given: Parameters<World['n8n']['database']['insert']>[0], home?: Process): Row {
		const row = this.n8n.database.insert(given);
		this.dispatch(row, home);
		return row;
	}

	private startData(
		first: IExecuteData,
		more: Parameters<typeof beginning>[1] = {},
	): IRunExecutionData {
		return beginning(first, { ...more, resumeToken: this.newToken() });
	}

	/** A token of the addresses that resume an execution. */
	newToken(): string {
		const { random, service } = this.world;
		const part = (name: string) =>
			random.between(0, 0xffffffff, 'token', name, this.n8n.rows.length).toString(16);
		// As long as n8n's own, and of the same signs.
		const token = `${part('a')}${part('b')}`.padStart(64, 'e');
		service.secrets.add(token);
		return token;
	}

	/** Gives an execution to a process: the one that stored it, or in queue mode the next worker that is free. */
	dispatch(row: Row, home: Process | undefined): void {
		const { history, time, random } = this.world;
		const isQueued = history.n8n === 'queue mode';
		// The queue outlives whoever put it there. Without one, n8n has an execution run before it answers.
		row.process = isQueued ? undefined : home;
		if (row.process) enter(row, 'running');
		row.hasJob = isQueued;
		const take = () => {
			if (isTerminal(row.status) || row.process?.isDead) return;
			const candidates = this.n8n.processes.living(isQueued ? 'worker' : 'main');
			const process =
				row.process ?? candidates[random.between(0, candidates.length - 1, 'worker', row.id)];
			if (!process) {
				time.later(1_000, take);
				return;
			}
			enter(row, 'running');
			row.process = process;
			const work = async () => {
				const stored = await this.n8n.database.query(() => row.data);
				await this.execute(process, row, fromStored(stored));
			};
			this.n8n.processes.within(process, `execution ${row.id}`, work);
		};
		time.later(random.between(1, 20, 'dispatch', row.id), take);
	}

	private noteBegin({ name }: Process, { id, mode, start, retryOf, parent, resumes }: Row): void {
		const of = retryOf ?? parent;
		const how = resumes > 0 ? 'goes on with' : 'begins';
		const what = `${mode}, at ${start}${of === undefined ? '' : `, of execution ${of}`}`;
		this.world.trace(`${name}: ${how} execution ${id} (${what})`);
	}

	private async execute(process: Process, row: Row, data: IRunExecutionData): Promise<IRun> {
		this.noteBegin(process, row);
		const workflow = this.n8n.workflow(process, row.definition);
		const additional = this.n8n.additionalData(process, row.id, row.mode);
		const { hooks } = additional;
		// Each time that an execution goes on begins anew in n8n's log of events.
		row.events.clear();
		hooks?.addHandler('nodeExecuteBefore', (node) => void row.events.set(node, 'started'));
		hooks?.addHandler('nodeExecuteAfter', (node) => void row.events.set(node, 'finished'));
		hooks?.addHandler('workflowExecuteAfter', async (run) => await this.save(row, run));
		const execution = new WorkflowExecute(additional, row.mode, data).processRunExecutionData(
			workflow,
		);
		process.running.set(row.id, execution);
		const run = await execution;
		process.running.delete(row.id);
		return run;
	}

	private async save(row: Row, run: IRun): Promise<void> {
		const data = toStored(run.data);
		const waitTill = run.waitTill?.getTime();
		const [longerMs] = run.waitTill ? this.world.history.slowStores : [];
		if (longerMs) this.world.note('a suspended execution stored late');
		await this.n8n.database.query(() => {
			// What a user has stopped stays as it was then, unless a worker has taken notice of it.
			if (row.status !== 'canceled' || (row.hasJob && run.status === 'canceled')) row.data = data;
			if (row.status !== 'running') return;
			const { error } = run.data.resultData;
			// Also where the error is that of an execution before, which was stopped and retried.
			this.end(row, error && run.status === 'success' ? 'error' : run.status);
			row.waitTill = waitTill;
			if (error) this.world.trace(`n8n: execution ${row.id} says "${error.message}"`);
		}, longerMs);
	}

	/** An execution runs no more, be it only for a while. */
	end(row: Row, status: ExecutionStatus): void {
		enter(row, status);
		row.waitTill = undefined;
		if (status === 'waiting') row.waits++;
		this.world.trace(`n8n: execution ${row.id} is ${status}`);
		const { onEnd } = row;
		// Whoever resumed it waits until it stops, be it only to wait again.
		row.onEnd = [];
		if (!isTerminal(status)) return;
		row.endedAt = this.world.time.now;
		for (const { process, run } of onEnd) {
			this.n8n.processes.within(process, `parent of ${row.id}`, run);
		}
	}

	/** A node starts a workflow of its own. */
	async executeWorkflow(
		process: Process,
		{ code }: IExecuteWorkflowInfo,
		{ parentExecution, inputData, doNotWaitToFinish }: ExecuteWorkflowOptions,
	): Promise<ExecuteWorkflowData> {
		const [node] = code?.nodes ?? [];
		if (!code || !node) throw new UnexpectedError('No sub-workflow');
		if (parentExecution?.shouldResume) this.n8n.noteHandOver(parentExecution.executionId);
		const first: IExecuteData = {
			node,
			data: { main: [inputData ?? [{ json: {} }]] },
			metadata: { parentExecution },
			source: null,
		};
		const data = this.startData(first, { parentExecution });
		const row = await this.n8n.database.query(() => {
			const stored = this.n8n.database.insert({
				mode: 'integrated',
				start: SUB,
				data: toStored(data),
				definition: { nodes: code.nodes, connections: code.connections },
				process,
				parent: parentExecution?.executionId,
			});
			enter(stored, 'running');
			return stored;
		});
		const running = this.execute(process, row, data);
		if (doNotWaitToFinish) return { executionId: row.id, data: [null] };
		const run = await running;
		if (run.finished || run.status === 'waiting') {
			return { executionId: row.id, data: outputOfSub(run), waitTill: run.waitTill };
		}
		throw Object.assign(new Error(run.data.resultData.error?.message), run.data.resultData.error);
	}
}
