import type { IDataObject } from 'n8n-workflow';

import { Journal } from '../../../nodes/MediaGeneration/create/journal';
import { executeContext } from '../../workflow/engine';

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
	it('woken, and may create what was announced, as may another try of that turn', () => {
		const context = created();
		new Journal(context).fallAsleep([SECOND], NO_LIMIT);
		const woken = contextOf({}, context);
		for (const beginning of ['woken', 'again']) {
			const journal = new Journal(woken);
			expect([journal.beginning, journal.isLater]).toEqual([beginning, true]);
			expect(journal.beginTurn()).toEqual(new Set(['1.0']));
			journal.takeUp();
		}
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
	it.each<[string, Given]>([
		['another prompt', { parameters: { prompt: 'A harbour' } }],
		['another model', { parameters: { ...PROMPT, model: 'vendor/other' } }],
		['another input', { items: [{ id: 7 }, {}] }],
		['another field', { parameters: { ...PROMPT, options: { additionalInput: '{"seed":7}' } } }],
	])('as another task with %s, and the journal still names the task', (_what, given) => {
		const before = created();
		const journal = new Journal(contextOf({ ...given, executionId: '2' }, before));
		expect(journal.entryOf(FIRST)).toEqual({ state: 'free' });
		expect(journal.taskIds()).toEqual(['task-1']);
	});

	it.each<IDataObject>([
		{ timeout: 60 },
		{ suspendAfter: 0 },
		{ splitResults: true },
		{ maxInFlight: 1 },
	])('as the same with another option that is no part of the request: %j', (options) => {
		const changed = { parameters: { ...PROMPT, options }, executionId: '2' };
		expect(knownBy(changed, created())).toBe('task-1');
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
