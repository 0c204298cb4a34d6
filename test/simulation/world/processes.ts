import { createRunExecutionData } from 'n8n-workflow';

import { fromStored, toStored } from '../../workflow/stored';
import { amendCrashed } from './crash';
import type { Row } from './database';
import type { NodeSources } from './nodeSources';
import { Process, type Role } from './process';
import { nodesOf } from './workflow';
import type { World } from './world';

const NAMES = {
	'one process': ['main'],
	'queue mode': ['main', 'worker-1', 'worker-2', 'webhook-1', 'webhook-2'],
};

/** So long after the death of a worker n8n notices what it was at. */
const STALLED_MS = 60_000;

/** n8n's processes: their deaths and starts, and what n8n makes of the executions that ran in a dead one. */
export class Processes {
	private readonly all = new Map<string, Process>();
	private readonly boots = new Map<string, number>();

	/** @param onMain called with each main process when it has started */
	constructor(
		private readonly world: World,
		private readonly sources: NodeSources,
		private readonly onMain: (main: Process) => void,
	) {}

	start(): void {
		for (const name of NAMES[this.world.history.n8n]) this.boot(name);
	}

	living(role: Role): Process[] {
		return [...this.all.values()].filter((process) => process.role === role && !process.isDead);
	}

	/** Does something in a process, as an activity of its own. */
	within(process: Process, name: string, work: () => Promise<unknown>): void {
		const fail = (error: unknown) => this.world.trace(`${process.name}: ${name}: ${String(error)}`);
		this.world.time.schedule(0, () => void work().catch(fail), { process, name });
	}

	/** Starts a process, which dies where the history says so. */
	private boot(name: string): void {
		const { history, time, isTroubled } = this.world;
		const names = NAMES[history.n8n];
		const role = name.split('-', 1)[0] as Role;
		const deaths = history.kills.filter(({ process }) => names[process % names.length] === name);
		const boots = this.boots.get(name) ?? 0;
		this.boots.set(name, boots + 1);
		const kill = isTroubled ? deaths[boots] : undefined;
		const counts = () =>
			this.world.isTroubled && (kill?.of !== 'callbacks' || this.isOfCallback(time.activity.name));
		const onDeath = (dead: Process) => {
			Object.assign(dead, { diedAt: time.now, diedIn: time.count });
			this.world.note(`${role === 'main' ? 'main process' : role} killed`);
			this.world.trace(`${name}: dies`);
			time.later(kill?.downMs ?? 1_000, () => {
				this.recover(dead);
				this.boot(name);
				this.world.trace(`${name}: starts again`);
			});
		};
		const death = kill && { ...kill, counts };
		const process = new Process(name, role, this.sources.load(), death, onDeath);
		this.all.set(name, process);
		if (role === 'main') this.onMain(process);
		if (history.n8n === 'queue mode' || boots === 0) return;
		// While it starts n8n takes what waits for crashed, since its log has no end of it, and then looks closer.
		for (const { status, statuses } of this.world.n8n.rows) {
			if (status === 'waiting') statuses.push('crashed', 'waiting');
		}
	}

	/** Whether an activity is a callback, or the execution that one has started. */
	private isOfCallback(activity: string): boolean {
		const [kind, id = ''] = activity.split(' ');
		return kind === 'webhook' || this.world.n8n.row(id)?.start === 'Trigger';
	}

	/**
	 * What was running in a process that died: n8n marks it as crashed when it is back. In queue mode the main process
	 * notices that the job of a dead worker stands still, and ends the execution with an error of its own; what had no
	 * job of its own, a sub-execution that had not waited yet, is marked as crashed some time later.
	 */
	private recover(dead: Process): void {
		for (const row of this.world.n8n.rows) {
			if (row.process !== dead || row.status !== 'running') continue;
			row.isKilled = true;
			if (dead.role !== 'worker') this.crash(row);
			else if (row.hasJob) this.world.time.later(STALLED_MS, () => this.stall(row));
			else this.world.time.later(STALLED_MS, () => this.crash(row));
		}
	}

	private crash(row: Row): void {
		if (row.status !== 'running') return;
		const { history, n8n } = this.world;
		const nodes = row.definition?.nodes ?? nodesOf(history, n8n.isTriggerBroken);
		row.data = toStored(amendCrashed(fromStored(row.data), nodes, row.events));
		n8n.runner.end(row, 'crashed');
	}

	private stall(row: Row): void {
		if (row.status !== 'running') return;
		if (!this.living('main')[0]) return this.crash(row);
		const error = { message: 'job stalled more than maxStalledCount' } as never;
		const { runner } = this.world.n8n;
		const resumeToken = runner.newToken();
		const resultData = { error, runData: {} };
		row.data = toStored(createRunExecutionData({ resultData, resumeToken }));
		runner.end(row, 'error');
	}
}
