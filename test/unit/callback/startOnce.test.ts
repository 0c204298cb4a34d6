import {
	accountOf,
	hasStarted,
	mayStart as mayStartWith,
} from '../../../nodes/MediaGeneration/callback/startOnce';
import { API_KEY, executeContext, TRIGGER } from '../../workflow/engine';
import { type ProcessedData, SECOND_ROW, useProcessedData } from '../../workflow/processedData';
const credential = { baseUrl: 'https://api.example.com', apiKey: API_KEY };

const contextOf = (id = 'trigger') => executeContext({ node: { ...TRIGGER, id }, credential });

/** Another execution than that of `contextOf`. */
const executionOf = (id: string) => {
	const context = contextOf();
	context.getExecutionId = () => id;
	return context;
};

const ACCOUNT = accountOf(credential.baseUrl, 'credential');

/** Unless said otherwise the callback is another one for each execution. */
const mayStart = async (
	context: ReturnType<typeof contextOf>,
	taskId: string,
	callbackId = `callback of ${context.getExecutionId()}`,
	account = ACCOUNT,
) => await mayStartWith(context, { account, taskId }, callbackId);

let store: ProcessedData;
beforeAll(async () => {
	store = await useProcessedData();
});
beforeEach(() => store.reset());

it('a task is recorded by the first who comes with it, and by nobody after', async () => {
	const results = [];
	for (let call = 0; call < 3; call++) results.push(await mayStart(contextOf(), 'task-1'));
	expect(results).toEqual([true, false, false]);
});

it('of many who come at the same moment exactly one records it', async () => {
	const results = await Promise.all(
		Array.from({ length: 20 }, async () => await mayStart(contextOf(), 'task-1')),
	);
	expect(results.filter(Boolean)).toHaveLength(1);
});

it('each task has a row of its own, so that the table key decides', async () => {
	const context = contextOf();
	await Promise.all(['a', 'b', 'c'].map(async (task) => await mayStart(context, task)));
	expect([...store.rows.values()].map(([first]) => first)).toEqual(
		['a', 'b', 'c'].map((task) => JSON.stringify([ACCOUNT, task])),
	);
});

it('each trigger node records for itself', async () => {
	expect([
		await mayStart(contextOf('first'), 'task-1'),
		await mayStart(contextOf('second'), 'task-1'),
	]).toEqual([true, true]);
});

describe('the same task id of another account', () => {
	const other = accountOf(credential.baseUrl, 'other credential');
	const elsewhere = accountOf('https://other.example.com', 'credential');

	it('starts, once for each account', async () => {
		for (const account of [ACCOUNT, other, elsewhere]) {
			expect(await mayStart(executionOf('1'), '17', 'a', account)).toBe(true);
			expect(await mayStart(executionOf('2'), '17', 'b', account)).toBe(false);
		}
	});

	it('is not taken for one that has started, where the ledger is asked', async () => {
		await mayStart(contextOf(), '17');
		const asked = async (account: string) =>
			await hasStarted(contextOf('another node'), 'trigger', { account, taskId: '17' });
		expect([await asked(ACCOUNT), await asked(other), await asked(elsewhere)]).toEqual([
			true,
			false,
			false,
		]);
	});

	it('has no other name because the API key was replaced', () => {
		expect(ACCOUNT).toBe(accountOf(credential.baseUrl, 'credential'));
		expect(ACCOUNT).toMatch(/^[0-9a-f]{32}$/);
	});
});

describe('a request to start again', () => {
	const again = async (id: string, startAgain: string, taskId = 'task-1') =>
		await mayStartWith(executionOf(id), { account: ACCOUNT, taskId, startAgain }, `callback ${id}`);

	it('starts once for each who asks, and is never taken for a task', async () => {
		expect(await mayStart(executionOf('1'), 'task-1')).toBe(true);
		expect([await again('2', 'a'), await again('3', 'a'), await again('4', 'b')]).toEqual([
			true,
			false,
			true,
		]);
		expect(await mayStart(executionOf('5'), 'task-1","a')).toBe(true);
		expect(await mayStart(executionOf('6'), ' a task-1')).toBe(true);
	});
});

