import type { IDataObject, IExecuteFunctions, IRunExecutionData } from 'n8n-workflow';

import { ItemError, taskIdIn } from '../shared/itemError';
import { isRecord, toNumber } from '../shared/json';
import { settled } from '../shared/clock';
import { internalsOf } from './internals';
import { START } from './subExecution';

/*
 * Reads what n8n has stored of another execution: the contexts of its nodes, and their outputs. n8n lets a node read any
 * execution (`getExecutionDataById`, n8n 2.41), shown by test/e2e/process/sleeping.ts.
 */

/** The key of a node's journal in the data of the node that n8n stores with the execution. */
export const JOURNAL = 'journal';

/** What a user enters for the tasks of an execution: `execution 123`. */
const OF_EXECUTION = /^\s*execution\s+#?([\w-]+)\s*$/i;

/** @returns the id of the execution that an entry of *Task ID* names; undefined if it names none */
export const executionIn = (entry: unknown): string | undefined =>
	typeof entry === 'string' ? OF_EXECUTION.exec(entry)?.[1] : undefined;

/** A task that n8n has stored. */
export interface StoredTask {
	taskId: string;
	/** The number of its item, from 1, as the log counts. */
	item?: number | undefined;
}

/** What n8n has stored of an execution. */
export interface StoredExecution {
	id: string;
	/** In the order of the items. */
	tasks: StoredTask[];
	/** What the tasks that are not free cost, US dollars; as far as known. */
	costUsd: number;
	/** How many orders were sent without an answer, and how many items are not ordered yet. */
	unanswered: number;
	toOrder: number;
	/** When the execution is woken, milliseconds since 1970; undefined if it does not sleep. */
	wakeAt: number | undefined;
}

/** What each run has asked n8n for: many items may name one execution, and n8n parses all that it has stored of it. */
const askedFor = new WeakMap<IExecuteFunctions, Map<string, Promise<StoredExecution>>>();

/**
 * The tasks that n8n has stored of an execution of this workflow, such as a run that somebody has stopped while it slept, or
 * whose node has another name by now.
 *
 * @returns at least one task, in the order of the items
 * @throws ItemError if there is no such execution, if it is of another workflow, or if n8n has stored no task of it
 */
export async function storedTasks(context: IExecuteFunctions, id: string): Promise<StoredTask[]> {
	const known = askedFor.get(context) ?? new Map<string, Promise<StoredExecution>>();
	askedFor.set(context, known);
	const reading = known.get(id) ?? readExecution(context, id);
	known.set(id, reading);
	return (await reading).tasks;
}

/** The executions that the run has asked for. */
export const executionsOf = async (context: IExecuteFunctions): Promise<StoredExecution[]> =>
	await Promise.all([...(askedFor.get(context)?.values() ?? [])]);

async function readExecution(context: IExecuteFunctions, id: string): Promise<StoredExecution> {
	const inLog = `n8n's log names each task in a line with 'created task' and '(execution ${id},'. Enter these ids.`;
	const read = await settled(context.getExecutionDataById(id));
	const data = 'value' in read ? read.value : undefined;
	if (data === undefined) {
		throw new ItemError(`n8n has no data of execution ${id}`, {
			description: `Take the number from the list of executions of this workflow. n8n may have deleted the execution, or its data. ${inLog}`,
		});
	}
	const stored = [...inJournals(data), ...inOutputs(context, data), ...tasksOfNode(data, START)];
	if (stored.length > 0 && !isOfWorkflow(context, data)) {
		throw new ItemError(`Execution ${id} is an execution of another workflow`, {
			description:
				'Run Wait for Task in the workflow that has created the tasks, or enter the ids of the tasks.',
		});
	}
	const isFirst = ({ taskId }: StoredTask, index: number) =>
		stored.findIndex((other) => other.taskId === taskId) === index;
	const tasks = stored.filter(isFirst);
	if (tasks.length > 0) return { id, tasks, ...factsOf(data) };
	throw new ItemError(`n8n has stored no task of execution ${id}`, {
		description: inLog,
	});
}

