import type { WorkflowExecuteMode } from 'n8n-workflow';

import type { Process } from './process';
import type { Definition } from './subExecution';
import type { World } from './world';

export type Status = 'new' | 'running' | 'waiting' | 'success' | 'error' | 'canceled' | 'crashed';

export const isTerminal = (status: Status): boolean =>
	['success', 'error', 'canceled', 'crashed'].includes(status);

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

/** What a new execution is stored with. */
type NewRow = Pick<Row, 'mode' | 'start' | 'data'> & Partial<Row>;

/** n8n's database: its table of executions, and the time that queries take. */
export class Database {
	readonly rows = new Map<string, Row>();

	constructor(private readonly world: World) {}

	/** A query of the present process: done where it takes place, and heard of where the process still lives then. */
	async query<T>(work: () => T): Promise<T> {
		const { time, random, history } = this.world;
		const { activity } = time;
		if (activity.process && !activity.process.effect()) return await new Promise(() => undefined);
		const there = random.between(1, history.slowestQueryMs, 'query', time.count);
		const back = random.between(1, history.slowestQueryMs, 'result', time.count);
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

	insert(given: NewRow): Row {
		const row: Row = {
			id: String(this.rows.size + 1),
			status: 'new',
			statuses: ['new'],
			begin: given.data,
			retryOf: undefined,
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
			...given,
		};
		this.rows.set(row.id, row);
		return row;
	}

	/** @returns the latest execution that fits */
	findLast(fits: (row: Row) => boolean): Row | undefined {
		return [...this.rows.values()].findLast(fits);
	}
}

/** Gives an execution another status. */
export function enter(row: Row, status: Status): void {
	if (row.status !== status) row.statuses.push(status);
	row.status = status;
}
