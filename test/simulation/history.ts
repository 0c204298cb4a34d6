import fc from 'fast-check';
import type { IDataObject, INode } from 'n8n-workflow';

import { MINUTE, SECOND } from '../durations';
import { ACTS, BLIPS, LASTING, REFUSALS, REQUEST_TROUBLES, SLEEP_TROUBLES } from './troubles';

const word = <const T extends string>(...values: T[]) => fc.constantFrom(...values);
const number = (...values: number[]) => fc.constantFrom(...values);

/** @param none how often there is nothing, against once that there is something */
const few = <T>(arbitrary: fc.Arbitrary<T>, maxLength: number, none = 3) =>
	fc.oneof(
		{ withCrossShrink: true },
		{ weight: none, arbitrary: fc.constant([] as T[]) },
		{ weight: 1, arbitrary: fc.array(arbitrary, { minLength: 1, maxLength, size: 'max' }) },
	);

/** Faults happen within this time after the start; then they stop. */
export const TROUBLED_MS = 90 * SECOND;

const DAY_SECONDS = 86_400;

/** Most executions are short, so that what is to meet them must come early. */
const at = fc.oneof(
	...[15 * SECOND, SECOND, TROUBLED_MS].map((max) => fc.nat({ max })),
) as fc.Arbitrary<number>;

const nth = number(0, 0, 1, 1, 2, 3);

/**
 * All that one history is made of: a stretch of a user's day, with an n8n, a workflow, and what goes wrong. Nothing else is left
 * to chance. Times are milliseconds since the user's start, unless they say otherwise.
 */
