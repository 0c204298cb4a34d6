import type { IDataObject } from 'n8n-workflow';

import {
	CreateJournal,
	notePause,
	pauseLeft,
} from '../../../nodes/MediaGeneration/create/createJournal';
import { InputFile } from '../../../nodes/MediaGeneration/plan/inputFile';
import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { time, virtualTime } from '../../workflow/time';
import { type Context, contextOf, plan } from './makers';

/** The same node in another execution that began with what n8n stored of the first: *Retry* in the list. */
function retried(context: Context, executionId = '2'): Context {
	const later = contextOf();
	later.getExecutionId = () => executionId;
	const stored = JSON.stringify(context.getContext('node'));
	Object.assign(later.getContext('node'), JSON.parse(stored) as IDataObject);
	return later;
}

const task = (taskId = 'task-1') => ({
	taskId,
	record: { taskId },
	sent: { model: 'vendor/model', input: { prompt: 'A lighthouse' } },
});

/** A file as n8n keeps it on disk. */
const file = (id: string) =>
	new InputFile('data', { id: `filesystem:${id}`, data: 'filesystem', mimeType: 'image/png' });

const harbour = { input: { prompt: 'A harbour' } };
const withPicture = { input: { prompt: 'A lighthouse', image_url: file('one') } };

/** A node whose first try has created a task. */
function created(item: Partial<CreatePlan> = {}, context = contextOf()): Context {
	new CreateJournal(context).created(plan(item), task());
	return context;
}

/** What an item names that cannot be planned. */
const named = (journal: CreateJournal) => journal.withTask(new ItemError('No'), 0).task;

const stored = (context: Context) => context.getContext('node').createdTasks as IDataObject;

const ANOTHER_REQUEST: Array<[string, Partial<CreatePlan>]> = [
	['another prompt', harbour],
	['another model', { model: 'vendor/other' }],
	['another picture', { input: { prompt: 'A lighthouse', image_url: file('other') } }],
];

describe('a second try', () => {
	it.each([
		['the same', {}],
		['another', harbour],
	])('takes what was sent for sent, where the expressions give %s prompt', (_what, change) => {
		const context = contextOf();
		new CreateJournal(context).sending(plan());
		const journal = new CreateJournal(context);
		expect(journal.find(plan(change))).toBe('sent');
		expect(journal.taskIds()).toEqual([]);
		const { message } = journal.withTask(new ItemError('No'), 0);
		expect(message).toBe('It is not known whether the task was created. No');
	});

	it.each(ANOTHER_REQUEST)('finds it where the expressions give %s this time', (_what, change) => {
		const journal = new CreateJournal(created());
		// With what was sent, which is not what this try would send.
		expect(journal.find(plan(change))).toMatchObject(task());
		expect(named(journal)).toMatchObject({ taskId: 'task-1' });
	});

	it('takes another item for another task', () => {
		expect(new CreateJournal(created()).find(plan({ itemIndex: 1 }))).toBeUndefined();
	});

	it('creates a task anew that failed, and keeps the ids of those before', () => {
		const context = contextOf();
		for (const taskId of ['task-1', 'task-2']) {
			const journal = new CreateJournal(context);
			expect(journal.find(plan())).toBeUndefined();
			journal.sending(plan());
			journal.created(plan(), task(taskId));
			journal.failed(plan());
		}
		const third = new CreateJournal(context);
		// The expressions may give something else each time.
		third.sending(plan(harbour));
		third.created(plan(harbour), task('task-3'));
		const journal = new CreateJournal(context);
		expect(journal.find(plan())).toMatchObject(task('task-3'));
		expect(journal.failedTaskIds(plan())).toEqual(['task-1', 'task-2']);
		expect(journal.failedTaskIds()).toEqual(['task-1', 'task-2']);
		expect(journal.taskIds()).toEqual(['task-1', 'task-2', 'task-3']);
	});

	it('keeps the ids of failed tasks where the next create was refused', () => {
		const journal = new CreateJournal(created());
		journal.failed(plan());
		journal.sending(plan());
		journal.forget(plan());
		expect(journal.find(plan())).toBeUndefined();
		expect(journal.taskIds()).toEqual(['task-1']);
	});

	it('names the items whose answer is not known', () => {
		const context = created();
		for (const itemIndex of [1, 12]) new CreateJournal(context).sending(plan({ itemIndex }));
		expect(new CreateJournal(context).unanswered()).toEqual([1, 12]);
	});
});

