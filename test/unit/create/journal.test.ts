import type { IDataObject } from 'n8n-workflow';

import { notePause, pauseLeft } from '../../../nodes/MediaGeneration/create/askedPause';
import { Journal } from '../../../nodes/MediaGeneration/create/journal';
import { storedError } from '../../../nodes/MediaGeneration/create/taskEntry';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { executeContext } from '../../workflow/engine';
import { time, virtualTime } from '../../workflow/time';

type Context = ReturnType<typeof executeContext>;

interface Given {
	parameters?: IDataObject;
	/** The JSON of each input item. */
	items?: IDataObject[];
	executionId?: string;
	runIndex?: number;
}

const PROMPT = { prompt: 'A lighthouse' };

/** The node in an execution, with what n8n has stored of it. */
function contextOf(
	{ parameters = PROMPT, items = [{}, {}], executionId = '1', runIndex = 0 }: Given = {},
	stored?: Context,
): Context {
	const context = executeContext({
		node: { parameters },
		items: items.map((json) => ({ json })),
	});
	context.getExecutionId = () => executionId;
	Object.assign(context, { runIndex });
	const kept = JSON.stringify(stored?.getContext('node') ?? {});
	Object.assign(context.getContext('node'), JSON.parse(kept) as IDataObject);
	return context;
}

const FIRST = { itemIndex: 0, part: 0 };
const SECOND = { itemIndex: 1, part: 0 };
const NO_LIMIT = { intervalMs: 0, limitAt: Infinity };

const task = (taskId = 'task-1') => ({
	taskId,
	record: { taskId },
	sent: { model: 'vendor/model', input: PROMPT },
});

/** A node that has created its first task. */
function created(given: Given = {}): Context {
	const context = contextOf(given);
	new Journal(context).created(FIRST, task());
	return context;
}

/** What a later run knows of the first item. */
const knownBy = (given: Given, stored: Context) =>
	new Journal(contextOf(given, stored)).entryOf(FIRST).taskId;

describe('a run begins', () => {
	it('with nothing known', () => {
		const journal = new Journal(contextOf());
		expect([journal.beginning, journal.isLater]).toEqual(['first', false]);
		expect(journal.beginTurn()).toBeUndefined();
	});

	it('again in a second try, which finds what was created', () => {
		const context = created();
		const journal = new Journal(context);
		expect(journal.beginning).toBe('again');
		expect(journal.entryOf(FIRST)).toMatchObject({ state: 'created', ...task() });
		expect(journal.beginTurn()).toBeUndefined();
	});

	it('woken, and may create what was announced', () => {
		const context = created();
		new Journal(context).fallAsleep([SECOND], NO_LIMIT);
		const journal = new Journal(contextOf({}, context));
		expect([journal.beginning, journal.isLater]).toEqual(['woken', true]);
		expect(journal.beginTurn()).toEqual(new Set(['1.0']));
	});

	it('again in a turn that was woken, and may create no more than that turn', () => {
		const context = created();
		new Journal(context).fallAsleep([SECOND], NO_LIMIT);
		const woken = contextOf({}, context);
		const first = new Journal(woken);
		expect(first.beginning).toBe('woken');
		first.takeUp();
		const journal = new Journal(woken);
		expect([journal.beginning, journal.isLater]).toEqual(['again', true]);
		expect(journal.beginTurn()).toEqual(new Set(['1.0']));
	});

	it.each([
		['woken', '1'],
		['killed', '2'],
	])('%s once more, if the try before did not take the run up', (beginning, executionId) => {
		const context = created();
		new Journal(context).fallAsleep([SECOND], NO_LIMIT);
		const later = contextOf({ executionId }, context);
		for (let tries = 0; tries < 2; tries++) {
			const journal = new Journal(later);
			expect([journal.beginning, journal.earlier]).toEqual([beginning, '1']);
		}
	});

	it('after a kill, with what was announced in doubt, and creates nothing before it is stored', () => {
		const context = contextOf({ items: [{}, {}, {}] });
		const first = new Journal(context);
		first.created(FIRST, task());
		for (const itemIndex of [1, 2]) first.entryOf({ itemIndex, part: 0 });
		first.fallAsleep([SECOND], NO_LIMIT);
		const journal = new Journal(contextOf({ items: [{}, {}, {}], executionId: '2' }, context));
		expect(journal.beginning).toBe('killed');
		journal.takeOver(true);
		expect(journal.unanswered()).toEqual([1]);
		expect(journal.entryOf(SECOND)).toMatchObject({ state: 'sent', doubtIn: '1' });
		expect(journal.entryOf(FIRST)).toMatchObject({ state: 'created' });
		expect(journal.entryOf({ itemIndex: 2, part: 0 })).toEqual({ state: 'free' });
		expect(journal.beginTurn()).toEqual(new Set());
	});

	it('after a stop of a run that slept, with nothing in doubt', () => {
		const context = contextOf();
		const first = new Journal(context);
		first.entryOf(FIRST);
		first.fallAsleep([FIRST], NO_LIMIT);
		const journal = new Journal(contextOf({ executionId: '2' }, context));
		journal.takeOver(false);
		expect(journal.unanswered()).toEqual([]);
	});

	it('in another execution with a time limit of its own', () => {
		const context = created();
		new Journal(context, 1000).fallAsleep([], { intervalMs: 0, limitAt: 5000 });
		const journal = new Journal(contextOf({ executionId: '2' }, context), 9000);
		expect([journal.sleepRule.limitAt, journal.startedAt]).toEqual([Infinity, 9000]);
	});
});

