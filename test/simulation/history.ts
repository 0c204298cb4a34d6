import fc from 'fast-check';
import type { IDataObject, INode } from 'n8n-workflow';

import { days } from './day';
import {
	ACTS,
	OTHER_REFUSALS,
	REFUSALS,
	REQUEST_TROUBLES,
	SLEEP_TROUBLES,
	STRANGE,
} from './troubles';

/** Troubles happen within this time; then the faults stop. */
export const TROUBLED_MS = 90_000;

const word = <const T extends string>(...values: T[]) => fc.constantFrom(...values);
const number = (...values: number[]) => fc.constantFrom(...values);

/** Most executions are short, so that what is to meet them must come early. */
const at = fc.oneof(fc.nat({ max: 15_000 }), fc.nat({ max: 1_000 }), fc.nat({ max: TROUBLED_MS }));

/** @param weight how often there are any, against `none`: 2 of 5 histories have none where it is 3 */
const few = <T>(arbitrary: fc.Arbitrary<T>, maxLength: number, weight = 3, none = 2) =>
	fc.oneof(
		{ withCrossShrink: true },
		{ weight: none, arbitrary: fc.constant([] as T[]) },
		{ weight, arbitrary: fc.array(arbitrary, { minLength: 1, maxLength, size: 'max' }) },
	);

/** Of the last two processes, which take callbacks, nothing is heard but for a moment; the first three do the rest. */
const PROCESSES = {
	anything: [0, 1, 2, 3, 3, 4, 4],
	callbacks: [0, 1, 1, 1, 2, 2, 2, 3, 4],
	turns: [0, 1, 2],
	'first turns': [0, 1, 2],
	'later turns': [0, 1, 2],
	retries: [0, 1, 2],
	orders: [1, 2],
};

/** A callback and the execution that it starts are a dozen effects; the orders of a run are eight at most, as a rule. */
const MOST_EFFECTS = {
	anything: 30,
	callbacks: 12,
	turns: 30,
	'first turns': 30,
	'later turns': 30,
	retries: 30,
	orders: 3,
};

/**
 * A process dies after so many effects since its start: of any kind; of callbacks and what they start; of executions
 * that were asleep before; of the first turns of runs; of their later turns, also after the faults have stopped; of
 * retries; or of the orders of later turns, as they are sent.
 */
const kill = (of: keyof typeof PROCESSES) =>
	fc.record({
		process: number(...PROCESSES[of]),
		of: fc.constant(of),
		afterEffects: fc.oneof(
			fc.nat({ max: MOST_EFFECTS[of] }),
			fc.nat({ max: Math.min(8, MOST_EFFECTS[of]) }),
		),
		// Whether the last effect takes place.
		isSeen: of === 'orders' ? fc.constantFrom(true, true, true, false) : fc.boolean(),
		downMs: number(1_000, 30_000),
	});

