import fc from 'fast-check';
import type { IDataObject, INode } from 'n8n-workflow';

/** What happens to one request or its answer. */
export const REQUEST_TROUBLES = [
	'answer lost',
	'request lost',
	'answer late',
	'answer garbled',
	'answer cut short',
	'answer without an id',
	'sent twice by the network',
	'connection refused',
	'no route, after it was sent',
	'429',
	'429 with Retry-After',
	'503',
	'503 with Retry-After',
	'500',
	"a firewall's 403",
	'404',
	'401',
] as const;
export type RequestTrouble = (typeof REQUEST_TROUBLES)[number];

export const CALLBACK_TROUBLES = ['lost', 'doubled', 'early', 'late'] as const;
export type CallbackTrouble = (typeof CALLBACK_TROUBLES)[number];

export const ACTS = [
	'stop',
	'retry',
	'stop and retry',
	'start',
	'redeliver',
	'start again',
	'switch off',
	'edit',
	'forge',
] as const;
export type Act = (typeof ACTS)[number];

export const HAND_OVER_TROUBLES = [
	'stop',
	'kill',
	/** All tasks end, and their callbacks come. */
	'tasks end',
	'clock set back',
	'clock set forward',
	/** n8n begins no sub-execution, at once. */
	'not begun',
] as const;
export type HandOverTrouble = (typeof HAND_OVER_TROUBLES)[number];

/** All that one history is made of: nothing else is left to chance. Times are milliseconds since its beginning. */
export interface History {
	/** Decides of latencies, durations and of the order of what happens at the same time. */
	salt: number;
	n8n: 'one process' | 'queue mode';
	/** Whether n8n tells which execution is retried; before 2.41 it does not. */
	tellsRetried: boolean;
	/** How long n8n's database takes for a query at most. A slow one gives its races room. */
	slowestQueryMs: number;
	node: {
		completion: 'wait' | 'return' | 'trigger';
		/** So long after its last create a run that waits is suspended, minutes. */
		suspendAfter: number;
		items: number;
		onError: 'stopWorkflow' | 'continueRegularOutput' | 'continueErrorOutput';
		ifSomeFail: 'keep' | 'stop';
		/** Of n8n's *Retry On Fail*; 1 without. */
		maxTries: number;
		timeoutSeconds: number;
		pollIntervalSeconds: number;
		maxInFlight: number;
		/** How many items the budget covers; 0 without a budget. */
		budgetItems: number;
		/** Whether an expression gives something else each time. */
		isChanging: boolean;
		downloads: boolean;
		/** How often a failed task is created anew. */
		retryFailed: number;
		/** Options beside these. */
		more?: IDataObject;
		/** The node's settings in n8n beside these. */
		settings?: Partial<INode>;
	};
	trigger: {
		maxTries: number;
		downloads: boolean;
	};
	service: {
		slowestAnswerMs: number;
		longestTaskMs: number;
		/** Of the tasks, counted from the first one created: those that fail. */
		failing: number[];
		/** Of the tasks, counted in the same way: those that never end. */
		hanging: number[];
		/** Tasks that may be unfinished at once; 0 without a limit. */
		maxUnfinished: number;
		/** Creates that are let in within a second; 0 without a limit. */
		maxPerSecond: number;
		saysRetryAfter: boolean;
		/** For how long a new task is not known to the endpoint that reads it. */
		lagMs: number;
		/** Whether its records repeat the callback address and the key. */
		isTalkative: boolean;
		/** Whether it sends every callback twice, to be sure. */
		sendsTwice: boolean;
	};
	requests: Array<{ on: 'create' | 'read' | 'download'; nth: number; what: RequestTrouble }>;
	callbacks: Array<{ nth: number; what: CallbackTrouble }>;
	limits: Array<{ at: number; maxUnfinished: number; maxPerSecond: number }>;
	keyChanges: Array<{ at: number; noticedAfterMs: number }>;
	clockJumps: Array<{ at: number; byMs: number }>;
	/** A process dies after so many effects since its start: of any kind, or of callbacks and what they start. */
	kills: Array<{
		process: number;
		of: 'anything' | 'callbacks';
		afterEffects: number;
		isSeen: boolean;
		downMs: number;
	}>;
	/** Writes to the store of processed data that fail, counted from the first. */
	ledgerTroubles: Array<{ nth: number; isWritten: boolean }>;
	acts: Array<{ at: number; what: Act }>;
	/** What happens so long after a run has begun to hand its tasks over to be suspended. */
	handOvers: Array<{ afterMs: number; what: HandOverTrouble }>;
}

/** One item, and nothing goes wrong. */
export const PLAIN: History = {
	salt: 0,
	n8n: 'one process',
	tellsRetried: true,
	slowestQueryMs: 5,
	node: {
		completion: 'wait',
		suspendAfter: 5,
		items: 1,
		onError: 'stopWorkflow',
		ifSomeFail: 'keep',
		maxTries: 1,
		timeoutSeconds: 60,
		pollIntervalSeconds: 2,
		maxInFlight: 10,
		budgetItems: 0,
		isChanging: false,
		downloads: false,
		retryFailed: 0,
	},
	trigger: { maxTries: 1, downloads: false },
	service: {
		slowestAnswerMs: 50,
		longestTaskMs: 1_000,
		failing: [],
		hanging: [],
		maxUnfinished: 0,
		maxPerSecond: 0,
		saysRetryAfter: false,
		lagMs: 0,
		isTalkative: false,
		sendsTwice: false,
	},
	requests: [],
	callbacks: [],
	limits: [],
	keyChanges: [],
	clockJumps: [],
	kills: [],
	ledgerTroubles: [],
	acts: [],
	handOvers: [],
};

