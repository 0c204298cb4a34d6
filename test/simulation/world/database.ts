import type { ExecutionStatus, WorkflowExecuteMode } from 'n8n-workflow';

import type { Process } from './process';
import type { Definition } from './subExecution';
import type { World } from './world';

export const isTerminal = (status: ExecutionStatus): boolean =>
	['success', 'error', 'canceled', 'crashed'].includes(status);

interface NewRow {
	mode: WorkflowExecuteMode;
	start: string;
	data: string;
	retryOf?: string | undefined;
	/** The execution whose node has started it, if one has. */
	parent?: string | undefined;
	/** The workflow of a sub-execution; undefined for the one that the user has made. */
	definition?: Definition | undefined;
	/** Where it runs, or ran last. */
	process?: Process | undefined;
}

const rowOf = (id: string, given: NewRow) => ({
	id,
	status: 'new' as ExecutionStatus,
	/** All that it has had, in order. */
	statuses: ['new'] as ExecutionStatus[],
	begin: given.data,
	/** How often it was suspended, and how often it has gone on after that. */
	waits: 0,
	resumes: 0,
	/** Whether its process died while it ran. */
	isKilled: false,
	/** When it came to its end, milliseconds since the history began. */
	endedAt: undefined as number | undefined,
	retriedBy: undefined as string | undefined,
	/** The nodes that have begun, and whether they have ended, as n8n's log of events has it. */
	events: new Map<string, 'started' | 'finished'>(),
	/** Whether it was given to a worker as a job of its own. */
	hasJob: false,
	/** Until when it waits, by the wall clock. */
	waitTill: undefined as number | undefined,
	/** Called once where it ends, in the processes that wait for that. */
	onEnd: [] as Array<{ process: Process; run: () => Promise<unknown> }>,
	...given,
});

/** An execution as n8n's database keeps it. */
export type Row = ReturnType<typeof rowOf>;

/** n8n's database: its table of executions, and the time that queries take. */
export class Database {
	readonly rows: Row[] = [];

	constructor(private readonly world: World) {}

	/**
	 * A query of the present process: done where it takes place, and heard of where the process still lives then.
	 *
	 * @param longerMs how much longer than others it takes
	 */
	async query<T>(work: () => T, longerMs = 0): Promise<T> {
		const { time, random, history } = this.world;
		const { activity } = time;
		if (activity.process && !activity.process.effect()) return await new Promise(() => undefined);
		const there = random.between(1, history.slowestQueryMs, 'query', time.count);
		const back = random.between(1, history.slowestQueryMs, 'result', time.count);
		return await new Promise<T>((resolve, reject) => {
			time.later(there + longerMs, () => {
				try {
					const result = work();
					time.schedule(back, () => resolve(result), activity);
				} catch (error) {
					time.schedule(back, () => reject(error as Error), activity);
				}
			});
		});
	}

	insert(given: NewRow): Row {
		const row = rowOf(String(this.rows.length + 1), given);
		this.rows.push(row);
		return row;
	}
}

export function enter(row: Row, status: ExecutionStatus): void {
	if (row.status !== status) row.statuses.push(status);
	row.status = status;
}