/** All that one history is made of: nothing else is left to chance. Times are milliseconds since its beginning. */
const PARTS = {
	/** Decides of latencies, durations and of the order of what happens at the same time. */
	salt: fc.nat({ max: 0xffff }),
	n8n: word('one process', 'queue mode', 'queue mode'),
	/** How long n8n's database takes for a query at most. A slow one gives its races room. */
	slowestQueryMs: number(5, 60, 60, 60),
	node: fc.record({
		completion: fc.oneof(
			{ withCrossShrink: true },
			{ weight: 6, arbitrary: word('wait') },
			{ weight: 1, arbitrary: word('return') },
			{ weight: 6, arbitrary: word('trigger') },
		),
		// Of a minute's parts most runs see the end while some of their tasks are finished and others are not.
		suspendAfter: number(5, 0, 0, 0.02, 0.1, 0.3),
		items: fc.integer({ min: 1, max: 8 }),
		onError: word('stopWorkflow', 'continueRegularOutput', 'continueErrorOutput'),
		ifSomeFail: word('keep', 'keep', 'keep', 'stop'),
		/** Of n8n's *Retry On Fail*; 1 without. */
		maxTries: number(1, 2, 3),
		timeoutSeconds: number(60, 20, 120),
		maxInFlight: number(10, 3, 1),
		/** How many items the budget covers; 0 without a budget. */
		budgetItems: number(0, 0, 0, 0, 2, 8),
		/** Whether an expression gives something else each time. */
		isChanging: fc.boolean(),
		downloads: fc.constantFrom(false, false, false, true),
		retryFailed: number(0, 0, 1, 3),
	}),
	trigger: fc.record({ maxTries: number(1, 2) }),
	service: fc.record({
		slowestAnswerMs: number(50, 50, 1_000),
		longestTaskMs: number(1_000, 10_000, 40_000),
		/** Of the tasks, counted from the first one created: those that fail, and those that never end. */
		failing: few(fc.nat({ max: 7 }), 6),
		hanging: few(fc.nat({ max: 7 }), 1, 1),
		/** Tasks that may be unfinished at once, and creates that are let in within a second; 0 without a limit. */
		maxUnfinished: number(0, 0, 0, 1, 3),
		maxPerSecond: number(0, 0, 0, 1, 5),
		saysRetryAfter: fc.boolean(),
		/** For how long a new task is not known to the endpoint that reads it. */
		lagMs: number(0, 0, 0, 3_000),
		/** Whether its records repeat the callback address and the key. */
		isTalkative: fc.boolean(),
		/** Whether it sends every callback twice, to be sure. */
		sendsTwice: fc.constantFrom(false, true, true),
	}),
	requests: few(
		fc.record({
			on: word('create', 'create', 'create', 'read', 'read', 'read', 'download'),
			nth: number(0, 0, 1, 1, 2, 3),
			what: word(...REQUEST_TROUBLES, ...REFUSALS.map(([name]) => name)),
		}),
		8,
		6,
	),
	callbacks: few(
		fc.record({ nth: fc.nat({ max: 4 }), what: word('lost', 'doubled', 'early', 'late', 'early') }),
		4,
		4,
	),
	limits: few(fc.record({ at, maxUnfinished: number(0, 1, 3), maxPerSecond: number(0, 1) }), 2, 2),
	keyChanges: few(fc.record({ at, noticedAfterMs: number(0, 20_000) }), 1, 1),
	clockJumps: few(fc.record({ at, byMs: number(-3_600_000, 3_600_000) }), 1, 1),
	kills: few(
		fc.oneof(
			kill('anything'),
			{ weight: 2, arbitrary: kill('callbacks') },
			{ weight: 3, arbitrary: kill('turns') },
		),
		3,
		8,
	),
	/** Writes to the store of processed data that fail, counted from the first. */
	ledgerTroubles: few(fc.record({ nth: fc.nat({ max: 3 }), isWritten: fc.boolean() }), 2, 4),
	acts: few(fc.record({ at, what: word(...ACTS, 'forge') }), 3, 4),
	/** What happens so long after a run begins to go to sleep for the first time. */
	sleeps: few(
		fc.record({
			// To store an execution takes a few queries.
			afterMs: fc.oneof(fc.nat({ max: 50 }), fc.nat({ max: 1_000 })),
			what: word(...SLEEP_TROUBLES, 'kill', 'stop'),
		}),
		2,
		2,
	),
	// What is added here at the end leaves the other parts of each seed as they are.
	hasReferences: fc.boolean(),
	/** Of the failing tasks, those that cost something all the same. */
	charged: few(fc.nat({ max: 7 }), 6, 1),
	/** Creates that are taken, and answered 303, counted from the first one sent. */
	seeOther: few(number(0, 0, 1, 1, 2, 3), 2, 1),
	/** A batch that takes many minutes to be created, whose callbacks are lost, and how its run ends. */
	largeBatch: few(
		fc.record({
			items: number(20, 40, 60),
			maxUnfinished: number(1, 2, 3),
			endsBy: word('itself', 'itself', 'stop', 'kill'),
			endsAt: fc.integer({ min: 60_000, max: 500_000 }),
		}),
		1,
		1,
		15,
	),
	/** How much longer n8n takes to store an execution that it suspends, milliseconds. */
	slowStores: few(number(70_000, 200_000, 300_000), 1, 1, 6),
	/** What the service makes of reads: how many it takes in a second (0: all of them), and whether each fifth one fails. */
	reads: fc.record({
		mostPerSecond: number(0, 0, 0, 1, 2),
		saysRetryAfter: fc.boolean(),
		isFifthLost: fc.constantFrom(false, false, true),
	}),
	/** How the user retries what was killed asleep or in a turn. */
	retryWith: word('original', 'original', 'original', 'saved'),
	/** What else may answer in place of the service, or as the service. */
	strange: few(
		fc.record({
			on: word('create', 'create', 'read', 'read', 'download'),
			nth: number(0, 0, 1, 1, 2, 3),
			what: word('answer trickles', ...[...STRANGE, ...OTHER_REFUSALS].map(([name]) => name)),
		}),
		4,
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
		1,
		8,
	),
	/** So many creates are let in within each minute; a refusal asks to wait for the next minute. */
	windows: few(number(1, 2, 3), 1, 1, 8),
	/** Whether each item brings a file that was uploaded. n8n renames the file when it stores the execution. */
	hasUploads: fc.constantFrom(false, false, false, false, false, true),
	/**
	 * Items that fail until the user mends the node and retries the execution with the saved workflow. By how much the
	 * price is raised meanwhile; where it is raised, the budget covers all items at the old price.
	 */
	unfit: few(
		fc.record({
			item: fc.nat({ max: 7 }),
			how: word('refused', 'fails'),
			priceFactor: number(1, 100),
		}),
		2,
		1,
		8,
	),
	/** For how long n8n's store of processed data fails. */
	storeOutages: few(fc.record({ at, forMs: number(30_000) }), 1, 1, 7),
	/** Writes to that store, counted from the first, whose answer is lost. */
	lostAnswers: few(fc.nat({ max: 30 }), 2, 1, 6),
	moreKills: few(
		fc.oneof(kill('first turns'), kill('later turns'), kill('retries'), {
			weight: 4,
			arbitrary: kill('orders'),
		}),
		2,
		1,
		2,
	),
	/** Whether the user starts two retries of an execution at the same moment. */
	retriesTwice: fc.constantFrom(false, false, false, true),
	/** The user retries an execution that is asleep, as n8n's API allows. */
	retriesAsleep: few(fc.record({ at }), 1, 1, 4),
	/** n8n takes a run that it has woken the nth time for asleep so long after that, and wakes it again. */
	doubleWakes: few(
		fc.record({ nth: fc.integer({ min: 1, max: 3 }), afterMs: number(100, 500, 2_000) }),
		1,
		1,
		4,
	),
	/** A task, counted from the first one created, that the service no longer knows so long after its create. */
	forgotten: few(fc.record({ nth: fc.nat({ max: 4 }), afterMs: number(0, 1_000, 5_000) }), 1, 1, 9),
	/** TLS handshakes that are broken off: nothing was sent. */
	handshakes: few(
		fc.record({
			on: word('create', 'create', 'create', 'read', 'download'),
			nth: number(0, 0, 1, 1, 2, 3),
		}),
		2,
		1,
		6,
	),
	/** A user's day, in place of the faults above. */
	day: few(days, 1, 1, 1),
};