describe('the execution that recorded a task', () => {
	it('goes on with it in its next try, also where the row is gone meanwhile', async () => {
		const context = contextOf();
		expect(await mayStart(context, 'task-1')).toBe(true);
		store.rows.clear();
		expect(await mayStart(context, 'task-1')).toBe(true);
		expect(store.rows.size).toBe(0);
	});

	it("goes on where the row was written and the database's answer was lost", async () => {
		const context = contextOf();
		store.answerIsLost = true;
		await expect(mayStart(context, 'task-1')).rejects.toThrow('connection');
		expect(await mayStart(context, 'task-1')).toBe(true);
		expect(await mayStart(contextOf(), 'task-1')).toBe(false);
	});

	it('does not where nothing was written, and another was first meanwhile', async () => {
		const context = contextOf();
		store.nextError = new Error('connection terminated unexpectedly');
		await expect(mayStart(context, 'task-1')).rejects.toThrow('connection');
		expect(await mayStart(executionOf('2'), 'task-1')).toBe(true);
		expect(await mayStart(context, 'task-1')).toBe(false);
		expect(await mayStart(context, 'task-1')).toBe(false);
	});

	it('is not taken for another one whose write has lost its answer', async () => {
		expect(await mayStart(executionOf('1'), 'task-1')).toBe(true);
		const entries = [...store.rows.values()];
		const second = executionOf('2');
		store.answerIsLost = true;
		// In two tries, as Retry On Fail makes them.
		expect(await mayStart(second, 'task-1')).toBe(false);
		store.answerIsLost = false;
		expect(await mayStart(second, 'task-1')).toBe(false);
		expect([...store.rows.values()]).toEqual(entries);
	});

	it('says that it does not know where its entries came into the row of another', async () => {
		const [first, second] = [executionOf('1'), executionOf('2')];
		// Neither finds a row; the second adds its entries to what the first has written, and never hears of it.
		const size = second.helpers.getProcessedDataCount;
		second.helpers.getProcessedDataCount = async (...args) => {
			const count = await size(...args);
			if (!second.getContext('node').hasRun) expect(await mayStart(first, 'task-1')).toBe(true);
			second.getContext('node').hasRun = true;
			return count;
		};
		store.answerIsLost = false;
		const record = second.helpers.checkProcessedAndRecord;
		let calls = 0;
		second.helpers.checkProcessedAndRecord = async (...args) => {
			const answer = await record(...args);
			if (calls++ === 0) throw new Error('connection terminated unexpectedly');
			return answer;
		};
		await expect(mayStart(second, 'task-1')).rejects.toThrow('connection');
		await expect(mayStart(second, 'task-1')).rejects.toThrow('It is not known');
	});

	it('knows each task by itself', async () => {
		const context = contextOf();
		await mayStart(executionOf('2'), 'task-2');
		expect(await mayStart(context, 'task-1')).toBe(true);
		expect(await mayStart(context, 'task-2')).toBe(false);
	});
});

describe('an execution that was killed and is retried from the list', () => {
	/** What n8n has kept of it is the callback that it was begun by. */
	const retryOf = (id: string) => {
		const context = executionOf(id);
		context.getMode = () => 'retry';
		return context;
	};

	it('goes on with the task that it had recorded', async () => {
		expect(await mayStart(executionOf('1'), 'task-1', 'callback 1')).toBe(true);
		expect(await mayStart(retryOf('2'), 'task-1', 'callback 1')).toBe(true);
		expect(await mayStart(executionOf('3'), 'task-1', 'callback 3')).toBe(false);
	});

	it('starts with the task that it had not recorded, and nobody after it', async () => {
		expect(await mayStart(retryOf('2'), 'task-1', 'callback 1')).toBe(true);
		expect(await mayStart(executionOf('3'), 'task-1', 'callback 3')).toBe(false);
	});

	it('starts nothing where another has started the task meanwhile', async () => {
		expect(await mayStart(executionOf('2'), 'task-1', 'callback 2')).toBe(true);
		expect(await mayStart(retryOf('3'), 'task-1', 'callback 1')).toBe(false);
		expect(await mayStart(retryOf('4'), 'task-1', 'callback 2')).toBe(true);
	});

	it('starts nothing either where the first answer to that question was lost', async () => {
		expect(await mayStart(executionOf('2'), 'task-1', 'callback 2')).toBe(true);
		const retry = retryOf('3');
		store.answerIsLost = true;
		await expect(mayStart(retry, 'task-1', 'callback 1')).rejects.toThrow('connection');
		expect(await mayStart(retry, 'task-1', 'callback 1')).toBe(false);
	});
});

it.each(Object.entries(SECOND_ROW))(
	'the refusal of a second row by %s means that the task was recorded',
	async (_database, error) => {
		store.nextError = error;
		expect(await mayStart(contextOf(), 'task-1')).toBe(false);
	},
);

it.each(['SQLITE_BUSY: database is locked', 'connection terminated unexpectedly'])(
	'another trouble of the database is no answer: %s',
	async (message) => {
		store.nextError = new Error(message);
		await expect(mayStart(contextOf(), 'task-1')).rejects.toThrow(message);
	},
);

it('the node has its own id again as soon as the helper was called', async () => {
	const context = contextOf();
	const recording = mayStart(context, 'task-1');
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
	await expect(mayStart(context, 'task-1')).rejects.toThrow('No store');
	expect(context.getExecuteData().node.id).toBe('trigger');
});

it('an n8n that does not look at the id gets one row, and that is logged once', async () => {
	const warn = jest.spyOn(contextOf().logger, 'warn').mockImplementation(() => {});
	const recordInOneRow = async (task: string) => {
		const context = contextOf();
		context.helpers.checkProcessedAndRecord = async (items) => ({ new: items, processed: [] });
		return await mayStart(context, task);
	};
	expect([await recordInOneRow('a'), await recordInOneRow('b')]).toEqual([true, true]);
	expect(warn.mock.calls).toEqual([[expect.stringContaining('in one row')]]);
	warn.mockRestore();
});