/** Troubles happen within this time; then the faults stop. */
export const TROUBLED_MS = 90_000;

/** Most executions are short, so that what is to meet them must come early. */
const at = fc.oneof(fc.nat({ max: 15_000 }), fc.nat({ max: 1_000 }), fc.nat({ max: TROUBLED_MS }));

/** @param weight how often there are any: 2 of 5 histories have none where it is 3 */
const few = <T>(arbitrary: fc.Arbitrary<T>, maxLength: number, weight = 3) =>
	fc.oneof(
		{ withCrossShrink: true },
		{ weight: 2, arbitrary: fc.constant([] as T[]) },
		{ weight, arbitrary: fc.array(arbitrary, { minLength: 1, maxLength, size: 'max' }) },
	);

/** Of the last two processes, which take callbacks, nothing is heard but for a moment; the first three do the rest. */
const kill = (of: 'anything' | 'callbacks') =>
	fc.record({
		process: fc.constantFrom(
			...(of === 'anything' ? [0, 1, 2, 3, 3, 4, 4] : [0, 1, 1, 1, 2, 2, 2, 3, 4]),
		),
		of: fc.constant(of),
		// A callback and the execution that it starts are a dozen effects.
		afterEffects: fc.oneof(fc.nat({ max: of === 'anything' ? 30 : 12 }), fc.nat({ max: 8 })),
		isSeen: fc.boolean(),
		downMs: fc.constantFrom(1_000, 30_000),
	});

/** Generates histories. Whatever has no bearing on a violation shrinks to nothing. */
export const histories: fc.Arbitrary<History> = fc.record({
	salt: fc.nat({ max: 0xffff }),
	n8n: fc.constantFrom('one process', 'queue mode', 'queue mode'),
	tellsRetried: fc.boolean(),
	slowestQueryMs: fc.constantFrom(5, 60, 60, 60),
	node: fc.record({
		completion: fc.oneof(
			{ weight: 6, arbitrary: fc.constant('wait' as const) },
			{ weight: 1, arbitrary: fc.constant('return' as const) },
			{ weight: 6, arbitrary: fc.constant('trigger' as const) },
		),
		// Of a minute's parts most runs see the end while some of their tasks are finished and others are not.
		suspendAfter: fc.constantFrom(5, 0, 0, 0.02, 0.1, 0.3),
		items: fc.integer({ min: 1, max: 8 }),
		onError: fc.constantFrom('stopWorkflow', 'continueRegularOutput', 'continueErrorOutput'),
		ifSomeFail: fc.constantFrom('keep', 'keep', 'keep', 'stop'),
		maxTries: fc.constantFrom(1, 2, 3),
		timeoutSeconds: fc.constantFrom(60, 20, 120),
		pollIntervalSeconds: fc.constantFrom(2, 5),
		maxInFlight: fc.constantFrom(10, 3, 1),
		budgetItems: fc.constantFrom(0, 0, 0, 0, 2, 8),
		isChanging: fc.boolean(),
		downloads: fc.constantFrom(false, false, false, true),
		retryFailed: fc.constantFrom(0, 0, 1, 3),
	}),
	trigger: fc.record({
		maxTries: fc.constantFrom(1, 2),
		downloads: fc.boolean(),
	}),
	service: fc.record({
		slowestAnswerMs: fc.constantFrom(50, 50, 1_000),
		longestTaskMs: fc.constantFrom(1_000, 10_000, 40_000),
		failing: few(fc.nat({ max: 7 }), 6),
		hanging: few(fc.nat({ max: 7 }), 1, 1),
		maxUnfinished: fc.constantFrom(0, 0, 0, 1, 3),
		maxPerSecond: fc.constantFrom(0, 0, 0, 1, 5),
		saysRetryAfter: fc.boolean(),
		lagMs: fc.constantFrom(0, 0, 0, 3_000),
		isTalkative: fc.boolean(),
		sendsTwice: fc.constantFrom(false, true, true),
	}),
	requests: few(
		fc.record({
			on: fc.constantFrom('create', 'create', 'create', 'read', 'read', 'read', 'download'),
			nth: fc.constantFrom(0, 0, 1, 1, 2, 3),
			what: fc.constantFrom(...REQUEST_TROUBLES),
		}),
		8,
		6,
	),
	callbacks: few(
		fc.record({
			nth: fc.nat({ max: 4 }),
			what: fc.constantFrom(...CALLBACK_TROUBLES, 'early'),
		}),
		4,
		4,
	),
	limits: few(
		fc.record({ at, maxUnfinished: fc.constantFrom(0, 1, 3), maxPerSecond: fc.constantFrom(0, 1) }),
		2,
		2,
	),
	keyChanges: few(fc.record({ at, noticedAfterMs: fc.constantFrom(0, 20_000) }), 1, 1),
	clockJumps: few(fc.record({ at, byMs: fc.constantFrom(-3_600_000, 3_600_000) }), 1, 1),
	kills: few(fc.oneof(kill('anything'), { weight: 2, arbitrary: kill('callbacks') }), 3, 8),
	ledgerTroubles: few(fc.record({ nth: fc.nat({ max: 3 }), isWritten: fc.boolean() }), 2, 4),
	acts: few(fc.record({ at, what: fc.constantFrom(...ACTS, 'forge') }), 3, 4),
	handOvers: few(
		fc.record({
			// To store three executions takes a dozen queries.
			afterMs: fc.oneof(fc.nat({ max: 50 }), fc.nat({ max: 1_000 })),
			what: fc.constantFrom(...HAND_OVER_TROUBLES, 'kill', 'stop'),
		}),
		2,
		2,
	),
});