type Parts = {
	[Name in keyof typeof PARTS]: (typeof PARTS)[Name] extends fc.Arbitrary<infer T> ? T : never;
};

export interface History extends Omit<Parts, 'node'> {
	node: Parts['node'] & {
		/** Options beside these. */
		more?: IDataObject;
		/** The node's settings in n8n beside these. */
		settings?: Partial<INode>;
	};
}

export type CallbackTrouble = History['callbacks'][number]['what'];

/** Generates histories. Whatever has no bearing on a violation shrinks to nothing. */
export const histories: fc.Arbitrary<History> = fc
	.record(PARTS)
	.map(enlarge)
	.map(makePatient)
	.map(spendDay);

const DAY_SECONDS = 86_400;

/** Where something takes longer than a minute, the run has the time that it has by default. */
function makePatient(history: History): History {
	const { longPauses, windows, forgotten, unfit, largeBatch } = history;
	if (largeBatch.length > 0) {
		const none = { longPauses: [], windows: [], forgotten: [], unfit: [], moreKills: [] };
		return { ...history, ...none, retriesAsleep: [] };
	}
	const isSlow = longPauses.length + windows.length + forgotten.length > 0;
	const [mended] = unfit;
	// n8n wakes a run twice from a state that it stored before: a minute later that state is another one.
	const { doubleWakes, slowStores, retriesAsleep } = history;
	return {
		...history,
		doubleWakes: slowStores.length > 0 ? [] : doubleWakes,
		// A retry of what sleeps needs the API, and a second wake needs a start of n8n in the same minute.
		retriesAsleep: doubleWakes.length > 0 ? [] : retriesAsleep,
		node: {
			...history.node,
			...(isSlow && { completion: 'wait', timeoutSeconds: DAY_SECONDS }),
			...(mended && { onError: 'stopWorkflow', ifSomeFail: 'stop' }),
			...(mended && mended.priceFactor > 1 && { budgetItems: history.node.items }),
		},
		service: { ...history.service, ...(isSlow && { hanging: [] }) },
		// The older a task is, the less often it is read: an hour more by the clock makes it old.
		...(isSlow && {
			clockJumps: [],
			sleeps: history.sleeps.filter(({ what }) => !what.startsWith('clock')),
		}),
	};
}

