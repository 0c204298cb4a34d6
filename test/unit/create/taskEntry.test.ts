import { replanned } from '../../../nodes/MediaGeneration/create/replanned';
import {
	positionOf,
	takeOver,
	type TaskEntry,
} from '../../../nodes/MediaGeneration/create/taskEntry';
import type { ItemPlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { createdEntry, entryOf, plan, readPlan } from './entries';

const create = (prompt: string, taskIndex = 0, itemIndex = 0) =>
	plan({ taskIndex, itemIndex, input: { prompt } });
const read = (taskId: string, taskIndex = 0) => readPlan({ taskId, taskIndex });
const refusal = (taskIndex = 0): ItemPlan => ({
	...{ kind: 'refused', itemIndex: 0, taskIndex, isDry: false },
	error: new ItemError('No prompt'),
});

const ordered = (taskIndex = 0, more: Partial<TaskEntry> = {}) =>
	createdEntry({ plan: create('before', taskIndex), taskId: `task-${taskIndex}`, ...more });
const free = (taskIndex = 0, more: Partial<TaskEntry> = {}) =>
	entryOf({ plan: create('before', taskIndex), ...more });
const inDoubt = (taskIndex = 0) => free(taskIndex, { state: 'sent', doubtIn: ['7', 1] });
const reading = (taskId: string, more: Partial<TaskEntry> = {}) =>
	entryOf({ plan: read(taskId), state: 'created', taskId, ...more });
const charged = { state: 'FAILURE', creditsConsumed: 8, taskId: 'task-0' } as never;

/** An entry in a few words: its position, what is known of it, and what it is for. */
function told(entry: TaskEntry): string {
	const { state, taskId, failed = [], error, plan } = entry;
	const prompt = plan?.kind === 'create' ? plan.input.prompt : undefined;
	const purpose = error?.message ?? prompt ?? (plan?.kind === 'read' ? 'read' : 'nothing');
	const before = failed.length > 0 ? ` after ${failed.join(', ')}` : '';
	return `${positionOf(entry)}: ${taskId ?? state}${before} for ${String(purpose)}`;
}

it.each<[sentence: string, before: TaskEntry[], items: ItemPlan[], after: string[]]>([
	['a new item is planned as it is', [], [create('now')], ['0.0: free for now']],
	[
		'what was not ordered takes the new parameters',
		[free()],
		[create('now')],
		['0.0: free for now'],
	],
	[
		'what failed before it was ordered takes the new parameters',
		[free(0, { end: 'error', error: { message: 'No' } as never })],
		[create('now')],
		['0.0: free for now'],
	],
	[
		'what failed at the service, and was free, takes the new parameters, and the task that failed is still named',
		[free(0, { failed: ['task-0'] })],
		[create('now')],
		['0.0: free after task-0 for now'],
	],
	[
		'a task that is ordered stays, and is waited for as the parameters say now',
		[ordered()],
		[create('now')],
		['0.0: task-0 for now'],
	],
	[
		'a failed task that the service has charged for stays',
		[ordered(0, { task: charged, end: 'error', error: { message: 'Failed' } as never })],
		[create('now')],
		['0.0: task-0 for Failed'],
	],
	['an order in doubt is never sent again', [inDoubt()], [create('now')], ['0.0: sent for now']],
	[
		'fewer prompts: the tasks that are ordered stay, and what was not ordered goes',
		[ordered(0), ordered(1), free(2)],
		[create('now')],
		['0.0: task-0 for now', '0.1: task-1 for before'],
	],
	[
		'more prompts: those that are new are ordered',
		[ordered(0)],
		[create('now', 0), create('more', 1)],
		['0.0: task-0 for now', '0.1: free for more'],
	],
	[
		'an item that is refused now, and has no task, is refused',
		[free()],
		[refusal()],
		['0.0: free for No prompt'],
	],
	[
		'an item that is refused now keeps the task that is ordered, and nothing is refused',
		[ordered()],
		[refusal()],
		['0.0: task-0 for before'],
	],
	[
		'an item that is refused now is refused for what is not ordered',
		[ordered(0), free(1)],
		[refusal()],
		['0.0: task-0 for before', '0.1: free for No prompt'],
	],
	['an item without an order that gives nothing now goes', [free()], [], []],
	['an id that is read on is the same task', [reading('a')], [read('a')], ['0.0: a for read']],
	[
		'another id at the position is another task',
		[reading('a')],
		[read('b')],
		['0.0: free for read'],
	],
	[
		'a task that is ordered stays a task to create, although its item names an id now',
		[ordered()],
		[read('b')],
		['0.0: task-0 for before'],
	],
	[
		'a task that was only read is no order, so its item is ordered',
		[reading('a')],
		[create('now')],
		['0.0: free for now'],
	],
	[
		'the entries are in the order of the items and their tasks',
		[ordered(2), ordered(0)],
		[create('other', 0, 1), create('now', 1)],
		[
			'0.0: task-0 for before',
			'0.1: free for now',
			'0.2: task-2 for before',
			'1.0: free for other',
		],
	],
])('%s', (_sentence, before, items, after) => {
	expect(replanned(before, items).map(told)).toEqual(after);
});

it('what is known of an ordered task is not lost', () => {
	const known = { createdAt: 5, until: 6, readAt: 7, costUsd: 0.08, failed: ['a'] };
	const [entry] = replanned([ordered(0, known)], [create('now')]);
	expect(entry).toMatchObject({ ...known, sent: { input: { prompt: 'A lighthouse' } } });
});

describe('what another execution has stored of a task', () => {
	const known = ordered(0, { taskId: 'task-9' });

	it('is taken over where nothing is known of the task', () => {
		const entry = free();
		takeOver(entry, known, '7');
		expect(entry).toMatchObject({ state: 'created', taskId: 'task-9' });
	});

	it('is left where that task has failed, and another task is to be created in its position', () => {
		const entry = free(0, { failed: ['task-9'] });
		takeOver(entry, known, '7');
		expect(entry).toMatchObject({ state: 'free', failed: ['task-9'] });
		expect(entry.taskId).toBeUndefined();
	});
});
