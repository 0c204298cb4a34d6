import type { IDataObject } from 'n8n-workflow';

import { Journal } from '../../../nodes/MediaGeneration/create/journal';
import { ItemFile } from '../../../nodes/MediaGeneration/plan/itemFile';
import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/taskPlan';
import { API_KEY, executeContext } from '../../workflow/engine';

type Context = ReturnType<typeof executeContext>;

const contextOf = (type = 'mediaGeneration') =>
	executeContext({
		node: { type },
		credential: { baseUrl: 'https://api.example.com', apiKey: API_KEY },
	});

/** The same node in another execution that began with what n8n stored of the first: *Retry* in the list. */
function retried(context: Context, executionId = '2'): Context {
	const later = contextOf();
	later.getExecutionId = () => executionId;
	const stored = JSON.stringify(context.getContext('node'));
	Object.assign(later.getContext('node'), JSON.parse(stored) as IDataObject);
	return later;
}

/** The same node in the same execution, in a further run: what a loop makes of it. */
function inRun(context: Context, runIndex: number): Context {
	const further = contextOf();
	further.getContext = (type) => context.getContext(type);
	const proxy = further.getWorkflowDataProxy(0);
	further.getWorkflowDataProxy = () => ({ ...proxy, $runIndex: runIndex });
	return further;
}

const plan = (more: Partial<CreatePlan> = {}): CreatePlan => ({
	kind: 'create',
	itemIndex: 0,
	pollIntervalMs: 2000,
	timeoutMs: 600_000,
	patienceMs: 600_000,
	output: { download: false, split: false, binaryField: 'data' },
	completion: 'wait',
	model: 'vendor/model',
	input: { prompt: 'A lighthouse' },
	estimatedCostUsd: undefined,
	...more,
});

const task = (taskId = 'task-1') => ({
	taskId,
	record: { taskId },
	sent: { model: 'vendor/model', input: { prompt: 'A lighthouse' } },
});

/** A file as n8n keeps it on disk. */
const file = (id: string) =>
	new ItemFile('data', { id: `filesystem:${id}`, data: 'filesystem', mimeType: 'image/png' });

const stored = (context: Context) => context.getContext('node').createdTasks as IDataObject;

describe('a second try', () => {
	it('finds the task that the first one created', () => {
		const context = contextOf();
		new Journal(context).created(plan(), task());
		const journal = new Journal(context);
		expect(journal.find(plan())).toMatchObject(task());
		expect(journal.taskIds()).toEqual(['task-1']);
	});

	it('finds what the first one sent without hearing of it again', () => {
		const context = contextOf();
		new Journal(context).sending(plan());
		const journal = new Journal(context);
		expect(journal.find(plan())).toBe('sent');
		expect(journal.taskIds()).toEqual([]);
	});

	it('finds nothing of what was certainly not taken', () => {
		const context = contextOf();
		const first = new Journal(context);
		first.sending(plan());
		first.forget(plan());
		expect(new Journal(context).find(plan())).toBeUndefined();
	});

	it.each([
		['another prompt', { input: { prompt: 'A harbour' } }],
		['another model', { model: 'vendor/other' }],
		['another picture', { input: { prompt: 'A lighthouse', image_url: file('other') } }],
	])('finds it where the expressions give %s this time', (_what, change) => {
		const context = contextOf();
		new Journal(context).created(plan(), task());
		const journal = new Journal(context);
		// With what was sent, which is not what this try would send.
		expect(journal.find(plan(change))).toMatchObject(task());
		expect(journal.taskOf(0)).toEqual(task());
	});

	it('takes what was sent for sent, whatever the expressions give this time', () => {
		const context = contextOf();
		new Journal(context).sending(plan());
		expect(new Journal(context).find(plan({ input: { prompt: 'A harbour' } }))).toBe('sent');
	});

	it('takes another item for another task', () => {
		const context = contextOf();
		new Journal(context).created(plan(), task());
		expect(new Journal(context).find(plan({ itemIndex: 1 }))).toBeUndefined();
	});

	it('creates a task anew that failed, and keeps the ids of those before', () => {
		const context = contextOf();
		for (const taskId of ['task-1', 'task-2']) {
			const journal = new Journal(context);
			expect(journal.find(plan())).toBeUndefined();
			journal.sending(plan());
			journal.created(plan(), task(taskId));
			journal.failed(plan());
		}
		const third = new Journal(context);
		// The expressions may give something else each time.
		third.sending(plan({ input: { prompt: 'A harbour' } }));
		third.created(plan({ input: { prompt: 'A harbour' } }), task('task-3'));
		const journal = new Journal(context);
		expect(journal.find(plan())).toMatchObject(task('task-3'));
		expect(journal.failedTaskIds(plan())).toEqual(['task-1', 'task-2']);
		expect(journal.failedTaskIds()).toEqual(['task-1', 'task-2']);
		expect(journal.taskIds()).toEqual(['task-1', 'task-2', 'task-3']);
	});

	it('keeps the ids of failed tasks where the next create was refused', () => {
		const context = contextOf();
		const journal = new Journal(context);
		journal.created(plan(), task());
		journal.failed(plan());
		journal.sending(plan());
		journal.forget(plan());
		expect(journal.find(plan())).toBeUndefined();
		expect(journal.taskIds()).toEqual(['task-1']);
	});

	it('names the items whose answer is not known', () => {
		const context = contextOf();
		const journal = new Journal(context);
		journal.created(plan(), task());
		journal.sending(plan({ itemIndex: 1 }));
		journal.sending(plan({ itemIndex: 12 }));
		expect(new Journal(context).unanswered()).toEqual([1, 12]);
	});
});

