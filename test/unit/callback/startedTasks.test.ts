import { recordOnce } from '../../../nodes/MediaGeneration/callback/startedTasks';
import { API_KEY, executeContext, TRIGGER } from '../../workflow/engine';
import type { ProcessedData } from '../../workflow/processedData';
import { SECOND_ROW, useProcessedData } from '../../workflow/processedData';

const credential = { baseUrl: 'https://api.example.com', apiKey: API_KEY };

const contextOf = (id = 'trigger') => executeContext({ node: { ...TRIGGER, id }, credential });

let store: ProcessedData;
beforeAll(async () => {
	store = await useProcessedData();
});
beforeEach(() => store.rows.clear());

it('a task is recorded by the first who comes with it, and by nobody after', async () => {
	const results = [];
	for (let call = 0; call < 3; call++) results.push(await recordOnce(contextOf(), 'task-1'));
	expect(results).toEqual([true, false, false]);
});

it('of many who come at the same moment exactly one records it', async () => {
	const results = await Promise.all(
		Array.from({ length: 20 }, async () => await recordOnce(contextOf(), 'task-1')),
	);
	expect(results.filter(Boolean)).toHaveLength(1);
});

it('each task has a row of its own, so that the table key decides', async () => {
	const context = contextOf();
	await Promise.all(['a', 'b', 'c'].map(async (task) => await recordOnce(context, task)));
	expect([...store.rows.values()]).toEqual([['a'], ['b'], ['c']]);
});

it('each trigger node records for itself', async () => {
	expect([
		await recordOnce(contextOf('first'), 'task-1'),
		await recordOnce(contextOf('second'), 'task-1'),
	]).toEqual([true, true]);
});

it.each(Object.entries(SECOND_ROW))(
	'the refusal of a second row by %s means that the task was recorded',
	async (_database, error) => {
		store.nextError = error;
		expect(await recordOnce(contextOf(), 'task-1')).toBe(false);
	},
);

it.each(['SQLITE_BUSY: database is locked', 'connection terminated unexpectedly'])(
	'another trouble of the database is no answer: %s',
	async (message) => {
		store.nextError = new Error(message);
		await expect(recordOnce(contextOf(), 'task-1')).rejects.toThrow(message);
	},
);

it('the node has its own id again as soon as the helper was called', async () => {
	const context = contextOf();
	const recording = recordOnce(context, 'task-1');
	const idMeanwhile = context.getExecuteData().node.id;
	await recording;
	expect(idMeanwhile).toBe('trigger');
	expect(Object.getOwnPropertyDescriptor(context.getExecuteData().node, 'id')).toEqual({
		configurable: true,
		enumerable: true,
		writable: true,
		value: 'trigger',
	});
});

it('the node has its own id again where the helper throws', async () => {
	const context = contextOf();
	context.helpers.checkProcessedAndRecord = () => {
		throw new Error('No store');
	};
	await expect(recordOnce(context, 'task-1')).rejects.toThrow('No store');
	expect(context.getExecuteData().node.id).toBe('trigger');
});

it('an n8n that does not look at the id gets one row, and that is logged once', async () => {
	const warn = jest.spyOn(contextOf().logger, 'warn').mockImplementation(() => {});
	const recordInOneRow = async (task: string) => {
		const context = contextOf();
		context.helpers.checkProcessedAndRecord = async (items) => ({ new: items, processed: [] });
		return await recordOnce(context, task);
	};
	expect([await recordInOneRow('a'), await recordInOneRow('b')]).toEqual([true, true]);
	expect(warn.mock.calls).toEqual([[expect.stringContaining('in one row')]]);
	warn.mockRestore();
});
