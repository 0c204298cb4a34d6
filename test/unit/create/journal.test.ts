import type { IDataObject } from 'n8n-workflow';

import { Journal } from '../../../nodes/MediaGeneration/create/journal';
import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/itemPlan';
import { API_KEY, executeContext } from '../../workflow/engine';

type Context = ReturnType<typeof executeContext>;

const contextOf = () =>
	executeContext({ node: {}, credential: { baseUrl: 'https://api.example.com', apiKey: API_KEY } });

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
	output: { download: false, split: false, binaryField: 'data' },
	completion: 'poll',
	model: 'vendor/model',
	input: { prompt: 'A lighthouse' },
	estimatedCostUsd: undefined,
	...more,
});

const task = (taskId = 'task-1') => ({ taskId, record: { taskId } });

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

	it('finds it after the execution was stored and read again', () => {
		const context = contextOf();
		new Journal(context).created(plan(), task());
		const later = contextOf();
		Object.assign(
			later.getContext('node'),
			JSON.parse(JSON.stringify(context.getContext('node'))) as IDataObject,
		);
		expect(new Journal(later).find(plan())).toMatchObject(task());
	});

	it.each([
		['another prompt', { input: { prompt: 'A harbour' } }],
		['another model', { model: 'vendor/other' }],
		['another item', { itemIndex: 1 }],
		['another picture', { image: { field: 'image_url', binaryPropertyName: 'other' } }],
		['another address to call back', { completion: 'trigger' as const }],
	])('takes %s for another task', (_what, change) => {
		const context = contextOf();
		const image = { field: 'image_url', binaryPropertyName: 'data' };
		new Journal(context).created(plan({ image }), task());
		expect(new Journal(context).find(plan({ image, ...change }))).toBeUndefined();
	});

	it.each([
		['completion without a callback', { completion: 'return' as const }],
		['timeout', { timeoutMs: 1000 }],
		['poll interval', { pollIntervalMs: 5000 }],
		['output', { output: { download: true, split: true, binaryField: 'x' } }],
	])('takes another %s for the same task', (_what, change) => {
		const context = contextOf();
		new Journal(context).created(plan(), task());
		expect(new Journal(context).find(plan(change))).toMatchObject(task());
	});

	it('still names a task whose prompt was changed', () => {
		const context = contextOf();
		new Journal(context).created(plan(), task());
		const second = new Journal(context);
		second.created(plan({ input: { prompt: 'A harbour' } }), task('task-2'));
		expect(second.taskIds()).toEqual(['task-1', 'task-2']);
	});
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
	it('holds no prompt, no picture and no callback address', () => {
		const context = contextOf();
		const webhookUrl = 'https://n8n.example.com/webhook/x?token=secret';
		new Journal(context).created(plan({ webhookUrl, completion: 'trigger' }), task());
		expect(JSON.stringify(stored(context))).not.toMatch(/lighthouse|secret|n8n\.example/);
	});

	it('is nothing once the run has come to its end', () => {
		const context = contextOf();
		const journal = new Journal(context);
		journal.created(plan(), task());
		journal.sending(plan({ itemIndex: 1 }));
		journal.close();
		expect(stored(context)).toEqual({});
	});

	it.each([[[]], ['x'], [null], [{ '0:0:x': 7 }]])('may be %j, which nobody wrote', (odd) => {
		const context = contextOf();
		context.getContext('node').createdTasks = odd;
		const journal = new Journal(context);
		expect([journal.find(plan()), journal.taskIds()]).toEqual([undefined, []]);
		journal.created(plan(), task());
		expect(new Journal(context).find(plan())).toMatchObject(task());
	});
});