function factsOf(data: IRunExecutionData) {
	const journals = journalsOf(data).flatMap(({ kept }) => entriesIn(kept[JOURNAL]));
	const created = journals.filter(({ taskId }) => taskId !== undefined);
	const inDoubt = journals.filter(({ taskId, state }) => taskId === undefined && state === 'sent');
	const isToOrder = ({ state, end }: JournalEntry) => state === 'free' && end === undefined;
	const { executionData, resultData, waitTill } = data;
	// An execution that has ended with an error, or lost what was to run, is not woken.
	const isAwake = resultData.error === undefined && executionData?.nodeExecutionStack.length !== 0;
	return {
		costUsd: costOf(created),
		unanswered: inDoubt.length,
		toOrder: journals.filter(isToOrder).length,
		wakeAt: isAwake && waitTill ? new Date(waitTill).getTime() : undefined,
	};
}

interface JournalEntry {
	itemIndex?: number;
	taskId?: string;
	failed?: string[];
	costUsd?: number | undefined;
	state?: string;
	end?: string;
	task?: { state?: string; creditsConsumed?: number | null } | undefined;
}

/** Whether a task cost nothing: it has failed, and the service does not say that it charged for the task. */
export const isFree = (task: JournalEntry['task']): boolean =>
	task?.state === 'FAILURE' && !((task.creditsConsumed ?? 0) > 0);

/** What the orders of entries cost by their estimates, US dollars. */
export const costOf = (entries: ReadonlyArray<Pick<JournalEntry, 'costUsd' | 'task'>>): number =>
	entries.reduce((sum, { costUsd = 0, task }) => sum + (isFree(task) ? 0 : costUsd), 0);

const entriesIn = (journal: unknown): JournalEntry[] =>
	isRecord(journal) && isRecord(journal.runs)
		? Object.values(journal.runs).flatMap((run) =>
				isRecord(run) && Array.isArray(run.entries) ? (run.entries as JournalEntry[]) : [],
			)
		: [];

/** The contexts of the nodes that keep a journal. A node may have another name by now. */
const journalsOf = ({ executionData }: IRunExecutionData) =>
	Object.entries(executionData?.contextData ?? {}).flatMap(([name, kept]) =>
		isRecord(kept) && isRecord(kept[JOURNAL]) ? { name: name.replace(/^node:/, ''), kept } : [],
	);

/** Of a task that is created again the failed one counts. */
const inJournals = (data: IRunExecutionData): StoredTask[] =>
	journalsOf(data)
		.flatMap(({ kept }) => entriesIn(kept[JOURNAL]))
		.flatMap(({ itemIndex, failed = [], taskId = failed.at(-1) }) =>
			taskId === undefined ? [] : { taskId, item: numberOf(itemIndex) },
		);

const numberOf = (itemIndex: unknown) =>
	typeof itemIndex === 'number' ? itemIndex + 1 : undefined;

/** The tasks that came out, of an execution that was killed: n8n may have stored outputs, and no contexts. */
function inOutputs(context: IExecuteFunctions, data: IRunExecutionData): StoredTask[] {
	const { type } = context.getNode();
	const alike = nodesOf(context).filter((node) => node.type === type);
	const names = [...alike, ...journalsOf(data)].map(({ name }) => name);
	return names.flatMap((name) => tasksOfNode(data, name));
}

const tasksOfNode = ({ resultData }: IRunExecutionData, name: string): StoredTask[] =>
	(resultData.runData[name] ?? [])
		.flatMap(({ data }) => data?.main ?? [])
		.flatMap((items) => items ?? [])
		.flatMap(({ json, pairedItem }) => {
			const taskId = taskIdIn(json);
			const { item }: IDataObject = isRecord(pairedItem) ? pairedItem : {};
			// What a stop leaves has the number of the item itself.
			const number = name === START ? (toNumber(json.item) ?? undefined) : numberOf(item);
			return typeof taskId === 'string' ? { taskId, item: number } : [];
		});

const nodesOf = (context: IExecuteFunctions) =>
	Object.values(internalsOf(context).workflow?.nodes ?? {});

/** Whether an execution is one of this workflow. n8n gives the data of any execution, and names no workflow. */
function isOfWorkflow(context: IExecuteFunctions, data: IRunExecutionData): boolean {
	const { id } = context.getWorkflow();
	const named = journalsOf(data).map(({ kept }) => kept.workflowId);
	if (named.length > 0) return named.every((workflowId) => workflowId === id);
	if (START in data.resultData.runData) return data.parentExecution?.workflowId === id;
	const ids = new Set(nodesOf(context).map((node) => node.id));
	return (data.executionData?.nodeExecutionStack ?? []).some(({ node }) => ids.has(node.id));
}
