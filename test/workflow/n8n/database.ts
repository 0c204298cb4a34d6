import type {
	ExecutionStatus,
	IConnections,
	INode,
	IWorkflowSettings,
	RelatedExecution,
	WorkflowExecuteMode,
} from 'n8n-workflow';

import type { MemoryN8n } from './memoryN8n';
import type { Process } from './process';

/** A workflow: that of the user, or one that stands in a node and in no list. */
export interface Definition {
	nodes: INode[];
	connections: IConnections;
	/** Default: those of the user's workflow. */
	settings?: IWorkflowSettings;
}

export const isTerminal = (status: ExecutionStatus): boolean =>
	['success', 'error', 'canceled', 'crashed'].includes(status);

export interface NewRow {
	mode: WorkflowExecuteMode;
	/** The node that the execution begins at. */
	start: string;
	/** What is stored of the execution. */
	data: string;
	retryOf?: string | undefined;
	/** The workflow that is stored with the execution; undefined for the user's workflow as it is saved. */
	definition?: Definition | undefined;
	/** Where the execution runs, or ran last. */
	process?: Process | undefined;
	/** The execution that has started a sub-workflow. */
	caller?: RelatedExecution | undefined;
}

const rowOf = (id: string, begunAt: number, given: NewRow) => ({
	id,
	status: 'new' as ExecutionStatus,
	/** All that the status has been, in order. */
	statuses: ['new'] as ExecutionStatus[],
	begin: given.data,
	/** How often the execution went to sleep, and how often it was woken. */
	sleeps: 0,
	wakes: 0,
	/** Whether it was stopped before its process had begun it: n8n tells nobody, and the execution runs. */
	isStopUnheard: false,
	/** Whether its process died while it ran. */
	isKilled: false,
	/** Whether a start of n8n had it wake a second time. */
	isWokenTwice: false,
	/** Whether n8n has stored a second wake, which began with an older state, over what the first wake had stored. */
	isOutOfDate: false,
	/** Whether the database was away when the execution came to its end, and not to a sleep: n8n lists it as running until it starts again. */
	isEndUnstored: undefined as boolean | undefined,
	/** When the execution was stored first, milliseconds since the history began. */
	begunAt,
	/** When it first ran, milliseconds since the history began: what n8n counts a time limit from. */
	startedAt: undefined as number | undefined,
	/** When n8n woke it last, with a place, milliseconds since the history began. */
	wokenAt: undefined as number | undefined,
	/** When the execution came to its end, milliseconds since the history began. */
	endedAt: undefined as number | undefined,
	retriedBy: undefined as string | undefined,
	/** Whether the execution is a retry with the currently saved workflow. */
	isOfSaved: false,
	/** The nodes that have begun, and whether they have ended, as n8n's log of events has it. */
	events: new Map<string, 'started' | 'finished'>(),
	/** Whether the execution was given to a worker. */
	hasJob: false,
	/** Called when it has got its place. */
	whenPlaced: undefined as (() => void) | undefined,
	/** Until when it sleeps, by the wall clock. */
	waitTill: undefined as number | undefined,
	...given,
});

/** An execution as n8n's database keeps it. */
export type Row = ReturnType<typeof rowOf>;

/** n8n's table of executions, and the time that queries take. */
export class Database {
	readonly rows: Row[] = [];

	/** Until when the database is away, milliseconds since the history began. */
	private awayUntil = -Infinity;

	constructor(private readonly n8n: MemoryN8n) {}

	/** Nobody reaches the database for so many milliseconds. */
	goAway(ms: number): void {
		this.awayUntil = Math.max(this.awayUntil, this.n8n.time.now + ms);
	}

	get isAway(): boolean {
		return this.n8n.time.now < this.awayUntil;
	}

	/**
	 * A query of the present process: done where it takes place, and heard of where the process still lives then. It fails
	 * while the database is away.
	 *
	 * @param longerMs how much longer than others it takes
	 */
	async query<T>(work: () => T, longerMs = 0): Promise<T> {
		const { time, random, setting } = this.n8n;
		const { activity } = time;
		if (activity.process && !activity.process.effect()) return await new Promise(() => undefined);
		const there = random.between(1, setting.slowestQueryMs, 'query', time.count);
		const back = random.between(1, setting.slowestQueryMs, 'result', time.count);
		return await new Promise<T>((resolve, reject) => {
			time.later(there + longerMs, () => {
				try {
					if (this.isAway) throw new Error('Connection terminated unexpectedly');
					const result = work();
					time.schedule(back, () => resolve(result), activity);
				} catch (error) {
					time.schedule(back, () => reject(error as Error), activity);
				}
			});
		});
	}

	row(id: string | undefined): Row | undefined {
		return this.rows.find((row) => row.id === id);
	}

	insert(given: NewRow): Row {
		const row = rowOf(String(this.rows.length + 1), this.n8n.time.now, given);
		this.rows.push(row);
		return row;
	}
}

export function enter(row: Row, status: ExecutionStatus): void {
	if (row.status !== status) row.statuses.push(status);
	row.status = status;
}