it('a part that was refused leaves a hole, which JSON stores as null', () => {
	const before = contextOf();
	new Journal(before).created({ itemIndex: 0, part: 1 }, task());
	const journal = new Journal(contextOf({}, before));
	expect(journal.taskIds()).toEqual([task().taskId]);
	expect(journal.unanswered()).toEqual([]);
	expect(journal.partsOf(0).map(({ isBegun }) => isBegun)).toEqual([false, true]);
	expect(journal.entryOf(FIRST)).toEqual({ state: 'free' });
	expect(journal.taskIds()).toEqual([task().taskId]);
});

describe('an item is recognised', () => {
	const stored = created({ parameters: { prompt: '={{ Math.random() }}' } });

	it('by its parameters as they are written, whatever their expressions give', () => {
		const again = { parameters: { prompt: '={{ Math.random() }}' }, executionId: '2' };
		expect(knownBy(again, stored)).toBe('task-1');
	});

	it.each<[string, Given]>([
		['another prompt', { parameters: { prompt: 'A harbour' } }],
		['another model', { parameters: { ...PROMPT, model: 'vendor/other' } }],
		['another input', { items: [{ id: 7 }, {}] }],
		['another field', { parameters: { ...PROMPT, options: { additionalInput: '{"seed":7}' } } }],
	])('and is another task with %s, which the journal still names', (_what, given) => {
		const before = created();
		const journal = new Journal(contextOf({ ...given, executionId: '2' }, before));
		expect(journal.entryOf(FIRST)).toEqual({ state: 'free' });
		expect(journal.taskIds()).toEqual(['task-1']);
	});

	it.each<IDataObject>([
		{ timeout: 60 },
		{ pollInterval: 5 },
		{ suspendAfter: 0 },
		{ splitResults: true },
		{ maxInFlight: 1 },
	])('with another option that is no part of the request: %j', (options) => {
		const changed = { parameters: { ...PROMPT, options }, executionId: '2' };
		expect(knownBy(changed, created())).toBe('task-1');
	});

	it('also in another order of the items only if its place is the same', () => {
		const before = contextOf({ items: [{ id: 1 }, { id: 2 }] });
		const journal = new Journal(before);
		journal.created(FIRST, task('task-1'));
		journal.created(SECOND, task('task-2'));
		const swapped = contextOf({ items: [{ id: 2 }, { id: 1 }], executionId: '2' }, before);
		expect(new Journal(swapped).entryOf(FIRST)).toEqual({ state: 'free' });
	});
});

