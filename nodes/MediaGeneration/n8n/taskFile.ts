import type { IExecuteFunctions } from 'n8n-workflow';

import { isRecord } from '../shared/json';
import { settled } from '../shared/promises';
import { whenEndIsStored } from './executionEnd';
import { executionIdOf, internalsOf, nodeContext } from './internals';
import { LedgerRow } from './ledgerRow';

/** A task of a run, or an order without an answer, as a file has it: nothing of what was ordered. */
export interface FiledTask {
	itemIndex: number;
	taskId?: string | undefined;
	costUsd?: number | undefined;
}

/** What a run knows of the last of its files. n8n stores it with the execution. */
interface Filed {
	execution: string;
	file: string;
	/** How many files there are. */
	count: number;
}

const FILED = 'taskFile';

/** The name of a file ends with a UUID. */
const DIGITS = 32;
const HEX = [...'0123456789abcdef'];

const rowOf = (context: IExecuteFunctions, execution: string, nodeId?: string) =>
	new LedgerRow(context, `tasks of ${execution}`, nodeId);

/** The digits of a name as entries. Two files in a row differ in their first sign. */
const entriesOf = (name: string, count: number): string[] =>
	[...name].map((digit, index) => `${count % 2}.${index}.${digit}`);

const ALL_ENTRIES = [0, 1].flatMap((count) =>
	HEX.flatMap((digit) => entriesOf(digit.repeat(DIGITS), count)),
);

const nameOf = (file: string): string => file.slice(-(DIGITS + 4)).replaceAll('-', '');

/**
 * Writes the tasks of a run down beside the execution: n8n keeps nothing of a turn that is stopped, and in queue mode it
 * erases what it has stored of an execution whose worker is killed. The tasks go into a file that belongs to the execution,
 * and that n8n deletes with it. A row of n8n's store, which answers only whether it has an entry, tells the file's name digit
 * by digit. No list shows any of that. It relies on the form of n8n's file ids (n8n 2.41), shown by
 * test/e2e/action.test.ts and test/e2e/queue.test.ts.
 *
 * @param added the tasks that were created since the last file
 * @param all all tasks of the run, for its first file
 * @returns whether the tasks are written down; false if n8n keeps files in memory
 * @throws n8n's error
 */
export async function fileTasks(
	context: IExecuteFunctions,
	added: readonly FiledTask[],
	all: readonly FiledTask[],
): Promise<boolean> {
	const store = nodeContext(context);
	const execution = String(executionIdOf(context));
	const last = isRecord(store[FILED]) ? (store[FILED] as unknown as Filed) : undefined;
	const before = last?.execution === execution ? last : undefined;
	// A file that fails is made up for by the next one.
	delete store[FILED];
	const content = { before: before?.file, tasks: before ? added : all };
	const { id } = await context.helpers.prepareBinaryData(
		Buffer.from(JSON.stringify(content)),
		'tasks.json',
		'application/json',
	);
	if (id === undefined) return false;
	const { count, file } = before ?? { count: 0, file: undefined };
	const row = rowOf(context, execution);
	// After a file that failed there may be the name of an earlier one.
	if (before === undefined) await row.clear();
	await row.add(...entriesOf(nameOf(id), count + 1));
	// A kill in between leaves both names, and the later file names the earlier one.
	if (file !== undefined) await row.remove(entriesOf(nameOf(file), count));
	store[FILED] = { execution, file: id, count: count + 1 };
	return true;
}

/** To be called when a run ends. What n8n stores at the end of the execution has all tasks, so the row can go. */
export function forgetFile(context: IExecuteFunctions): void {
	const execution = String(executionIdOf(context));
	const filed = nodeContext(context)[FILED];
	if (!isRecord(filed) || filed.execution !== execution) return;
	const row = rowOf(context, execution);
	whenEndIsStored(
		context,
		() => false,
		async () => await row.clear(),
	);
}

/**
 * The tasks that the nodes of this workflow have written down in an execution that has ended. A look disturbs a run that
 * writes at the same moment.
 */
export async function filedTasks(
	context: IExecuteFunctions,
	execution: string,
): Promise<FiledTask[]> {
	const { type } = context.getNode();
	const nodes = Object.values(internalsOf(context).workflow?.nodes ?? {});
	const tasks: FiledTask[] = [];
	for (const { id } of nodes.filter((node) => node.type === type)) {
		const found = await rowOf(context, execution, id).which(ALL_ENTRIES);
		for (const count of [0, 1]) {
			const name = nameIn(found, count);
			if (name !== undefined)
				tasks.push(...(await tasksIn(context, filesOf(context, execution, name))));
		}
	}
	return tasks;
}

/** The name that the entries spell; undefined if a digit is missing, or is not certain. */
function nameIn(found: readonly string[], count: number): string | undefined {
	const digits = Array.from({ length: DIGITS }, (_, index) =>
		HEX.filter((digit) => found.includes(`${count}.${index}.${digit}`)),
	);
	return digits.every(({ length }) => length === 1) ? digits.join('') : undefined;
}

/** The ids that a file of this name has, by where n8n keeps files. */
function filesOf(context: IExecuteFunctions, execution: string, name: string): string[] {
	const uuid = name.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
	const path = `workflows/${context.getWorkflow().id}/executions/${execution}/binary_data/${uuid}`;
	const modes = ['filesystem-v2', 's3', 'azure'];
	return [`database:${uuid}`, ...modes.map((mode) => `${mode}:${path}`)];
}

/** The tasks of the first of these files that is there, and of the files before it, oldest first. */
async function tasksIn(context: IExecuteFunctions, files: readonly string[]): Promise<FiledTask[]> {
	const { helpers } = context;
	for (const file of files) {
		const read = await settled(async () => {
			const bytes = await helpers.binaryToBuffer(await helpers.getBinaryStream(file));
			return JSON.parse(bytes.toString()) as { before?: string; tasks: FiledTask[] };
		});
		if ('error' in read) continue;
		const { before, tasks } = read.value;
		const earlier = before === undefined ? [] : await tasksIn(context, [before]);
		return [...earlier, ...tasks];
	}
	return [];
}