const PARTS = {
	/** Decides of latencies, durations and of the order of what happens at the same time. */
	salt: fc.nat({ max: 0xffff }),
	/** `one place`: in one process, with a production concurrency limit. */
	n8n: word('one process', 'one process', 'queue mode', 'queue mode', 'one place', 'two places'),
	/** How long n8n's database takes for a query at most. A slow one gives its races room. */
	slowestQueryMs: number(5, 60, 60),
	/**
	 * `in a row`: two action nodes, one behind the other; `beside`: two that get the same items; `called`: by another workflow;
	 * `hangs up`: by a client of an MCP server, which hangs up after a minute; `triggered`: the results go to a trigger with
	 * *Wait for Task* behind it; `returned`: nobody waits for them.
	 */
	workflow: word(
		...(['one node', 'one node', 'one node', 'loop', 'in a row', 'beside', 'called'] as const),
		...(['hangs up', 'triggered', 'triggered', 'triggered', 'returned'] as const),
	),
	/** At which second of n8n's minute the user starts the workflow. */
	second: fc.integer({ min: 5, max: 64 }),
	/** Further starts, and how much later they come. */
	others: fc.array(fc.integer({ min: 0, max: 300_000 }), { maxLength: 2 }),
	node: fc.record({
		items: number(1, 3, 5, 8, 12, 24),
		suspendAfter: number(5, 5, 5, 1, 0),
		maxInFlight: number(10, 4),
		timeoutSeconds: number(DAY_SECONDS, DAY_SECONDS, 20, 60, 120),
		onError: word('continueRegularOutput', 'stopWorkflow', 'continueErrorOutput'),
		ifSomeFail: word('keep', 'keep', 'keep', 'stop'),
		/** Of n8n's *Retry On Fail*; 1 without. */
		maxTries: number(1, 2, 3),
		/** How many items the budget covers; 0 without a budget. */
		budgetItems: number(0, 0, 0, 0, 2, 8),
		retryFailed: number(0, 0, 1, 3),
		/** Whether an expression gives something else each time. */
		isChanging: fc.boolean(),
		hasReferences: fc.boolean(),
		/** Whether each item brings a file that was uploaded. n8n renames the file when it stores the execution. */
		hasUploads: fc.constantFrom(false, false, false, true),
	}),
	/** Of *Retry On Fail* of the trigger. */
	triggerTries: number(1, 2),
	service: fc.record({
		/** How long each task takes; where it is spread some take half of that time, and others one and a half times as long. */
		taskSeconds: number(12, 20, 45, 60, 90, 90, 120, 200),
		isSpread: fc.constantFrom(true, true, false),
		slowestAnswerMs: number(50, 50, 1_000),
		/** Of the tasks, counted from the first one created: those that fail, that cost something all the same, that never end. */
		failing: few(fc.nat({ max: 7 }), 6, 1),
		charged: few(fc.nat({ max: 7 }), 6, 1),
		hanging: few(fc.nat({ max: 7 }), 1),
		/** Tasks that may be unfinished at once, and creates that are let in within a second; 0 without a limit. */
		maxUnfinished: number(0, 0, 0, 1, 3),
		maxPerSecond: number(0, 0, 0, 1, 5),
		/** How many creates it lets in within each minute; a refusal asks to wait for the next minute. 0: all. */
		maxPerMinute: number(0, 0, 0, 0, 0, 0, 0, 2),
		saysRetryAfter: fc.boolean(),
		/** For how long a new task is not known to the endpoint that reads it. */
		lagMs: number(0, 0, 0, 3_000),
		/** Whether its records repeat the callback address and the key. */
		isTalkative: fc.boolean(),
		/** Whether it sends every callback twice, to be sure. */
		sendsTwice: fc.constantFrom(false, true, true),
	}),
	/** How long the download of a file takes; 0 without downloads. */
	fileSeconds: number(0, 0, 0, 12, 30, 60, 240),
	/** n8n's time limit; 0 without. */
	limitSeconds: number(0, 0, 0, 0, 300),

	/** One trouble that lasts. */
	trouble: few(
		fc.record({
			/** Of a blip: whether it answers reads as well. */
			on: word('all requests', 'creates', 'creates'),
			what: word(...BLIPS.map(([name]) => name), ...LASTING, ...LASTING),
			at: fc.nat({ max: 600_000 }),
			forMs: number(3 * SECOND, 10 * SECOND, MINUTE, MINUTE, 5 * MINUTE, 10 * MINUTE, 120 * MINUTE),
		}),
		1,
		1,
	),
	/** `fails twice`: the key is refused for a while, and the user retries the retry. */
	ends: word(
		...(['by itself', 'by itself', 'by itself', 'killed', 'killed twice'] as const),
		...(['stopped', 'fails twice'] as const),
	),
	endsAt: fc.oneof(
		fc.integer({ min: 5_000, max: 120_000 }),
		fc.integer({ min: 120_000, max: 500_000 }),
	),
	/** How long after its retry has begun n8n is killed once more. */
	diesAgainMs: number(50, 80, 3 * SECOND, 40 * SECOND),
	/** How long after n8n has noticed a death the user retries. In queue mode n8n has erased by then, or not. */
	retriesAfterMs: number(2 * SECOND, 10 * SECOND, 60 * SECOND),
	retryWith: word('original', 'original', 'original', 'saved'),
	/** Whether the user starts two retries of an execution at the same moment. */
	retriesTwice: fc.constantFrom(false, false, false, true),

	/** Single faults: of requests, counted from the first one of their kind. */
	requests: few(
		fc.record({
			on: word('create', 'create', 'create', 'read', 'read', 'read', 'download'),
			nth,
			what: word(...REQUEST_TROUBLES, ...REFUSALS.map(([name]) => name)),
		}),
		8,
		1,
	),
	callbacks: few(
		fc.record({ nth: fc.nat({ max: 4 }), what: word('lost', 'doubled', 'early', 'late', 'early') }),
		4,
		1,
	),
	limits: few(fc.record({ at, maxUnfinished: number(0, 1, 3), maxPerSecond: number(0, 1) }), 2),
	keyChanges: few(fc.record({ at, noticedAfterMs: number(0, 20_000) }), 1),
	clockJumps: few(fc.record({ at, byMs: number(-3_600_000, 3_600_000) }), 1),
	/** A process dies after so many of its effects of some kind; the last one takes place or does not. */
	kills: few(
		fc.record({
			process: number(0, 1, 2, 3, 4),
			of: word('anything', 'callbacks', 'later turns', 'retries', 'orders'),
			afterEffects: fc.oneof(fc.nat({ max: 30 }), fc.nat({ max: 8 }), fc.nat({ max: 3 })),
			isSeen: fc.boolean(),
			downMs: number(1_000, 30_000),
		}),
		3,
		1,
	),
	/** Writes to n8n's store of processed data that fail, counted from the first. */
	storeTroubles: few(fc.record({ nth: fc.nat({ max: 12 }), isWritten: fc.boolean() }), 2, 1),
	acts: few(fc.record({ at, what: word(...ACTS) }), 3, 1),
	/** What happens so long after a run begins to go to sleep for the first time. To store it takes a few queries. */
	sleeps: few(
		fc.record({
			afterMs: fc.oneof(fc.nat({ max: 50 }), fc.nat({ max: 1_000 })),
			what: word(...SLEEP_TROUBLES),
		}),
		2,
	),
	/** The service asks for a pause that outlasts a turn, when there are so many tasks. */
	longPauses: few(
		fc.record({
			afterTasks: number(0, 1, 1, 2, 4),
			seconds: number(60, 120, 299, 600, 3_600),
			status: number(429, 429, 503),
		}),
		1,
		8,
	),
	/** Items that fail until the user mends the node and retries with the saved workflow; the price has risen meanwhile. */
	unfit: few(
		fc.record({
			item: fc.nat({ max: 7 }),
			how: word('refused', 'fails'),
			priceFactor: number(1, 100),
		}),
		2,
		8,
	),
	/** n8n takes a run that it has woken the nth time for asleep so long after that, and wakes it again. */
	doubleWakes: few(
		fc.record({ nth: fc.integer({ min: 1, max: 3 }), afterMs: number(100, 500, 2_000) }),
		1,
		4,
	),
	/** A task, counted from the first one created, that the service no longer knows so long after its create. */
	forgotten: few(fc.record({ nth: fc.nat({ max: 4 }), afterMs: number(0, 1_000, 5_000) }), 1, 8),
};

