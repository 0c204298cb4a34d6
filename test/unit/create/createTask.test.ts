import { createRunExecutionData, ManualExecutionCancelledError, UserError } from 'n8n-workflow';

import { AccountLimits } from '../../../nodes/MediaGeneration/create/accountLimits';
import { CreateQueue } from '../../../nodes/MediaGeneration/create/createQueue';
import { TaskCreator } from '../../../nodes/MediaGeneration/create/createTask';
import { internalsOf } from '../../../nodes/MediaGeneration/n8n/internals';
import { Journal } from '../../../nodes/MediaGeneration/create/journal';
import { positionOf, type TaskEntry } from '../../../nodes/MediaGeneration/create/taskEntry';
import { InputFile } from '../../../nodes/MediaGeneration/plan/inputFile';
import type { CreatePlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import { Turn } from '../../../nodes/MediaGeneration/run/turn';
import {
	type HttpResponse,
	RequestGap,
	ServiceClient,
	type Transport,
} from '../../../nodes/MediaGeneration/service/client';
import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { settled } from '../../../nodes/MediaGeneration/shared/promises';
import { clock, Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { API_KEY, executeContext, SERVICE } from '../../workflow/engine';
import { caught, FakeClock, unansweredIn } from '../support';
import { tick } from '../../virtualTime';
import { entryOf, plan } from './entries';
import { HOUR, MINUTE, SECOND } from '../../durations';

type Answer = Partial<HttpResponse> | Error;
/** An answer, or what makes one for the nth request. */
type Service = Answer | ((nth: number, now: number) => Answer | Promise<Answer>);

const accepted: Answer = { body: '{"taskId":"task-1"}' };
const refused: Answer = { statusCode: 429 };
const asksForAMinute: Answer = { statusCode: 429, headers: { 'retry-after': '60' } };

interface Given {
	/** *Sleep After*; Infinity for a run that is held. */
	suspendAfterMs?: number;
	/** The row of the turn: what happens when an order is noted. */
	note?: (position: string) => Promise<void>;
}

/** A creator whose nth request is answered by the nth answer, and by the last one from then on. */
const creating = (...answers: Service[]) => creatingWith({}, ...answers);

function creatingWith({ suspendAfterMs = Infinity, note }: Given, ...answers: Service[]) {
	const clock = new FakeClock();
	const stop = new AbortController();
	const context = executeContext();
	const journal = new Journal(context);
	const entryFor = (item: CreatePlan): TaskEntry => {
		const known = journal.entries.find((entry) => positionOf(entry) === positionOf(item));
		if (known) return known;
		const entry = entryOf({ plan: item });
		journal.entries.push(entry);
		return entry;
	};
	const stateOf = (item = plan()) => entryFor(item).state;
	/** What happened, in this order. */
	const events: string[] = [];
	/** When each request was sent, and what the journal knew at that moment. */
	const sent: Array<{ at: number; known: unknown }> = [];
	const transport: Transport = async () => {
		const next = answers[Math.min(sent.length, answers.length - 1)] ?? accepted;
		sent.push({ at: clock.now(), known: stateOf() });
		events.push('sent');
		const answer = typeof next === 'function' ? await next(sent.length, clock.now()) : next;
		if (answer instanceof Error) throw answer;
		return { statusCode: 200, headers: {}, body: '', ...answer };
	};
	const client = new ServiceClient(transport, SERVICE, [API_KEY]);
	const limits = new AccountLimits(() => 0.5);
	const stretch = { beganAt: 0, isStored: false, startedAt: 0 };
	const began = { startedAt: 0, runStartedAt: 0, hasSlept: false, isWatched: false };
	const turn = new Turn({ ...began, suspendAfterMs, stretch, signal: stop.signal });
	const queue = new CreateQueue(
		limits,
		new RequestGap(),
		turn,
		stop.signal,
		{},
		{
			random: () => 1,
		},
	);
	const row = {
		async note(position: string) {
			await note?.(position);
			events.push(`noted ${position}`);
		},
		async withdraw(position: string) {
			if (events.includes(`noted ${position}`)) events.push(`withdrawn ${position}`);
			await Promise.resolve();
		},
	};
	/** A creator beside the same queue and journal. */
	const creatorOf = (inContext = context, onFailure: () => void = () => events.push('failed')) => {
		inContext.getExecutionCancelSignal = () => stop.signal;
		return new TaskCreator(inContext, client, queue, journal, row, turn, onFailure);
	};
	let creator: TaskCreator | undefined;
	/** @returns the id of the task; undefined if there is none */
	const create = async (item = plan(), until?: number, deadline?: number, by?: TaskCreator) => {
		creator ??= creatorOf();
		const entry = entryFor(item);
		const isCreated = await (by ?? creator).create(entry, item, until, deadline);
		return isCreated ? entry.taskId : undefined;
	};
	const later = { clock, stop, context, journal, queue, turn, sent, events };
	return { ...later, create, creatorOf, stateOf, entryFor };
}

const errorOf = async ({ create }: Pick<ReturnType<typeof creating>, 'create'>, item = plan()) =>
	await caught(async () => await create(item));

it("creates a task with one request, writes it down, and names it in n8n's log at once, for a process that is killed later", async () => {
	const { context, create, entryFor, sent } = creating(accepted);
	const info = jest.spyOn(context.logger, 'info');
	const item = plan({ itemIndex: 7 });
	expect(await create(item)).toBe('task-1');
	expect(entryFor(item)).toMatchObject({ state: 'created', taskId: 'task-1' });
	expect(sent).toHaveLength(1);
	// The item is counted from 1, as in the panel.
	expect(info.mock.calls).toEqual([[expect.stringMatching(/created task task-1 \(.*item 8\)$/)]]);
});

it('writes down that a request was sent before it leaves, each time', async () => {
	const { create, sent } = creating(refused, refused, accepted);
	await create(plan());
	expect(sent.map(({ known }) => known)).toEqual(['sent', 'sent', 'sent']);
});

/** A creator of a run that n8n does not tell of a stop: it asks n8n's store. */
function deaf(stored: () => ReturnType<typeof createRunExecutionData> | undefined) {
	const setup = creating(accepted);
	const { context, clock } = setup;
	// As on a worker.
	context.getMode = () => 'webhook';
	internalsOf(context).additionalData!.hooks!.handlers!.sendChunk = [() => undefined];
	context.getExecutionDataById = async () => stored();
	const by = setup.creatorOf();
	clock.pass(30 * SECOND);
	const create = async (item = plan(), until = Infinity) =>
		await setup.create(item, until, Infinity, by);
	return { ...setup, create };
}

it('sends nothing and ends the queue where n8n has stored a stop of which it does not tell', async () => {
	const error = new ManualExecutionCancelledError('1');
	const { create, sent, stateOf } = deaf(() => createRunExecutionData({ resultData: { error } }));
	await expect(create()).rejects.toBeInstanceOf(Stopped);
	expect(await create(plan({ itemIndex: 1 }))).toBeUndefined();
	expect(sent).toHaveLength(0);
	expect(stateOf()).toBe('free');
});

describe('the row of the turn', () => {
	it('has an order before the request leaves, each time', async () => {
		const { create, events } = creating(refused, accepted);
		await create(plan({ itemIndex: 3, taskIndex: 2 }));
		const once = ['noted 3.2', 'sent'];
		expect(events).toEqual([...once, 'withdrawn 3.2', ...once]);
	});

	it('keeps an order of which nobody knows whether it was taken', async () => {
		const setup = creating({ statusCode: 504 }, accepted);
		await errorOf(setup);
		expect(setup.events.slice(0, 2)).toEqual(['noted 0.0', 'sent']);
		expect(setup.events).not.toContain('withdrawn 0.0');
	});

	it('that cannot be written keeps the order back, and ends the turn; the item has the next one', async () => {
		const note = async () => await Promise.reject(new Error('No database'));
		const setup = creatingWith({ note, suspendAfterMs: HOUR }, accepted);
		expect(await setup.create()).toBeUndefined();
		expect([setup.sent, setup.stateOf(), setup.turn.isOver]).toEqual([[], 'free', true]);
		expect(setup.queue.limits.underWay).toBe(0);
	});

	it.each<[string, (setup: ReturnType<typeof creating>) => void]>([
		['the turn has ended', ({ turn }) => turn.end()],
		['the run was closed', ({ queue }) => queue.close()],
	])(
		'has an order no more that is not sent, because %s while it was written',
		async (_what, happens) => {
			const note = async () => happens(setup);
			const setup = creatingWith({ note, suspendAfterMs: HOUR }, accepted);
			expect(await setup.create()).toBeUndefined();
			expect([setup.sent, setup.stateOf(), setup.events]).toEqual([
				[],
				'free',
				['noted 0.0', 'withdrawn 0.0'],
			]);
			expect(setup.queue.limits.underWay).toBe(0);
		},
	);

	it('has an order that is not sent, because the execution was stopped while it was written', async () => {
		const note = async () => setup.stop.abort();
		const setup = creatingWith({ note }, accepted);
		await expect(setup.create()).rejects.toBeInstanceOf(Stopped);
		expect([setup.sent, setup.stateOf()]).toEqual([[], 'free']);
	});
});

it.each([
	['its turn', 999, Infinity],
	['its answer', Infinity, 999],
])(
	'sends nothing where it is too late for %s, and keeps no place',
	async (_what, until, deadline) => {
		const { create, queue, clock, sent, stateOf } = creating(accepted);
		clock.pass(1000);
		expect(await create(plan(), until, deadline)).toBeUndefined();
		expect(sent).toHaveLength(0);
		expect(stateOf()).toBe('free');
		expect(queue.limits.underWay).toBe(0);
	},
);

it('sends nothing where it has become too late while n8n was asked for a stop', async () => {
	const { create, sent, stateOf } = deaf(() => {
		clock.now = () => HOUR;
		return undefined;
	});
	expect(await create(plan(), 31 * SECOND)).toBeUndefined();
	expect(sent).toHaveLength(0);
	expect(stateOf()).toBe('free');
});

it('waits for no longer than it may be late, where the service asks to', async () => {
	const setup = creating(asksForAMinute, accepted);
	const late = await caught(async () => await setup.create(plan(), 30_000));
	expect(late).toMatchObject({ statusCode: 429 });
	// Also without a 'Timeout'.
	const says = '60 s more, which is longer than this node waits';
	expect(late).toHaveProperty('description', expect.stringContaining(says));
	expect(setup.sent).toHaveLength(1);
	expect(setup.clock.now()).toBeLessThan(30_000);
});

it('what was certainly not taken is sent again', async () => {
	const { create, sent } = creating(refused, refused, accepted);
	expect(await create(plan())).toBe('task-1');
	expect(sent).toHaveLength(3);
});

it('what is never taken is given up after the timeout, and what was not sent says so', async () => {
	const setup = creating(refused);
	const items = Array.from({ length: 10 }, (_, itemIndex) => plan({ itemIndex }));
	const errors = await Promise.all(items.map(async (item) => await errorOf(setup, item)));
	expect(setup.clock.now()).toBeGreaterThan(10 * MINUTE);
	expect(setup.clock.now()).toBeLessThan(10.6 * MINUTE);
	const notSent = errors.filter(({ message }) => message.startsWith('This item was not sent. '));
	// A refused order goes before the others, so few are ever sent.
	expect(notSent).toHaveLength(8);
	expect(unansweredIn(setup.journal)).toEqual([]);
});

describe('what may have been taken', () => {
	it.each<[string, Answer]>([
		['no answer', new ServiceError('noAnswer', 'No answer')],
		['HTTP 500', { statusCode: 500 }],
		['a web page', { body: '<html>' }],
		['no task id', { body: '{}' }],
	])('(%s) is sent once, never again, and gives its place back', async (_what, answer) => {
		const setup = creating(answer, accepted);
		const known = {
			message: expect.stringContaining('not known whether the task was created') as string,
			description: expect.stringContaining('may be billed once') as string,
		};
		const task = { model: 'vendor/model', input: { prompt: 'A lighthouse' } };
		expect(await errorOf(setup)).toMatchObject({ ...known, task });
		expect(setup.stateOf()).toBe('sent');
		expect(setup.sent).toHaveLength(1);
		expect(await setup.create(plan({ itemIndex: 1 }))).toBeDefined();
	});

	it('is what ends with an error that nobody has foreseen, too', async () => {
		const setup = creating(new Error('What'), accepted);
		expect(await errorOf(setup)).toMatchObject({ message: 'What' });
		expect([setup.sent.length, setup.stateOf()]).toEqual([1, 'sent']);
	});
});

describe('what the service did not accept', () => {
	const STATUSES = [301, 307, 308, 400, 401, 402, 403, 404, 413, 422];
	it.each(STATUSES)('(HTTP %d) is an error that leaves no doubt behind', async (statusCode) => {
		const setup = creating({ statusCode });
		expect(await errorOf(setup)).toMatchObject({ name: 'ServiceError', statusCode });
		expect(setup.sent).toHaveLength(1);
		expect(setup.stateOf()).toBe('free');
	});

	it('is told before another item is let in', async () => {
		const { queue, context, create, creatorOf, sent } = creating({ statusCode: 400 }, accepted);
		// Two creates may be under way at first. This is one of them.
		queue.limits.send(0);
		const creator = creatorOf(context, () => queue.close());
		const items = [plan(), plan({ itemIndex: 1 })];
		const by = async (item: CreatePlan) => await create(item, Infinity, Infinity, creator);
		const ends = items.map(async (item) => await settled(by(item)));
		expect((await Promise.all(ends))[1]).toEqual({ value: undefined });
		expect(sent).toHaveLength(1);
	});

	const blocked = (prompt: string) => ({
		statusCode: 403,
		body: JSON.stringify({ error: `The prompt '${prompt}' was blocked` }),
	});

	it('is no verdict on the key also where an earlier try of the node has created a task', async () => {
		const { journal, entryFor, create } = creating({ statusCode: 401 }, accepted);
		journal.created(entryFor(plan()), { taskId: 'task-1', record: {}, sent: {} });
		expect(await create(plan({ itemIndex: 1 }))).toBe('task-1');
	});

	const NO_CREDITS = { error: { code: 'insufficient_quota', message: 'Check your billing' } };
	it.each<[string, Answer, number]>([
		['402', { statusCode: 402 }, 1],
		['404', { statusCode: 404 }, 3],
		['404 of a web server', { statusCode: 404, body: '<html>Not Found</html>' }, 1],
		['403', { statusCode: 403, body: '{"error":"Forbidden"}' }, 3],
		['403 for each prompt', blocked('a cat'), 3],
		['400 of a wrong key', { statusCode: 400, body: '{"message":"Invalid API key"}' }, 5],
		['401', { statusCode: 401 }, 1],
		['405', { statusCode: 405 }, 1],
		['308', { statusCode: 308 }, 1],
		['429 of an empty account', { statusCode: 429, body: JSON.stringify(NO_CREDITS) }, 1],
		['403 of an empty account', { statusCode: 403, body: '{"error":"out_of_credits"}' }, 1],
		['402 in the body of a 200', { body: '{"code":402,"msg":"No credits left"}' }, 1],
	])('(HTTP %s) on every item ends the batch after %j: %d', async (_what, answer, requests) => {
		const setup = creating(answer);
		const errors: Error[] = [];
		for (let itemIndex = 0; itemIndex < 40; itemIndex++) {
			errors.push(await errorOf(setup, plan({ itemIndex })));
		}
		expect(setup.sent).toHaveLength(requests);
		expect(setup.clock.now()).toBeLessThan(5_000);
		const notSent = errors.slice(requests).map(({ message }) => message);
		expect(new Set(notSent)).toEqual(
			new Set([`This item was not sent. ${errors.at(requests - 1)?.message}`]),
		);
	});

	/** The answers to a batch, two under way at once as far as the queue lets them. */
	async function batchOf(answer: (nth: number) => Answer, count = 40) {
		const setup = creating((nth) => answer(nth));
		const ends = Array.from({ length: count }, async (_, itemIndex) => {
			return await settled(setup.create(plan({ itemIndex })));
		});
		await Promise.all(ends);
		return setup;
	}

	const wrongKey = (nth: number) => ({
		statusCode: 400,
		body: JSON.stringify({ message: `Invalid API key (request 7f3a${nth})` }),
	});
	it('five alike end a batch, whatever they say: no more than these are sent', async () => {
		expect((await batchOf(wrongKey)).sent).toHaveLength(5);
	});

	it.each<[string, (nth: number) => Answer]>([
		['differ in text', (nth) => ({ statusCode: 400, body: `"No ${'x'.repeat(nth)}"` })],
		['differ in status', (nth) => ({ statusCode: nth % 2 ? 400 : 422, body: '"No"' })],
		['are not in a row', (nth) => (nth % 5 ? wrongKey(0) : { statusCode: 500 })],
	])('five end nothing that %s', async (_what, answer) => {
		expect((await batchOf(answer, 12)).sent).toHaveLength(12);
	});

	it('by the page of a firewall says nothing of the key: other items are sent', async () => {
		const setup = creating({ statusCode: 403, body: '<html>Blocked</html>' }, accepted);
		expect(await errorOf(setup)).toMatchObject({
			description: expect.stringContaining('may come from a firewall') as string,
		});
		expect(await setup.create(plan({ itemIndex: 1 }))).toBe('task-1');
	});

	it('because n8n itself refused to send it, leaves no doubt behind', async () => {
		const setup = creating(new UserError('Domain not allowed'));
		expect(await errorOf(setup)).toMatchObject({ message: 'Domain not allowed' });
		expect(setup.stateOf()).toBe('free');
	});
});

/** A creator whose create gets no answer before `answer` is called, and what it writes to the log. */
function unanswered() {
	let answer: (answer: Answer) => void = () => undefined;
	const setup = creating(async () => await new Promise<Answer>((resolve) => (answer = resolve)));
	const logged: string[] = [];
	for (const level of ['info', 'warn'] as const) {
		jest.spyOn(setup.context.logger, level).mockImplementation((...[line]) => {
			logged.push(`${level}: ${line}`);
		});
	}
	return { ...setup, logged, answer: (given: Answer) => answer(given) };
}

describe('a stop of the execution while a create is under way', () => {
	/** A create that is stopped on its way. */
	async function stopped() {
		const setup = unanswered();
		const { create, clock, stop } = setup;
		/** Ends the time after the stop. */
		let graceIsOver: () => void = () => undefined;
		clock.sleep = async (ms) => {
			clock.sleeps.push(ms);
			await new Promise<void>((resolve) => (graceIsOver = resolve));
		};
		const outcome = settled(async () => await create(plan({ itemIndex: 4 })));
		await tick();
		stop.abort();
		return { ...setup, outcome, graceIsOver };
	}

	it('waits for its answer, writes it down and names it in the log', async () => {
		const { outcome, answer, journal, logged, clock } = await stopped();
		await tick();
		answer(accepted);
		expect(await outcome).toEqual({ value: 'task-1' });
		expect(journal.taskIds()).toEqual(['task-1']);
		expect(logged).toEqual([
			expect.stringMatching(
				/^warn: Media: created task task-1 \(execution 1, item 5\), after the execution was stopped$/,
			),
		]);
		expect(new Set(clock.sleeps)).toEqual(new Set([10_000]));
	});

	const [noAnswer, unreachable] = (['noAnswer', 'unreachable'] as const).map(
		(kind) => new ServiceError(kind, 'No answer'),
	);
	const open = 'sent, and it is not known whether a task was created: No answer';
	it.each<[string, Answer, string, number[], string[]]>([
		['is named when its answer comes', accepted, 'created task task-1', [], ['task-1']],
		['may have created a task, says so in the log', noAnswer!, open, [4], []],
		['has created none, says so in the log', unreachable!, 'created no task: No answer', [], []],
	])(
		'that outlasts the time after a stop ends the item, and where it %s',
		async (_what, answered, text, unanswered, created) => {
			const { outcome, answer, journal, logged, graceIsOver } = await stopped();
			graceIsOver();
			expect(await outcome).toMatchObject({ error: expect.any(Stopped) as Stopped });
			expect([unansweredIn(journal), journal.taskIds(), logged]).toEqual([[4], [], []]);
			answer(answered);
			await tick();
			expect([unansweredIn(journal), journal.taskIds()]).toEqual([unanswered, created]);
			expect(logged).toEqual([expect.stringContaining(text) as string]);
		},
	);
});

describe('a deadline while a create is under way', () => {
	/** A create whose answer comes after the deadline. */
	async function late(answered: Answer) {
		const setup = unanswered();
		const error = await caught(async () => await setup.create(plan(), Infinity, 60_000));
		const before = unansweredIn(setup.journal);
		const endedAt = setup.clock.now();
		setup.answer(answered);
		await tick();
		return { ...setup, error, before, endedAt };
	}

	it('ends the wait: it is not known whether there is a task, and nothing is sent again', async () => {
		const { error, before, endedAt, sent } = await late(accepted);
		expect(error.message).toBe(
			'It is not known whether the task was created. The service did not answer in time',
		);
		expect([before, endedAt, sent.length]).toEqual([[0], 60_000, 1]);
	});

	it('does not keep the late answer out of journal and log', async () => {
		const { journal, logged } = await late(accepted);
		expect(journal.taskIds()).toEqual(['task-1']);
		expect(logged).toEqual([
			expect.stringMatching(/^warn: .*created task task-1 .*item 1\), after the call had ended$/),
		]);
	});

	it('lets a late refusal say that there is no task', async () => {
		const { journal, logged } = await late({ statusCode: 400 });
		expect(unansweredIn(journal)).toEqual([]);
		expect(logged).toEqual([expect.stringContaining('created no task') as string]);
	});
});

describe('while a picture is read', () => {
	/** A creator, the item of a picture, and what happens while the picture is read. */
	function reading(happens: (setup: ReturnType<typeof creating>) => void) {
		const setup = creating(accepted);
		jest.spyOn(setup.context.helpers, 'getBinaryDataBuffer').mockImplementation(async () => {
			happens(setup);
			return Buffer.alloc(9);
		});
		const image_url = new InputFile('data', { data: '', mimeType: 'image/png' });
		return { ...setup, item: plan({ input: { prompt: 'A lighthouse', image_url } }) };
	}

	it('the execution is stopped: nothing is sent', async () => {
		const { create, item, sent, stateOf } = reading(({ stop }) => stop.abort());
		await expect(create(item)).rejects.toBeInstanceOf(Stopped);
		expect([sent, stateOf(item)]).toEqual([[], 'free']);
	});

	it('another item fails, and the node will stop: nothing is sent, and no item has failed by that', async () => {
		const { create, item, sent, stateOf, events, queue } = reading(({ queue }) => queue.close());
		expect(await create(item)).toBeUndefined();
		expect([sent, events, stateOf(item)]).toEqual([[], [], 'free']);
		expect(queue.limits.underWay).toBe(0);
	});

	it.each<[string, number | undefined, number]>([
		['that say how large they are are not read', 20 * 1024 ** 2, 0],
		['that do not say it are read until they are too large', undefined, 2],
	])('files %s, and nothing is sent', async (_what, bytes, reads) => {
		const { context, create, sent, journal } = creating(accepted);
		const read = jest.spyOn(context.helpers, 'getBinaryDataBuffer');
		read.mockResolvedValue(Buffer.alloc(20 * 1024 ** 2));
		const fileOf = (id: string) => {
			const data = { id, data: 'filesystem-v2', mimeType: 'image/png', ...(bytes && { bytes }) };
			return new InputFile('data', data as never);
		};
		const images = ['a', 'b', 'c'].map(fileOf);
		const item = plan({ input: { prompt: 'A lighthouse', images } as never });
		expect(await errorOf({ create }, item)).toMatchObject({
			message: 'The files of this item are too large to be sent as data',
			description: expect.stringContaining("'Links' in 'Send Files As'") as string,
		});
		expect([read.mock.calls.length, sent.length, unansweredIn(journal)]).toEqual([reads, 0, []]);
	});
});
