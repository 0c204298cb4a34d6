import type { IBinaryData } from 'n8n-workflow';
import { Readable } from 'node:stream';

import { nodeContext } from '../../../nodes/MediaGeneration/n8n/internals';
import { fileTasks, filedTasks, forgetFile } from '../../../nodes/MediaGeneration/n8n/taskFile';
import { executeContext } from '../../workflow/engine';
import { store as table, useProcessedData } from '../../workflow/processedData';

useProcessedData();

/** n8n's files, by their ids. */
const files = new Map<string, Buffer>();
beforeEach(() => files.clear());

type Mode = 'filesystem-v2' | 'database' | 'memory';

/** A run of the node in execution 1, on an n8n that keeps files there. */
function run(mode: Mode = 'database') {
	const context = executeContext();
	context.helpers.prepareBinaryData = async (data) => {
		const place = mode === 'database' ? '' : 'workflows/workflow/executions/1/binary_data/';
		const id = `${mode}:${place}${crypto.randomUUID()}`;
		files.set(id, data as Buffer);
		return {
			mimeType: 'application/json',
			data: '',
			...(mode !== 'memory' && { id }),
		} as IBinaryData;
	};
	context.helpers.getBinaryStream = async (id) => {
		const bytes = files.get(id);
		if (bytes === undefined) throw new Error('No such file');
		return await Promise.resolve(Readable.from([bytes]));
	};
	return context;
}

const tasks = (...ids: string[]) => ids.map((taskId, itemIndex) => ({ itemIndex, taskId }));
const found = async (execution = '1') =>
	(await filedTasks(run(), execution)).map(({ taskId }) => taskId);

it.each<Mode>(['filesystem-v2', 'database'])(
	'what a run writes down is found by the number of its execution, of all its turns (%s)',
	async (mode) => {
		const context = run(mode);
		expect(await fileTasks(context, tasks('b'), tasks('a', 'b'))).toBe(true);
		expect(await fileTasks(context, tasks('c', 'd'), tasks('a', 'b', 'c', 'd'))).toBe(true);
		await fileTasks(context, tasks('e'), tasks('a', 'b', 'c', 'd', 'e'));
		expect(await found()).toEqual(['a', 'b', 'c', 'd', 'e']);
		expect(await found('2')).toEqual([]);
		// Each file has what is new.
		const sizes = [...files.values()].map(
			(bytes) => (JSON.parse(bytes.toString()) as { tasks: unknown[] }).tasks.length,
		);
		expect(sizes).toEqual([2, 2, 1]);
		// One row, and no more in it than one name.
		expect([...table.rows.values()].map(({ length }) => length)).toEqual([32]);
	},
);

it('a look leaves the row as it was', async () => {
	await fileTasks(run(), [], tasks('a'));
	const before = [...table.rows.values()].map((row) => [...row].sort());
	await found();
	await found();
	expect([...table.rows.values()].map((row) => [...row].sort())).toEqual(before);
});

it('a kill between the new name and the end of the old one loses nothing', async () => {
	const context = run();
	await fileTasks(context, [], tasks('a'));
	const [before = []] = [...table.rows.values()].map((row) => [...row]);
	await fileTasks(context, tasks('b'), tasks('a', 'b'));
	for (const row of table.rows.values()) row.push(...before);
	expect(new Set(await found())).toEqual(new Set(['a', 'b']));
});

it('a file that cannot be written is made up for by the next one, which has all tasks', async () => {
	const context = run();
	await fileTasks(context, [], tasks('a'));
	const { prepareBinaryData } = context.helpers;
	context.helpers.prepareBinaryData = async () =>
		await Promise.reject(new Error('The disk is full'));
	await expect(fileTasks(context, tasks('b'), tasks('a', 'b'))).rejects.toThrow('The disk is full');
	context.helpers.prepareBinaryData = prepareBinaryData;
	await fileTasks(context, tasks('c'), tasks('a', 'b', 'c'));
	expect(new Set(await found())).toEqual(new Set(['a', 'b', 'c']));
});

it('an n8n that keeps files in memory writes nothing down, and says so', async () => {
	expect(await fileTasks(run('memory'), [], tasks('a'))).toBe(false);
	expect(await found()).toEqual([]);
	expect(table.rows.size).toBe(0);
});

it('a retry begins files of its own, with all tasks', async () => {
	const context = run();
	await fileTasks(context, [], tasks('a'));
	(nodeContext(context).taskFile as { execution: string }).execution = '0';
	await fileTasks(context, tasks('b'), tasks('a', 'b'));
	expect(new Set(await found())).toEqual(new Set(['a', 'b']));
});

it('the row goes when n8n has stored the end of the execution, and not when a later node goes to sleep', async () => {
	const context = run();
	await fileTasks(context, [], tasks('a'));
	forgetFile(context);
	const end = async (status: 'waiting' | 'success') =>
		await context.additionalData.hooks?.runHook('workflowExecuteAfter', [
			{ status } as never,
			{} as never,
		]);
	await end('waiting');
	expect(table.rows.size).toBe(1);
	await end('success');
	expect(table.rows.size).toBe(0);
});
