import {
	accountOf,
	type Start,
	TaskStart,
} from '../../../nodes/MediaGeneration/callback/startOnce';
import { executeContext, SERVICE, TRIGGER } from '../../workflow/engine';
import { SECOND_ROW, store, useProcessedData } from '../../workflow/processedData';

const ACCOUNT = accountOf(SERVICE, 'credential');
const OTHERS = [
	accountOf(SERVICE, 'other credential'),
	accountOf('https://other.example.com', 'credential'),
];

/** Each context is another execution. */
let executions = 0;
const execution = (mode: 'webhook' | 'retry' = 'webhook', id = 'trigger') => {
	const context = executeContext({ node: { ...TRIGGER, id } });
	const executionId = String(++executions);
	context.getExecutionId = () => executionId;
	context.getMode = () => mode;
	return context;
};

/** The whole way of an execution. Unless said otherwise the callback is another one for each execution. */
const mayStart = async (
	taskId: string,
	context = execution(),
	{
		callbackId = `callback of ${context.getExecutionId()}`,
		...start
	}: Partial<Start> & { callbackId?: string } = {},
) => {
	const begun = new TaskStart(context, { account: ACCOUNT, taskId, ...start }, callbackId);
	return !(await begun.isTaken()) && (await begun.claim());
};

useProcessedData();

const LOST = 'connection terminated unexpectedly';

describe('a task', () => {
	it('is recorded by exactly one of many who come at the same moment', async () => {
		const all = Array.from({ length: 20 }, async () => await mayStart('task-1'));
		expect((await Promise.all(all)).filter(Boolean)).toHaveLength(1);
	});

	it("is named in n8n's log before its row is there, and by each try of the execution", async () => {
		const context = execution();
		const rows: number[] = [];
		const info = jest.spyOn(context.logger, 'info');
		// A process may be killed in between.
		info.mockImplementation(() => void rows.push(store.rows.size));
		const tries = [await mayStart('task-1', context), await mayStart('task-1')];
		tries.push(await mayStart('task-1', context));
		const named = info.mock.calls.map(([text]) => text);
		info.mockRestore();
		expect([tries, rows]).toEqual([
			[true, false, true],
			[0, 1],
		]);
		const line = `task task-1 starts the workflow (execution ${context.getExecutionId()})`;
		expect(named).toEqual(Array(2).fill(expect.stringContaining(line)));
	});

	it('is recorded by each trigger node for itself', async () => {
		for (const id of ['first', 'second']) {
			expect(await mayStart('task-1', execution('webhook', id))).toBe(true);
		}
	});

	it('of another account with the same id starts, once for each account', async () => {
		for (const account of [ACCOUNT, ...OTHERS]) {
			expect(await mayStart('17', execution(), { account })).toBe(true);
			expect(await mayStart('17', execution(), { account })).toBe(false);
		}
	});
});

describe('the execution that recorded a task', () => {
	it('goes on with it in its next try, also where the row is gone meanwhile', async () => {
		const context = execution();
		expect(await mayStart('task-1', context)).toBe(true);
		store.rows.clear();
		expect(await mayStart('task-1', context)).toBe(true);
		expect(store.rows.size).toBe(0);
	});

	it("goes on where the row was written and the database's answer was lost", async () => {
		const context = execution();
		store.answerIsLost = true;
		await expect(mayStart('task-1', context)).rejects.toThrow(LOST);
		expect(await mayStart('task-1', context)).toBe(true);
		expect(await mayStart('task-1')).toBe(false);
	});

	it('does not where nothing was written, and another was first meanwhile', async () => {
		const context = execution();
		store.nextError = new Error(LOST);
		await expect(mayStart('task-1', context)).rejects.toThrow(LOST);
		expect(await mayStart('task-1')).toBe(true);
		expect(await mayStart('task-1', context)).toBe(false);
		expect(await mayStart('task-1', context)).toBe(false);
	});

	it('is not taken for another one whose write has lost its answer', async () => {
		expect(await mayStart('task-1')).toBe(true);
		const entries = [...store.rows.values()];
		const second = execution();
		store.answerIsLost = true;
		// In two tries, as Retry On Fail makes them.
		expect(await mayStart('task-1', second)).toBe(false);
		store.answerIsLost = false;
		expect(await mayStart('task-1', second)).toBe(false);
		expect([...store.rows.values()]).toEqual(entries);
	});

	it('says that it does not know where its entries came into the row of another', async () => {
		const second = execution();
		const { getProcessedDataCount: count, checkProcessedAndRecord: record } = second.helpers;
		// Neither finds a row; the second adds its entries to what the first has written, and never hears of it.
		let counts = 0;
		second.helpers.getProcessedDataCount = async (...args) => {
			const found = await count(...args);
			if (++counts === 2) expect(await mayStart('task-1')).toBe(true);
			return found;
		};
		second.helpers.checkProcessedAndRecord = async (...args) => {
			second.helpers.checkProcessedAndRecord = record;
			await record(...args);
			throw new Error(LOST);
		};
		await expect(mayStart('task-1', second)).rejects.toThrow(LOST);
		await expect(mayStart('task-1', second)).rejects.toThrow('It is not known');
	});

	it('starts the task of which it lost the answer, also where another added its entries in the same milliseconds', async () => {
		const [first, second] = [execution(), execution()];
		const { getProcessedDataCount: count } = second.helpers;
		// Neither finds a row. The first writes it and never hears of it; then the second comes.
		let counts = 0;
		second.helpers.getProcessedDataCount = async (...args) => {
			const found = await count(...args);
			if (++counts < 2) return found;
			store.answerIsLost = true;
			await expect(mayStart('task-1', first)).rejects.toThrow(LOST);
			return found;
		};
		expect(await mayStart('task-1', second)).toBe(false);
		expect(counts).toBe(2);
		expect(await mayStart('task-1', first)).toBe(true);
		expect(await mayStart('task-1')).toBe(false);
	});

	it('knows each task by itself', async () => {
		const context = execution();
		await mayStart('task-2');
		expect(await mayStart('task-1', context)).toBe(true);
		expect(await mayStart('task-2', context)).toBe(false);
	});
});