/** A large batch is for the trigger. Nothing ends its run early but what is meant to. */
function enlarge(history: History): History {
	const [batch] = history.largeBatch;
	if (!batch) return history;
	const { items, maxUnfinished } = batch;
	const large = { completion: 'trigger', items, timeoutSeconds: 3_600, budgetItems: 0 } as const;
	const slow = { maxUnfinished, longestTaskMs: 40_000, hanging: [] };
	return {
		...history,
		node: { ...history.node, ...large },
		service: { ...history.service, ...slow },
		requests: history.requests.filter(({ on }) => on === 'read'),
		strange: history.strange.filter(({ on }) => on === 'read'),
		acts: history.acts.filter(({ what }) => !what.startsWith('stop')),
		...{ limits: [], keyChanges: [], clockJumps: [], kills: [], seeOther: [] },
	};
}

/** On a user's day happens what the day says, and nothing else. */
export function spendDay(history: History): History {
	const [day] = history.day;
	if (!day) return history;
	const { salt, n8n, slowestQueryMs } = history;
	const { suspendAfter, places: maxInFlight, fileSeconds, ends, workflow, items } = day;
	const onError = ends === 'fails twice' ? 'stopWorkflow' : 'continueRegularOutput';
	return plainBut({
		...{ salt, n8n, slowestQueryMs, day: [day] },
		node: {
			...{ suspendAfter, items, maxInFlight, onError, timeoutSeconds: DAY_SECONDS },
			downloads: fileSeconds > 0,
			completion: workflow === 'triggered' ? 'trigger' : 'wait',
		},
	});
}

const [smallest] = fc.check(
	fc.property(histories, () => false),
	{ numRuns: 1, seed: 1 },
).counterexample as [History];

/** One item, and nothing goes wrong: what every history shrinks to. */
export const PLAIN: History = smallest;

export type PartlyHistory = {
	[Name in keyof History]?: History[Name] extends unknown[]
		? History[Name]
		: Partial<History[Name]>;
};

/** The plain history, but for what is said here. */
export const plainBut = ({ node, trigger, service, reads, ...parts }: PartlyHistory): History => ({
	...PLAIN,
	...parts,
	node: { ...PLAIN.node, ...node },
	trigger: { ...PLAIN.trigger, ...trigger },
	service: { ...PLAIN.service, ...service },
	reads: { ...PLAIN.reads, ...reads },
});
