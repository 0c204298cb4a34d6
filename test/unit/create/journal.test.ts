import type { IDataObject } from 'n8n-workflow';

import { Journal } from '../../../nodes/MediaGeneration/create/journal';
import type { TaskEntry } from '../../../nodes/MediaGeneration/create/taskEntry';
import { InputFile } from '../../../nodes/MediaGeneration/plan/inputFile';
import type { RunPlan } from '../../../nodes/MediaGeneration/plan/planRun';
import type { ItemPlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import { parseTaskRecord } from '../../../nodes/MediaGeneration/service/taskRecord';
import { executeContext } from '../../workflow/engine';
import { HOUR, MINUTE } from '../../durations';
import { EPOCH } from '../../virtualTime';
import { FakeClock, unansweredIn } from '../support';
import { createdEntry, entryOf, plan, readPlan } from './entries';

afterEach(() => jest.restoreAllMocks());

type Context = ReturnType<typeof executeContext>;

interface Given {
	executionId?: string;
	runIndex?: number;
	/** How often n8n tries the node. */
	tries?: number;
	binary?: Record<string, { data: string; mimeType: string }>;
}

/** The node in an execution, with what n8n has stored of it. */
function contextOf(given: Given = {}, stored?: Context): Context {
	const { executionId = '1', runIndex = 0, tries = 1, binary } = given;
	const context = executeContext({
		node: { parameters: {}, retryOnFail: tries > 1, maxTries: tries },
		items: [{ json: {}, ...(binary && { binary }) }],
	});
	context.getExecutionId = () => executionId;
	Object.assign(context, { runIndex });
	const kept = JSON.stringify(stored?.getContext('node') ?? {});
	Object.assign(context.getContext('node'), JSON.parse(kept) as IDataObject);
	return context;
}

const planned = (items: ItemPlan[], more: Partial<RunPlan> = {}) => ({
	...{ items, warnings: [], maxInFlight: 10, ifSomeFail: 'keep' as const },
	...{ suspendAfterMs: 5 * MINUTE, limitAt: Infinity, endsAt: Infinity },
	...more,
});

const task = (taskId = 'task-1') => ({
	taskId,
	record: { taskId },
	sent: { model: 'vendor/model', input: { prompt: 'A lighthouse' } },
});

const two = () => [plan(), plan({ itemIndex: 1 })];

/** A node that has planned two items and created the first task, in what state then? */
function begun(given: Given = {}, then: (journal: Journal) => void = () => undefined): Context {
	const context = contextOf(given);
	const journal = new Journal(context);
	journal.plan(planned(two()));
	journal.created(journal.entries[0]!, task());
	then(journal);
	return context;
}

const asleep = (journal: Journal) => journal.fallAsleep(Date.now() + MINUTE);
const of = (journal: Journal) => journal.entries.map(({ state, taskId }) => taskId ?? state);

describe('a run begins', () => {
	it.each<[string, Context, Given, Partial<Journal>]>([
		['first', contextOf(), {}, { isLater: false }],
		['woken', begun({}, asleep), {}, { isLater: true }],
		['killed', begun({}, asleep), { executionId: '2' }, { isLater: true }],
		['again', begun(), {}, { isLater: false }],
		['retried', begun(), { executionId: '2' }, { isLater: false }],
		// A loop.
		['first', begun(), { runIndex: 1 }, { isLater: false }],
	])('%s', (beginning, stored, given, more) => {
		const journal = new Journal(contextOf(given, stored));
		expect(journal).toMatchObject({ beginning, ...more });
		expect(of(journal)).toEqual(beginning === 'first' ? [] : ['task-1', 'free']);
	});

	it.each([
		['woken', '1'],
		['killed', '2'],
	])('%s once more, if the try before did not take the run up', (beginning, executionId) => {
		const later = contextOf({ executionId }, begun({}, asleep));
		for (let tries = 0; tries < 2; tries++) {
			const journal = new Journal(later);
			expect(journal).toMatchObject({ beginning, isLater: true });
		}
	});

	it('again where the try before has taken the run up', () => {
		const woken = contextOf({}, begun({}, asleep));
		new Journal(woken).takeUp();
		expect(new Journal(woken)).toMatchObject({ beginning: 'again', isLater: true });
	});

	it('in another execution with a time limit of its own', () => {
		new FakeClock(1000);
		const context = begun({}, asleep);
		new FakeClock(9000);
		expect(new Journal(contextOf({ executionId: '2' }, context)).startedAt).toBe(9000);
	});
});

it('another execution reads again what left with a link, and keeps what was downloaded', () => {
	const picture = { data: '', mimeType: 'image/png' };
	const link = 'https://m.example.com/1.png';
	const success = parseTaskRecord('task-1', { state: 'SUCCESS', resultUrls: [link] });
	const downloads = plan({ output: { download: true, split: false, binaryField: 'data' } });
	const ended = { end: 'result' as const, readAt: 4, task: success };
	const stored = begun({}, (journal) => {
		journal.entries = [
			createdEntry({ ...ended }),
			createdEntry({ ...ended, plan: downloads, files: [picture] }),
		];
	});
	const { entries } = new Journal(contextOf({ executionId: '2' }, stored));
	expect(entries.map(({ end, task }) => [end, task?.state])).toEqual([
		[undefined, undefined],
		['result', 'SUCCESS'],
	]);
});

describe('a run goes on from', () => {
	const retried = (execution: string, turn: number, claimant: string) => ({
		execution,
		turn,
		claimant,
	});
	const by = (executionId: string, stored: Context, retryOf?: string) => {
		const context = contextOf({ executionId }, stored);
		Object.assign(context, { additionalData: { hooks: { retryOf } } });
		return context;
	};

	it('the turn of the execution that it retries, and of each retry before that', () => {
		const first = by('2', begun({}, asleep), '1');
		const journal = new Journal(first);
		expect(journal.before).toEqual([retried('1', 1, '2')]);
		journal.takeUp();
		asleep(journal);
		expect(new Journal(by('3', first, '2')).before).toEqual([
			retried('1', 1, '2'),
			retried('2', 2, '3'),
		]);
	});

	it('the execution that wrote the journal, and a retry that was killed before it wrote anything', () => {
		expect(new Journal(by('3', begun({}, asleep), '2')).before).toEqual([
			retried('1', 1, '2'),
			retried('2', 1, '3'),
		]);
	});

	it('nobody else when it has ordered something, and needs the rows of those turns no more', () => {
		const context = by('2', begun({}, asleep), '1');
		const journal = new Journal(context);
		journal.sending(journal.entries[1]!, 0.08);
		expect([journal.before, journal.rows]).toEqual([[], [['1', 1]]]);
		journal.forget(journal.entries[1]!);
		expect([journal.before.length, journal.rows]).toEqual([1, []]);
	});
});

describe('what is known of the tasks', () => {
	it('names all ids, of failed tasks as well, and tells its own', () => {
		const journal = new Journal(contextOf());
		journal.entries = [
			createdEntry({ taskId: 'c', failed: ['a', 'b'] }),
			entryOf({ plan: readPlan({ taskId: 'd' }), state: 'created', taskId: 'd' }),
		];
		expect(journal.taskIds()).toEqual(['a', 'b', 'c', 'd']);
		expect(journal.ownTaskIds()).toEqual(['a', 'b', 'c']);
	});

	it.each<[string, TaskEntry[], boolean]>([
		['nothing is ordered', [entryOf()], false],
		['an order was sent', [entryOf({ state: 'sent' })], true],
		['a task was created', [createdEntry()], true],
		['a task has failed', [entryOf({ failed: ['task-1'] })], true],
	])('%s: whether the run is begun', (_what, entries, isBegun) => {
		const journal = new Journal(contextOf());
		journal.entries = entries;
		expect(journal.isBegun).toBe(isBegun);
	});

	it('is an order before it leaves, a task the moment its id is known, and nothing where there is certainly no task', () => {
		const journal = new Journal(contextOf());
		journal.plan(planned(two()));
		const [first, second] = journal.entries;
		journal.sending(first!, 0.08);
		journal.sending(second!, undefined);
		expect(unansweredIn(journal)).toEqual([0, 1]);
		journal.created(first!, task());
		journal.forget(second!);
		expect([of(journal), unansweredIn(journal)]).toEqual([['task-1', 'free'], []]);
	});
});

describe('what n8n stores', () => {
	interface Kept extends IDataObject {
		runs: Record<number, { entries: IDataObject[]; common: IDataObject; settings?: IDataObject }>;
	}
	const keptOf = (context: Context) =>
		(JSON.parse(JSON.stringify(context.getContext('node'))) as { journal: Kept }).journal;
	/** What is stored of a run with these entries. */
	function stored(entries: TaskEntry[], then: (journal: Journal) => void = asleep) {
		const context = contextOf();
		const journal = new Journal(context);
		journal.plan(planned([]));
		journal.entries = entries;
		then(journal);
		return { context, kept: keptOf(context), run: keptOf(context).runs[0]! };
	}

	it('is written when n8n stores the execution, and says what is known then', () => {
		const context = contextOf();
		const journal = new Journal(context);
		journal.plan(planned(two()));
		journal.created(journal.entries[1]!, task('late'));
		expect(keptOf(context).runs[0]!.entries[1]).toMatchObject({ taskId: 'late' });
	});

	it('has what all plans have in common once', () => {
		const { run, context } = stored([entryOf(), entryOf({ itemIndex: 1 })]);
		expect(run.common).toMatchObject({ kind: 'create', model: 'vendor/model', timeoutMs: 600_000 });
		expect(run.entries[0]?.plan).toEqual({ itemIndex: 0, input: { prompt: 'A lighthouse' } });
		expect(new Journal(contextOf({}, context)).entries[1]?.plan).toEqual(
			JSON.parse(JSON.stringify(plan({ itemIndex: 1 }))),
		);
	});

	it('has the input of a task once, unless the task may be ordered again', () => {
		const more = plan({ retryFailed: 1 });
		const { run } = stored([
			createdEntry(),
			createdEntry({ plan: more }),
			createdEntry({ plan: more, failed: ['a'] }),
			// It waits for its pause.
			entryOf({ plan: more, failed: ['a'], sent: { input: {} } }),
			entryOf({ state: 'sent' }),
		]);
		const inputs = run.entries.map((entry) => Object.keys(entry.plan ?? {}).includes('input'));
		expect(inputs).toEqual([false, true, false, true, true]);
	});

	it('has no record of a task that is not at its end, and of another task what its item does not say itself', () => {
		const sent = { model: 'vendor/model', input: { prompt: 'p' } };
		const record = { taskId: 'task-1', prompt: 'p', input: { prompt: 'p' }, seed: 7 };
		const uri = `data:image/png;base64,${'A'.repeat(5000)}`;
		const task = { taskId: 'task-1', creditsConsumed: null, record };
		const { run, kept } = stored([
			createdEntry({ sent, task: { ...task, state: 'PENDING' } }),
			createdEntry({ sent, record, task: { ...task, state: 'SUCCESS', resultUrls: [uri] } }),
		]);
		expect(run.entries).toMatchObject([
			{ task: { state: 'PENDING', record: {} } },
			{ task: { state: 'SUCCESS', record: { prompt: 'p', seed: 7 } } },
		]);
		expect(run.entries[1]).not.toHaveProperty('record');
		expect(run.entries[1]).not.toHaveProperty('task.record.input');
		expect(JSON.stringify(kept).length).toBeLessThan(2000);
	});

	it('is ids and states after the end', () => {
		const files = [{ data: '', mimeType: 'image/png' }];
		const record = { taskId: 'task-1', state: 'SUCCESS', record: { prompt: 'long' } } as never;
		const { run } = stored(
			[createdEntry({ task: record, files, failed: ['a'], record: { a: 1 } })],
			(journal) => (journal.isEnded = true),
		);
		expect(run.entries).toEqual([
			{
				...{ itemIndex: 0, taskIndex: 0, state: 'created', taskId: 'task-1', failed: ['a'] },
				task: {
					taskId: 'task-1',
					state: 'SUCCESS',
					creditsConsumed: null,
					record: {},
					resultUrls: [],
				},
			},
		]);
		expect([run.settings, run.common]).toEqual([undefined, undefined]);
	});

	it.each<[string, number, (journal: Journal) => void]>([
		['asleep', 800, asleep],
		['after the end', 150, (journal) => (journal.isEnded = true)],
	])('of a thousand items %s is %d bytes an item at most', (_when, most, then) => {
		const entries = Array.from({ length: 1000 }, (_, itemIndex) => {
			const record = { taskId: `task-${itemIndex}`, state: 'PENDING', prompt: 'p'.repeat(200) };
			return createdEntry({
				...{ itemIndex, taskIndex: 0, taskId: record.taskId, plan: plan({ itemIndex }) },
				...{ record: { taskId: record.taskId }, createdAt: EPOCH, until: EPOCH, costUsd: 0.08 },
				sent: { model: 'vendor/model', input: { prompt: 'p'.repeat(200) } },
			});
		});
		expect(JSON.stringify(stored(entries, then).kept).length / 1000).toBeLessThan(most);
	});

	it('is of the present run of the node alone', () => {
		const context = contextOf({ runIndex: 1 }, begun());
		new Journal(context);
		expect(Object.keys(keptOf(context).runs)).toEqual(['1']);
	});

	it('has the settings of the run, with limits that JSON does not know', () => {
		const context = contextOf();
		const settings = { maxInFlight: 3, ifSomeFail: 'stop' as const };
		new Journal(context).plan(planned([], settings));
		const later = new Journal(contextOf({}, context)).settings;
		expect(later).toMatchObject({ ...settings, limitAt: Infinity, suspendAfterMs: 5 * MINUTE });
		expect(later.endsAt).toBe(Infinity);
	});

	it('has a pause that the service asks for, for the next round of a loop, too', () => {
		jest.spyOn(Date, 'now').mockReturnValue(EPOCH);
		new FakeClock();
		const context = begun(
			{},
			(journal) => (journal.queue = { pausedUntil: HOUR, breaker: { inVain: 2, doubts: 2 } }),
		);
		const again = new Journal(contextOf({}, context)).queue;
		expect(again).toMatchObject({ pausedUntil: HOUR, breaker: { inVain: 2, doubts: 2 } });
		const next = new Journal(contextOf({ runIndex: 1 }, context)).queue;
		expect([next.pausedUntil, next.breaker]).toEqual([HOUR, undefined]);
	});
});

describe('the files of a stored plan', () => {
	const picture = { data: 'iVBORw==', mimeType: 'image/png' };
	const withFile = (more = {}) =>
		plan({ input: { image_url: new InputFile('data', picture) } as never, ...more });
	const later = (entry: TaskEntry, binary?: Given['binary']) => {
		const context = contextOf();
		const journal = new Journal(context);
		journal.entries = [entry];
		asleep(journal);
		return new Journal(contextOf({ ...(binary && { binary }) }, context)).entries[0]!;
	};
	const inputOf = ({ plan }: TaskEntry) => (plan?.kind === 'create' ? plan.input : undefined);

	it.each([
		['that is to be ordered', entryOf({ plan: withFile() })],
		['that may be ordered again', createdEntry({ plan: withFile({ retryFailed: 1 }) })],
	])('are those of the input for a task %s', (_what, entry) => {
		const file = inputOf(later(entry, { data: picture }))?.image_url;
		expect(file).toBeInstanceOf(InputFile);
	});

	it('that are gone fail what is to be ordered', () => {
		const entry = later(entryOf({ plan: withFile() }));
		expect(entry).toMatchObject({ end: 'error', state: 'free' });
	});

	it('that are gone end no task that is created, which is not ordered again then', () => {
		const entry = later(createdEntry({ plan: withFile({ retryFailed: 1 }) }));
		expect(entry).toMatchObject({ state: 'created', plan: { retryFailed: 0 } });
		expect(entry.end).toBeUndefined();
	});
});

it('a call of a tool that n8n has supplied finds nothing of a call beside it', () => {
	const context = Object.assign(contextOf(), { isToolExecution: () => true }) as Context;
	const [first, second] = [new Journal(context), new Journal(context)];
	first.entries = [createdEntry()];
	expect(second.entries).toEqual([]);
	expect(new Journal(context)).toMatchObject({ beginning: 'first', entries: [] });
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