describe('an execution that was killed and is retried from the list', () => {
	/** What n8n has kept of it is the callback that it was begun by. */
	const by = async (callbackId: string, context = execution()) =>
		await mayStart('task-1', context, { callbackId });
	const retryOf = async (callbackId: string) => await by(callbackId, execution('retry'));

	it.each<[string, Array<[callbackId: string, isRetry?: true]>, starts: boolean[]]>([
		['goes on with a task that it had recorded', [['1'], ['1', true], ['3']], [true, true, false]],
		[
			'starts with one that it had not recorded, and nobody after it',
			[['1', true], ['3']],
			[true, false],
		],
		[
			'starts nothing where another has started the task meanwhile',
			[['2'], ['1', true], ['2', true]],
			[true, false, true],
		],
	])('%s', async (_what, executions, starts) => {
		const started: boolean[] = [];
		for (const [id, isRetry] of executions) started.push(await (isRetry ? retryOf(id) : by(id)));
		expect(started).toEqual(starts);
	});

	it('starts nothing, however often it is retried, where another has started the task', async () => {
		await by('2');
		for (let count = 1; count <= 3; count++) expect(await retryOf('1')).toBe(false);
		await expect(retryOf('1')).rejects.toThrow('It is not known');
	});

	it('starts nothing either where the first answer to that question was lost', async () => {
		expect(await by('2')).toBe(true);
		const retry = execution('retry');
		store.answerIsLost = true;
		await expect(by('1', retry)).rejects.toThrow(LOST);
		expect(await by('1', retry)).toBe(false);
	});
});

it.each(Object.entries(SECOND_ROW))(
	'the refusal of a second row by %s means that the task was recorded',
	async (_by, error) => {
		store.nextError = error;
		expect(await mayStart('task-1')).toBe(false);
	},
);

describe("the node's own id", () => {
	const idOf = (context: ReturnType<typeof execution>) =>
		Object.getOwnPropertyDescriptor(context.getExecuteData().node, 'id');
	const OWN = { configurable: true, enumerable: true, writable: true, value: 'trigger' };

	it('is back as soon as the helper was called, also where the helper throws', async () => {
		const context = execution();
		const recording = mayStart('task-1', context);
		expect(idOf(context)).toEqual(OWN);
		await recording;
		context.helpers.checkProcessedAndRecord = () => {
			throw new Error('No store');
		};
		await expect(mayStart('task-2', context)).rejects.toThrow('No store');
		expect(idOf(context)).toEqual(OWN);
	});

	it('names the one row of an n8n that does not look at it then, and that is logged once', async () => {
		const warn = jest.spyOn(execution().logger, 'warn').mockImplementation(() => {});
		for (const task of ['a', 'b']) {
			const context = execution();
			context.helpers.checkProcessedAndRecord = async (items) =>
				await Promise.resolve({ new: items, processed: [] });
			expect(await mayStart(task, context)).toBe(true);
		}
		expect(warn.mock.calls).toEqual([[expect.stringContaining('in one row')]]);
		warn.mockRestore();
	});
});