type Parts = {
	[Name in keyof typeof PARTS]: (typeof PARTS)[Name] extends fc.Arbitrary<infer T> ? T : never;
};

export interface History extends Omit<Parts, 'node'> {
	node: Parts['node'] & {
		/** Options beside these, and settings of n8n's. */
		more?: IDataObject;
		settings?: Partial<INode>;
	};
}

export type CallbackTrouble = History['callbacks'][number]['what'];

/** Takes from a history what goes wrong in it, and leaves the node as it is dropped. */
const calmed = (history: Parts): Parts => ({
	...history,
	node: {
		...history.node,
		...{ timeoutSeconds: DAY_SECONDS, maxTries: 1, budgetItems: 0, retryFailed: 0 },
		...{ onError: 'continueRegularOutput', ifSomeFail: 'keep' },
		...{ isChanging: false, hasReferences: false, hasUploads: false },
	},
	service: {
		...history.service,
		...{ slowestAnswerMs: 50, failing: [], charged: [], hanging: [], maxUnfinished: 0 },
		...{ maxPerSecond: 0, maxPerMinute: 0, saysRetryAfter: false, lagMs: 0 },
		...{ isTalkative: false, sendsTwice: false },
	},
	...{
		triggerTries: 1,
		trouble: [],
		ends: 'by itself',
		retryWith: 'original',
		retriesTwice: false,
	},
	...{ requests: [], callbacks: [], limits: [], keyChanges: [], clockJumps: [], kills: [] },
	...{ storeTroubles: [], acts: [], sleeps: [], longPauses: [], unfit: [], doubleWakes: [] },
	forgotten: [],
});

/** Where nothing goes wrong, every second history is a batch that takes longer than *Sleep After*, as a rule. */
const isLong = (history: Parts): Parts => ({
	...history,
	limitSeconds: 0,
	...(history.second % 2 === 1 && {
		others: [],
		node: { ...history.node, items: 24, maxInFlight: 4 },
	}),
});

/** The histories with most orders take most of a search's time; the rounds of a loop come one after the other. */
const MOST_ORDERS = 36;
const MOST_ROUNDS = 12;

/** Whether each item is ordered by two nodes. */
export const hasTwoNodes = ({ workflow }: Pick<History, 'workflow'>) =>
	workflow === 'in a row' || workflow === 'beside';

function limitOrders(history: Parts): Parts {
	const { others, node, workflow } = history;
	const most = MOST_ORDERS / (1 + others.length) / (hasTwoNodes(history) ? 2 : 1);
	const items = Math.min(node.items, workflow === 'loop' ? MOST_ROUNDS : Math.floor(most));
	return { ...history, node: { ...node, items } };
}