describe('a retry from the list of executions', () => {
	it('finds the task, and what was sent without hearing of it again', () => {
		const context = created();
		new CreateJournal(context).sending(plan({ itemIndex: 1 }));
		const journal = new CreateJournal(retried(context));
		expect(journal.find(plan())).toMatchObject(task());
		expect(journal.find(plan({ itemIndex: 1 }))).toBe('sent');
	});

	it('may try again itself, and then finds the task whatever the expressions give', () => {
		const later = retried(created());
		expect(new CreateJournal(later).find(plan())).toMatchObject(task());
		expect(new CreateJournal(later).find(plan(harbour))).toMatchObject(task());
	});

	const ANOTHER_TASK = [...ANOTHER_REQUEST, ['another item', { itemIndex: 1 }] as const];
	it.each(ANOTHER_TASK)('takes %s for another task', (_what, change) => {
		const journal = new CreateJournal(retried(created(withPicture)));
		expect(journal.find(plan({ ...withPicture, ...change }))).toBeUndefined();
		expect(named(journal)).toEqual({});
	});

	it('does not mix up items that changed their order', () => {
		const context = created();
		new CreateJournal(context).created(plan({ ...harbour, itemIndex: 1 }), task('task-2'));
		const journal = new CreateJournal(retried(context));
		const found = [plan(harbour), plan({ itemIndex: 1 })].map((item) => journal.find(item));
		expect(found).toEqual([undefined, undefined]);
	});

	it('still names a task whose prompt was changed, and goes back to it with the prompt', () => {
		const later = retried(created());
		const second = new CreateJournal(later);
		second.created(plan(harbour), task('task-2'));
		expect(second.taskIds()).toEqual(['task-1', 'task-2']);
		expect(new CreateJournal(retried(later, '3')).find(plan())).toMatchObject(task());
	});

	it.each<[string, Partial<CreatePlan>, Partial<CreatePlan>]>([
		['another timeout', {}, { timeoutMs: 1000 }],
		['another poll interval', {}, { pollIntervalMs: 5000 }],
		['another output', {}, { output: { download: true, split: true, binaryField: 'x' } }],
		['another completion', withPicture, { ...withPicture, completion: 'return' }],
	])('takes %s for the same task', (_what, before, after) => {
		expect(new CreateJournal(retried(created(before))).find(plan(after))).toMatchObject(task());
	});
});

it.each([
	['', { isToolExecution: () => true }],
	[', in a version of n8n that does not tell', { isToolExecution: undefined, getNextRunIndex: 0 }],
])('a call of a tool that n8n has supplied finds nothing of a call beside it%s', (_where, ways) => {
	const context = Object.assign(contextOf(), ways) as Context;
	const [first, second] = [new CreateJournal(context), new CreateJournal(context)];
	first.created(plan(), task());
	expect(first.find(plan())).toMatchObject(task());
	expect(second.find(plan())).toBeUndefined();
	expect(named(second)).toEqual({});
});

describe('what n8n stores', () => {
	it('holds no callback address and no token', () => {
		const webhookUrl = 'https://n8n.example.com/webhook/x?token=secret';
		const context = created({ webhookUrl, completion: 'trigger' });
		expect(JSON.stringify(stored(context))).not.toMatch(/secret|n8n\.example/);
	});

	const ofTask = { 0: { 0: [{ taskId: 'task-1', state: 'finished' }] } };
	const UNREADABLE = [[], 'x', { '0:0:abc': 7 }, { '0:0:not-hex': 'sent' }, {}, { runs: {} }];
	it.each<[unknown, description: string, tasks?: string]>([
		...[...UNREADABLE, { version: 2, runs: {} }, { version: '1', runs: {} }].map(
			(odd): [unknown, string] => [odd, 'Update'],
		),
		[{ version: 2, tasks: ['task-1'] }, 'Nothing was sent. Update'],
		[{ version: 2, runs: ofTask }, 'Update', '. Its tasks: task-1'],
	])(
		'that cannot be read (%j) is refused, and left as it is: it may name paid tasks',
		(...given) => {
			const [odd, says, tasks = ''] = given;
			const context = contextOf();
			Object.assign(context.getContext('node'), { createdTasks: odd });
			const message = `This execution was started with another version of this package${tasks}`;
			const description = expect.stringContaining(says) as string;
			const refused = expect.objectContaining({ message, description }) as Error;
			expect(() => new CreateJournal(context)).toThrow(refused);
			expect(stored(context)).toBe(odd);
		},
	);
});

describe('a pause that the service asks for', () => {
	virtualTime(1_000_000);

	it('runs out, and is not less than nothing then', () => {
		const context = contextOf();
		notePause(context, 5000);
		time.setWall(1_006_000);
		expect(pauseLeft(context)).toBe(0);
	});
});