it('each run of a loop has its own tasks, and the last run alone is kept', () => {
	const context = created();
	const journal = new Journal(contextOf({ runIndex: 1 }, context));
	expect([journal.beginning, journal.entryOf(FIRST).taskId]).toEqual(['first', undefined]);
	expect(journal.taskIds()).toEqual([]);
});

describe('a create', () => {
	it('that was sent and not heard of is never free again', () => {
		const context = contextOf();
		new Journal(context).sending(FIRST);
		const journal = new Journal(contextOf({ executionId: '2' }, context));
		expect(journal.entryOf(FIRST).state).toBe('sent');
		expect([journal.taskIds(), journal.unanswered()]).toEqual([[], [0]]);
	});

	it('that was certainly refused is free again', () => {
		const journal = new Journal(contextOf());
		journal.sending(FIRST);
		journal.forget(FIRST);
		expect(journal.entryOf(FIRST)).toEqual({ state: 'free' });
	});
});

describe('an entry that ended with an error is tried again', () => {
	/** A task that ended like this in the first try. */
	function after(end: IDataObject) {
		const context = created();
		const error = storedError(new ItemError('So it is'));
		Object.assign(new Journal(context).entryOf(FIRST), { end: 'error', error, until: 5, ...end });
		const journal = new Journal(contextOf({ executionId: '2' }, context));
		return { journal, entry: journal.entryOf(FIRST) };
	}
	const failed = (creditsConsumed: number) => ({
		task: { taskId: 'task-1', state: 'FAILURE', creditsConsumed, record: {} },
	});

	it('with its task, and with all the time', () => {
		const { entry } = after({});
		expect(entry).toMatchObject({ state: 'created', taskId: 'task-1' });
		expect(entry).not.toHaveProperty('end');
		expect(entry).not.toHaveProperty('until');
	});

	it('with another task if its task failed, whose id is kept', () => {
		const { journal, entry } = after(failed(0));
		expect(entry).toMatchObject({ state: 'free', failed: ['task-1'] });
		expect(journal.taskIds()).toEqual(['task-1']);
	});

	it('not if the failed task was charged', () => {
		expect(after(failed(8)).entry).toMatchObject({ end: 'error', taskId: 'task-1' });
	});
});

it.each([
	['', { isToolExecution: () => true }],
	[', in a version of n8n that does not tell', { isToolExecution: undefined, getNextRunIndex: 0 }],
])('a call of a tool that n8n has supplied finds nothing of a call beside it%s', (_where, ways) => {
	const context = Object.assign(contextOf(), ways) as Context;
	const [first, second] = [new Journal(context), new Journal(context)];
	first.created(FIRST, task());
	expect(second.entryOf(FIRST)).toEqual({ state: 'free' });
});

const UNREADABLE = [
	[],
	'x',
	{},
	{ runs: {} },
	{ version: '1', runs: {} },
	{ version: 2, runs: {} },
];
it.each(UNREADABLE)('what another version has stored (%j) is refused, and left as it is', (odd) => {
	const context = contextOf();
	Object.assign(context.getContext('node'), { journal: odd });
	expect(() => new Journal(context)).toThrow('started with another version of this package');
	expect(context.getContext('node').journal).toEqual(odd);
});

describe('a pause that the service asks for', () => {
	virtualTime(1_000_000);

	it('runs out, and is not less than nothing then', () => {
		const context = contextOf();
		notePause(context, 5000);
		expect(pauseLeft(context)).toBe(5000);
		time.setWall(1_006_000);
		expect(pauseLeft(context)).toBe(0);
	});
});
