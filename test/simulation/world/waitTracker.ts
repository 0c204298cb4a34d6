import { type IRunExecutionData, WAIT_FOR_SUB_EXECUTION } from 'n8n-workflow';

import { fromStored, toStored } from '../../workflow/stored';
import { enter, isTerminal, type Row } from './database';
import { Part } from './part';
import type { Process } from './process';
import { patchParent } from './subExecution';

const EVERY_MS = 60_000;

/** For what is due so soon, the main process sets a timer of its own. */
const AHEAD_MS = 70_000;

/** n8n's clock: once a minute the main process looks for executions that wait and are due. */
export class WaitTracker extends Part {
	/** Begins to look, in a main process that has just started. */
	sweep(main: Process): void {
		const { time } = this.world;
		const { processes, database, rows } = this.n8n;
		const waiting = (isDue: (waitTill: number) => boolean) => () =>
			rows.filter(
				({ status, waitTill }) => status === 'waiting' && waitTill !== undefined && isDue(waitTill),
			);
		processes.within(main, 'clock', async () => {
			const due = await database.query(waiting((till) => till <= time.wall + AHEAD_MS));
			for (const row of due) {
				if (main.timers.has(row.id)) continue;
				main.timers.add(row.id);
				time.schedule((row.waitTill ?? 0) - time.wall, () => {
					main.timers.delete(row.id);
					const work = async () => await this.resume(main, row);
					processes.within(main, `resume of ${row.id}`, work);
				});
			}
			const never = WAIT_FOR_SUB_EXECUTION.getTime();
			const parked = await database.query(waiting((till) => till === never));
			for (const row of parked) await this.resumeIfChildFinished(main, row);
		});
		time.schedule(EVERY_MS, () => this.sweep(main), { process: main, name: 'clock' });
	}

	/**
	 * Claims a waiting execution, and has it go on.
	 *
	 * @param data in place of what is stored
	 * @throws where it does not wait any more
	 */
	async resume(by: Process, row: Row, data?: IRunExecutionData): Promise<void> {
		const { database, runner } = this.n8n;
		const stored = data ?? fromStored(await database.query(() => row.data));
		await database.query(() => {
			if (row.status !== 'waiting') throw new Error('already being resumed');
			enter(row, 'running');
			row.process = by;
			row.resumes++;
			row.waitTill = undefined;
			row.data = toStored(stored);
		});
		runner.dispatch(row, by);
		const { parentExecution } = stored;
		if (!parentExecution || parentExecution.shouldResume === false) return;
		const run = async () => await this.resumeParent(by, row, parentExecution.executionId);
		row.onEnd.push({ process: by, run });
	}

	/** A sub-execution has ended: the execution that waits for it goes on with what it put out. */
	private async resumeParent(by: Process, child: Row, parentId: string): Promise<void> {
		const { database } = this.n8n;
		const parent = this.n8n.row(parentId);
		if (!parent) return;
		const ended = fromStored(await database.query(() => child.data));
		const data = fromStored(await database.query(() => parent.data));
		if (parent.status !== 'waiting' || !patchParent(data, ended, child.id)) return;
		await database.query(() => {
			parent.data = toStored(data);
		});
		await this.resume(by, parent);
	}

	private async resumeIfChildFinished(by: Process, parent: Row): Promise<void> {
		const { database } = this.n8n;
		const data = fromStored(await database.query(() => parent.data));
		const [waiting] = data.executionData?.nodeExecutionStack ?? [];
		const children = waiting?.metadata?.waitingChildExecutionIds;
		if (!Array.isArray(children)) return;
		const ended = children
			.map((id) => this.n8n.row(String(id)))
			.find((child) => child && isTerminal(child.status));
		if (ended) await this.resumeParent(by, ended, parent.id);
	}
}
