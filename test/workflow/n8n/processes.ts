import { createRunExecutionData } from 'n8n-workflow';

import { fromStored, toStored } from '../stored';
import { amendCrashed } from './crash';
import type { Row } from './database';
import type { MemoryN8n } from './memoryN8n';
import { Places } from './places';
import { Process, type Role } from './process';

const ONE = ['main'];
const QUEUE_MODE = ['main', 'worker-1', 'worker-2', 'webhook-1', 'webhook-2'];

/** So long after the death of a worker n8n notices what it was at, and erases what it has stored of that. */
const STALLED_MS = 60_000;
const ERASED_MS = 90_000;

/** So long after its start n8n stores the executions that it takes for crashed. */
const RECOVERED_MS = [100, 2_000] as const;

/** n8n's processes: their deaths and starts, and what n8n makes of the executions that ran in a dead one. */
export class Processes {
	readonly names: readonly string[];
	private readonly all = new Map<string, Process>();
	private readonly boots = new Map<string, number>();

	constructor(private readonly n8n: MemoryN8n) {
		this.names = n8n.setting.isQueueMode ? QUEUE_MODE : ONE;
	}

	start(): void {
		for (const name of this.names) this.boot(name);
	}

	living(role: Role): Process[] {
		return [...this.all.values()].filter((process) => process.role === role && !process.isDead);
	}

	/** Does something in a process, as an activity of its own. */
	within(process: Process, name: string, work: () => Promise<unknown>): void {
		const fail = (error: unknown) => this.n8n.trace(`${process.name}: ${name}: ${String(error)}`);
		this.n8n.time.schedule(0, () => void work().catch(fail), { process, name });
	}

	private boot(name: string): void {
		const { n8n } = this;
		const role = name.split('-', 1)[0] as Role;
		const boots = this.boots.get(name) ?? 0;
		this.boots.set(name, boots + 1);
		const death = n8n.deathOf(name, boots);
		const onDeath = (dead: Process) => {
			Object.assign(dead, { diedAt: n8n.time.now, diedIn: n8n.time.count });
			n8n.note(`${role === 'main' ? 'main process' : role} killed`);
			n8n.trace(`${name}: dies`);
			n8n.time.later(death?.downMs ?? 1_000, () => {
				this.recover(dead);
				this.boot(name);
				n8n.trace(`${name}: starts again`);
			});
		};
		const { isQueueMode, productionLimit = Infinity } = n8n.setting;
		const places = new Places(isQueueMode ? Infinity : productionLimit);
		const process = new Process(name, role, n8n.load(), places, death, onDeath);
		this.all.set(name, process);
		if (role === 'main') n8n.executions.lookForDue(process);
		if (!isQueueMode && boots > 0) this.recoverSleepers();
	}

	/**
	 * While it starts n8n takes what sleeps for crashed, since its log has no end of it, and then looks closer. An execution
	 * that was due has been woken by then: n8n stores it as it slept, and wakes it a second time.
	 */
	private recoverSleepers(): void {
		const { n8n } = this;
		for (const row of n8n.rows) {
			const { status, statuses, data, waitTill, wakes } = row;
			if (status !== 'waiting') continue;
			statuses.push('crashed', 'waiting');
			n8n.time.later(n8n.random.between(...RECOVERED_MS, 'recovery', row.id, wakes), () => {
				if (row.wakes !== wakes) n8n.executions.takeForAsleep(row, { data, waitTill });
			});
		}
	}

	/**
	 * What ran in a process that died is crashed when n8n is back; of a worker, when the main process notices that the
	 * worker's job stands still.
	 */
	private recover(dead: Process): void {
		for (const row of this.n8n.rows) {
			if (row.process !== dead) continue;
			// What still waited for its place begins when n8n is back.
			if (row.status === 'new') this.n8n.executions.dispatch(row);
			// n8n takes a run that was woken twice for asleep.
			if (row.isWokenTwice && dead.running.has(row.id)) row.isKilled = true;
			if (row.status !== 'running') continue;
			row.isKilled = true;
			this.n8n.note(row.wakes > 0 ? 'execution killed in a later turn' : 'execution killed');
			if (dead.role !== 'worker') this.crash(row);
			else {
				this.n8n.time.later(STALLED_MS, () => this.crash(row));
				if (this.n8n.setting.erasesStalled) this.n8n.time.later(ERASED_MS, () => this.erase(row));
			}
		}
	}

	private erase(row: Row): void {
		if (row.status !== 'crashed') return;
		this.failJob(row);
		this.n8n.note('a stalled execution erased');
	}

	/** n8n ends the job of an execution, and puts the job's error in the place of all that it has stored of it. */
	failJob(row: Row): void {
		const error = { message: 'This execution failed to be processed too many times' };
		row.data = toStored(
			createRunExecutionData({ resultData: { error: error as never, runData: {} } }),
		);
		this.n8n.executions.end(row, 'error');
	}

	private crash(row: Row): void {
		if (row.status !== 'running') return;
		const { nodes } = row.definition ?? this.n8n.definition;
		row.data = toStored(amendCrashed(fromStored(row.data), nodes, row.events));
		this.n8n.executions.end(row, 'crashed');
	}
}
