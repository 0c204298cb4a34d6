import { claimStart, hasStarted } from '../../../nodes/MediaGeneration/callback/ledger';
import { executeContext, TRIGGER } from '../../workflow/engine';
import { SECOND_ROW, store, useProcessedData } from '../../workflow/processedData';

/** Each context is another execution. */
let executions = 0;
const execution = (
	mode: 'webhook' | 'retry' = 'webhook',
	id = 'trigger',
	credential = 'credential',
) => {
	const credentials = { mediaGenerationApi: { id: credential, name: '' } };
	const context = executeContext({ node: { ...TRIGGER, id, credentials } });
	const executionId = String(++executions);
	context.getExecutionId = () => executionId;
	context.getMode = () => mode;
	return context;
};

const mayStart = async (taskId: string, context = execution()) => await claimStart(context, taskId);

useProcessedData();

const LOST = 'connection terminated unexpectedly';

describe('a task', () => {
	it('is recorded by exactly one of many who come at the same moment', async () => {
		const all = Array.from({ length: 20 }, async () => await mayStart('task-1'));
		expect((await Promise.all(all)).filter(Boolean)).toHaveLength(1);
	});

	it("is named in n8n's log before its row is there", async () => {
		const context = execution();
		const rows: number[] = [];
		const info = jest.spyOn(context.logger, 'info');
		// A process may be killed in between.
		info.mockImplementation(() => void rows.push(store.rows.size));
		const tries = [await mayStart('task-1', context), await mayStart('task-1')];
		tries.push(await mayStart('task-1', context));
		const named = info.mock.calls.map(([text]) => text);
		info.mockRestore();
		expect([tries, rows]).toEqual([[true, false, true], [0]]);
		const line = `task task-1 starts the workflow (execution ${context.getExecutionId()})`;
		expect(named).toEqual([expect.stringContaining(line)]);
	});

	it('is recorded by each trigger node for itself', async () => {
		for (const id of ['first', 'second']) {
			expect(await mayStart('task-1', execution('webhook', id))).toBe(true);
		}
	});

	it('starts once, also where the trigger has another credential meanwhile', async () => {
		const starts = ['first', 'second', 'first'].map((credential) =>
			execution('webhook', 'trigger', credential),
		);
		const started: boolean[] = [];
		for (const each of starts) started.push(await mayStart('task-1', each));
		expect(started).toEqual([true, false, false]);
	});

	it('is one row, which names the execution that has started', async () => {
		const all = Array.from({ length: 5 }, () => execution());
		await Promise.all(all.map(async (context) => await mayStart('task-1', context)));
		const first = `execution ${all[0]?.getExecutionId()}`;
		expect([...store.rows.values()]).toEqual([['task-1', first]]);
		await mayStart('task-1');
		expect([...store.rows.values()]).toEqual([['task-1', first]]);
	});

	it('is told by the ledger of its trigger, to another node of the workflow', async () => {
		const other = executeContext();
		const told = async () => await hasStarted(other, 'trigger', 'task-1');
		expect(await told()).toBe(false);
		await mayStart('task-1');
		expect([await told(), await hasStarted(other, 'another', 'task-1')]).toEqual([true, false]);
	});
});

describe('the execution that recorded a task', () => {
	it('goes on with it in its next try', async () => {
		const context = execution();
		for (let tries = 0; tries < 3; tries++) expect(await mayStart('task-1', context)).toBe(true);
		expect(store.rows.size).toBe(1);
	});

	it('does not where nothing was written, and another was first meanwhile', async () => {
		const context = execution();
		store.nextError = new Error(LOST);
		await expect(mayStart('task-1', context)).rejects.toThrow(LOST);
		expect(await mayStart('task-1')).toBe(true);
		expect(await mayStart('task-1', context)).toBe(false);
		expect(await mayStart('task-1', execution('retry'))).toBe(true);
	});

	it('starts in its next try where nothing was written', async () => {
		const context = execution();
		store.nextError = new Error(LOST);
		await expect(mayStart('task-1', context)).rejects.toThrow(LOST);
		expect(await mayStart('task-1', context)).toBe(true);
	});

	it("starts in its next try where the database's answer was lost, and others do not", async () => {
		const context = execution();
		store.answerIsLost = true;
		await expect(mayStart('task-1', context)).rejects.toThrow(LOST);
		expect(await mayStart('task-1')).toBe(false);
		expect(await mayStart('task-1', context)).toBe(true);
		expect(await mayStart('task-1', execution('retry'))).toBe(true);
	});

	it('is not an execution that came second, however often it tries', async () => {
		expect(await mayStart('task-1')).toBe(true);
		const second = execution();
		for (let tries = 0; tries < 3; tries++) expect(await mayStart('task-1', second)).toBe(false);
	});

	it('is not an execution that came second where the database is in trouble: it writes nothing', async () => {
		expect(await mayStart('task-1')).toBe(true);
		const [second, third] = [execution(), execution()];
		store.answerIsLost = true;
		expect([await mayStart('task-1', second), await mayStart('task-1', second)]).toEqual([
			...[false, false],
		]);
		store.nextError = new Error(LOST);
		expect([await mayStart('task-1', third), await mayStart('task-1', third)]).toEqual([
			...[false, false],
		]);
		expect([...store.rows.values()].map(({ length }) => length)).toEqual([2]);
	});

	it('is one of two that both never heard what they wrote: the other one says that it does not know', async () => {
		const [first, second] = [execution(), execution()];
		store.nextError = new Error(LOST);
		await expect(mayStart('task-1', second)).rejects.toThrow(LOST);
		for (const context of [first, second]) {
			store.answerIsLost = true;
			await expect(mayStart('task-1', context)).rejects.toThrow(LOST);
		}
		for (let tries = 0; tries < 2; tries++) {
			await expect(mayStart('task-1', first)).rejects.toThrow('It is not known');
		}
		expect([await mayStart('task-1', second), await mayStart('task-1', second)]).toEqual([
			...[true, true],
		]);
		await expect(mayStart('task-1', first)).rejects.toThrow('It is not known');
		expect(await mayStart('task-1', execution('retry'))).toBe(true);
	});

	it('knows each task by itself', async () => {
		const context = execution();
		await mayStart('task-2');
		expect(await mayStart('task-1', context)).toBe(true);
		expect(await mayStart('task-2', context)).toBe(false);
	});
});

describe('Retry execution', () => {
	it.each<[string, boolean]>([
		['where another execution has started for the task', true],
		['where none has', false],
	])('always starts, also %s, and callbacks start nothing after it', async (_, hasStarted) => {
		if (hasStarted) await mayStart('task-1');
		for (let retries = 0; retries < 4; retries++) {
			expect(await mayStart('task-1', execution('retry'))).toBe(true);
			expect(await mayStart('task-1')).toBe(false);
		}
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

	it("names the row also after the execution went to sleep, when n8n's stack has a copy of the node", async () => {
		const context = execution();
		const entry = context.getExecuteData();
		entry.node = { ...entry.node };
		expect(await mayStart('task-1', context)).toBe(true);
		const ofTask = expect.stringMatching(/trigger:[0-9a-f]{32}$/) as string;
		expect([...store.rows.keys()]).toEqual([ofTask]);
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

	it('tells nobody then whether a task has started', async () => {
		const context = executeContext();
		context.helpers.getProcessedDataCount = async () => await Promise.resolve(7);
		expect(await hasStarted(context, 'trigger', 'task-1')).toBeUndefined();
	});
});