describe('a retry from the list of executions', () => {
	it('finds the task, and what was sent without hearing of it again', () => {
		const context = contextOf();
		new Journal(context).created(plan(), task());
		new Journal(context).sending(plan({ itemIndex: 1 }));
		const journal = new Journal(retried(context));
		expect(journal.find(plan())).toMatchObject(task());
		expect(journal.find(plan({ itemIndex: 1 }))).toBe('sent');
	});

	it('may try again itself, and then finds the task whatever the expressions give', () => {
		const context = contextOf();
		new Journal(context).created(plan(), task());
		const later = retried(context);
		expect(new Journal(later).find(plan())).toMatchObject(task());
		expect(new Journal(later).find(plan({ input: { prompt: 'now' } }))).toMatchObject(task());
	});

	it.each([
		['another prompt', { input: { prompt: 'A harbour' } }],
		['another model', { model: 'vendor/other' }],
		['another item', { itemIndex: 1 }],
		['another picture', { input: { prompt: 'A lighthouse', image_url: file('other') } }],
	])('takes %s for another task', (_what, change) => {
		const context = contextOf();
		const input = { prompt: 'A lighthouse', image_url: file('one') };
		new Journal(context).created(plan({ input }), task());
		const journal = new Journal(retried(context));
		expect(journal.find(plan({ input, ...change }))).toBeUndefined();
		expect(journal.taskOf(0)).toBeUndefined();
	});

	it('does not mix up items that changed their order', () => {
		const context = contextOf();
		const harbour = { input: { prompt: 'A harbour' } };
		new Journal(context).created(plan(), task());
		new Journal(context).created(plan({ ...harbour, itemIndex: 1 }), task('task-2'));
		const journal = new Journal(retried(context));
		const found = [plan(harbour), plan({ itemIndex: 1 })].map((item) => journal.find(item));
		expect(found).toEqual([undefined, undefined]);
	});

	it('still names a task whose prompt was changed, and goes back to it with the prompt', () => {
		const context = contextOf();
		new Journal(context).created(plan(), task());
		const later = retried(context);
		const second = new Journal(later);
		second.created(plan({ input: { prompt: 'A harbour' } }), task('task-2'));
		expect(second.taskIds()).toEqual(['task-1', 'task-2']);
		expect(new Journal(retried(later, '3')).find(plan())).toMatchObject(task());
	});

	it.each([
		['timeout', { timeoutMs: 1000 }],
		['poll interval', { pollIntervalMs: 5000 }],
		['output', { output: { download: true, split: true, binaryField: 'x' } }],
	])('takes another %s for the same task', (_what, change) => {
		const context = contextOf();
		new Journal(context).created(plan(), task());
		expect(new Journal(retried(context)).find(plan(change))).toMatchObject(task());
	});

	const completions = ['wait', 'trigger', 'return'] as const;
	it.each(completions.flatMap((one) => completions.map((other) => [one, other] as const)))(
		'takes a task for the same that was waited for by %s and is now by %s',
		(first, second) => {
			const context = contextOf();
			const input = { prompt: 'A lighthouse', image_url: file('one') };
			new Journal(context).created(plan({ input, completion: first }), task());
			const journal = new Journal(retried(context));
			expect(journal.find(plan({ input, completion: second }))).toMatchObject(task());
		},
	);
});