/** A trouble that lasts, a kill and a stop meet a batch that orders. Of a blip nothing else is to take the blame. */
function troubled(history: Parts): Parts {
	const { trouble, ends, retriesTwice } = history;
	const plain = { ...calmed(history), trouble, ends, retriesTwice };
	if (trouble.length === 0 && ends === 'by itself') return plain;
	const {
		service: { taskSeconds },
	} = history;
	const maxInFlight = 4;
	const items = Math.max(history.node.items, 3 * maxInFlight);
	const orderingMs = (items / maxInFlight - 1) * taskSeconds * SECOND;
	const within = (ms: number) => SECOND + (ms % orderingMs);
	const isBlip = trouble.some(({ what }) => what.startsWith('blip'));
	return {
		...plain,
		node: {
			...{ ...plain.node, items, maxInFlight },
			onError: ends === 'fails twice' && !isBlip ? 'stopWorkflow' : plain.node.onError,
		},
		endsAt: within(history.endsAt),
		trouble: trouble.map((each) => ({ ...each, at: within(each.at) })),
		ends: isBlip ? 'by itself' : ends,
	};
}

const isScattered = (workflow: Parts['workflow']) =>
	['one node', 'loop', 'triggered', 'returned'].includes(workflow);

/** Single faults meet a small run within its first minute and a half. */
function scattered(history: Parts): Parts {
	const { salt, node, service, longPauses, forgotten, unfit, workflow } = history;
	const isSlow = longPauses.length + forgotten.length + service.maxPerMinute > 0;
	const [mended] = unfit;
	return {
		...history,
		...{ trouble: [], ends: 'by itself', others: [], limitSeconds: 0 },
		fileSeconds: history.fileSeconds === 0 ? 0 : 1,
		workflow: isSlow || !isScattered(workflow) ? 'one node' : workflow,
		node: {
			...node,
			...(workflow === 'loop' && { onError: 'continueRegularOutput' as const }),
			items: 1 + (salt % 8),
			// Most runs are to go to sleep while some of their tasks are finished and others are not.
			suspendAfter: [5, 0, 0, 0.02, 0.1, 0.3][salt % 6]!,
			maxInFlight: [10, 3, 1][salt % 3]!,
			...(isSlow && { timeoutSeconds: DAY_SECONDS }),
			...(mended && { onError: 'stopWorkflow', ifSomeFail: 'stop', budgetItems: 0 }),
			...(mended && mended.priceFactor > 1 && { budgetItems: 1 + (salt % 8) }),
		},
		service: {
			...service,
			taskSeconds: [1, 5, 25][salt % 3]!,
			hanging: isSlow || node.timeoutSeconds === DAY_SECONDS ? [] : service.hanging,
		},
		// The older a task is, the less often it is read: an hour more by the clock makes it old.
		...(isSlow && {
			clockJumps: [],
			sleeps: history.sleeps.filter(({ what }) => !what.startsWith('clock')),
		}),
	};
}

const anything = fc.record(PARTS);

/** Generates histories. Whatever has no bearing on a violation shrinks to nothing. */
export const histories: fc.Arbitrary<History> = fc
	.oneof(
		{ withCrossShrink: true },
		{ weight: 1, arbitrary: anything.map(calmed).map(isLong) },
		{ weight: 2, arbitrary: anything.map(troubled) },
		{ weight: 3, arbitrary: anything.map(scattered) },
	)
	.map(limitOrders);

const [smallest] = fc.check(
	fc.property(histories, () => false),
	{ numRuns: 1, seed: 1 },
).counterexample as [History];

/** One item, and nothing goes wrong: what every history shrinks to. */
export const PLAIN: History = smallest;

export type PartlyHistory = {
	[Name in keyof History]?: Name extends 'node' | 'service'
		? Partial<History[Name]>
		: History[Name];
};

/** The plain history, but for what is said here. */
export const plainBut = ({ node, service, ...parts }: PartlyHistory): History => ({
	...PLAIN,
	...parts,
	node: { ...PLAIN.node, ...node },
	service: { ...PLAIN.service, ...service },
});

/** How long the longest task may take, milliseconds. */
export const longestTaskMs = ({ service: { taskSeconds, isSpread } }: History): number =>
	taskSeconds * SECOND * (isSpread ? 1.5 : 1);

/** The number of an item of the second node is larger by this than that of the first. */
export const SECOND_NODE = 500;