describe("an agent's tool", () => {
	/** By the two ways on which n8n runs a tool: supplied to its caller, or as a node. */
	const supplied = () => Object.assign(contextOf(), { isToolExecution: () => true });
	const asNode = () => contextOf('mediaGenerationTool');

	it.each([
		['supplied', supplied],
		['as a node', asNode],
	])(
		'that is run %s is called many times: only the same request is the same task',
		(_way, make) => {
			const context = make();
			new Journal(context).created(plan(), task());
			const journal = new Journal(context);
			expect(journal.find(plan())).toMatchObject(task());
			expect(journal.find(plan({ input: { prompt: 'A harbour' } }))).toBeUndefined();
			expect(journal.taskOf(0)).toBeUndefined();
		},
	);
});

describe('the runs of a loop', () => {
	it('know nothing of one another, not even run 1 of run 11', () => {
		const context = contextOf();
		new Journal(inRun(context, 1)).created(plan(), task());
		for (const run of [0, 2, 11]) {
			const journal = new Journal(inRun(context, run));
			expect([journal.find(plan()), journal.taskIds()]).toEqual([undefined, []]);
		}
		expect(new Journal(inRun(context, 1)).find(plan())).toMatchObject(task());
	});

	it('are forgotten one by one', () => {
		const context = contextOf();
		const [first, eleventh] = [1, 11].map((run) => new Journal(inRun(context, run)));
		first?.created(plan(), task());
		eleventh?.created(plan(), task('task-2'));
		first?.close();
		expect([first?.taskIds(), eleventh?.taskIds()]).toEqual([[], ['task-2']]);
	});
});

describe('what n8n stores', () => {
	it('holds no callback address and no token', () => {
		const context = contextOf();
		const webhookUrl = 'https://n8n.example.com/webhook/x?token=secret';
		new Journal(context).created(plan({ webhookUrl, completion: 'trigger' }), task());
		expect(JSON.stringify(stored(context))).not.toMatch(/secret|n8n\.example/);
	});

	it('is nothing but its version once the run has come to its end', () => {
		const context = contextOf();
		const journal = new Journal(context);
		journal.created(plan(), task());
		journal.sending(plan({ itemIndex: 1 }));
		journal.close();
		expect(stored(context)).toEqual({ version: 1, runs: {} });
	});

	it('by a newer version is not touched, and the message says what to do', () => {
		const context = contextOf();
		const newer = { version: 2, tasks: ['task-1'] };
		context.getContext('node').createdTasks = newer;
		expect(() => new Journal(context)).toThrow(
			expect.objectContaining({
				message: expect.stringContaining('another version of this package') as string,
				description: expect.stringContaining('Nothing was sent. Update') as string,
			}),
		);
		expect(stored(context)).toBe(newer);
	});

	it.each([
		[[]],
		['x'],
		[{ '0:0:abc': 7 }],
		[{ '0:0:not-hex': 'sent' }],
		[{}],
		[{ runs: {} }],
		[{ version: 2, runs: {} }],
		[{ version: '1', runs: {} }],
	])('that nobody can read (%j) is refused: it may name paid tasks', (odd) => {
		const context = contextOf();
		context.getContext('node').createdTasks = odd;
		expect(() => new Journal(context)).toThrow('another version of this package');
		expect(stored(context)).toBe(odd);
	});

	it('that nobody can read names the tasks that stand in it', () => {
		const context = contextOf();
		const runs = { 0: { 0: [{ taskId: 'task-1', state: 'finished' }] } };
		context.getContext('node').createdTasks = { version: 2, runs };
		expect(() => new Journal(context)).toThrow(
			expect.objectContaining({ description: expect.stringContaining('task-1') as string }),
		);
	});
});
