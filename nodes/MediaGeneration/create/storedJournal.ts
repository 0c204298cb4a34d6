import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import type { ItemPlan, TaskPlan } from '../plan/planTypes';
import { begunAnew, fail, isOrdered, lacksFile, positionOf, type TaskEntry } from './taskEntry';
import { reviveFiles } from '../plan/inputFile';
import type { RunSettings } from '../plan/planRun';
import { furtherFields } from '../report/taskItems';
import { hasEnded, type TaskRecord, withoutFiles } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';
import { isSame } from '../shared/json';
import type { BreakerState } from './circuitBreaker';

/** A turn: its execution, and its number in this run of the node. */
export interface TurnId {
	execution: string;
	turn: number;
}

/** A turn that has written rows. */
export interface BegunTurn extends TurnId {
	/** How many windows of orders it has begun. */
	windows: number;
}

/** A turn that a run goes on from: n8n has not stored what that turn has ordered. */
export interface TurnBefore extends TurnId {
	/** How many orders a window of that turn has; undefined for any number. */
	window?: number | undefined;
	/** Whether that turn has certainly begun: its row may be gone by now. */
	hasBegun?: boolean;
}

/** What n8n stores of a run. All times are milliseconds of the clock. */
export interface StoredRun {
	/** The execution that wrote this last. */
	execution: string;
	startedAt: number;
	/** When the execution began, as far as known: n8n counts its time limit from there. */
	executionStartedAt?: number;
	/** A killed process leaves this as n8n stored it when the run went to sleep: true. */
	isAsleep: boolean;
	/** n8n's tries of the run in this execution (*Retry On Fail*) before the present try. */
	tries: number;
	/**
	 * The number of the turn. The first one has the number 1, or 0 if nothing of the execution was stored before: then a kill
	 * leaves nothing of it.
	 */
	turn: number;
	/** When the run is to be woken. */
	wakeAt?: number;
	/** Whether the run has ended: only the process remembers such a state. */
	hasEnded?: boolean;
	/** Since when nothing was created, and no task has ended, although something is to be ordered. */
	quietSince?: number | undefined;
	/** What was learnt of the account's limits. */
	limits?: IDataObject | undefined;
	/** The last turn that has written its row. */
	begun?: BegunTurn | undefined;
	/** How many orders a window of the next turn has; undefined for any number. */
	window?: number | undefined;
	/** The turns that the run goes on from. */
	before: TurnBefore[];
	settings?: RunSettings | undefined;
	/** What the plans of all entries have in common. */
	common?: Partial<TaskPlan> | undefined;
	entries: TaskEntry[];
}

/** What n8n stores of a node. */
export interface Stored {
	version: number;
	/** By the index of the run. */
	runs: Record<number, StoredRun>;
	/** The executions in which this was written: of a retry the retried ones come first. */
	executions: string[];
	/** Of the retried executions, those of which n8n has stored a state of the node. */
	kept: string[];
	/** Of the retried executions, those whose orders this execution has claimed. */
	claimed: string[];
	/** What the service was seen to do, which the next round of a loop knows, too: a pause that it asks for, and its refusals. */
	pausedUntil?: number | undefined;
	breaker?: BreakerState | undefined;
	/** Whether the service has taken a task of the node: from then on a refusal may be a disturbance. */
	hasCreated?: boolean;
}

/** To be raised when the stored shape changes. */
export const VERSION = 1;

/** A run of which nothing is known. @param isStored whether n8n has stored something of the execution before */
export const newRun = (execution: string, isStored: boolean, now: number): StoredRun => ({
	...{ execution, startedAt: now, isAsleep: false, tries: 0, turn: isStored ? 1 : 0 },
	...{ before: [], entries: [] },
});

/** What n8n stores of a run that is not at its end. */
export function sleepingRun(run: StoredRun, entries: readonly TaskEntry[]): StoredRun {
	const common = commonOf(entries.flatMap(({ plan }) => plan ?? []));
	return { ...run, common, entries: entries.map((entry) => sleepingEntry(entry, common)) };
}

/** The records that n8n has stored, and that were not read again since. */
const isAsStored = new WeakSet<TaskRecord>();

/** A run may have thousands of entries, and each wake reads and writes them all: what no item needs is left out. */
function sleepingEntry(entry: TaskEntry, common: Partial<TaskPlan>): TaskEntry {
	const { task, record, sent, taskId } = entry;
	const stored = { ...entry, plan: withoutCommon(entry, common) };
	// The answer to the order is shown of a task that was not read to its end.
	if (hasEnded(task)) stored.record = undefined;
	else if (record !== undefined) stored.record = furtherFields(record, { ...sent, taskId });
	if (task !== undefined) stored.task = isAsStored.has(task) ? task : sleepingTask(task, sent);
	return stored;
}

/** The record of an unfinished task is read again. Of another record the item shows what it does not say itself. */
function sleepingTask(task: TaskRecord, sent: IDataObject | undefined): TaskRecord {
	if (task.state === 'PENDING') return { ...task, record: {} };
	const cut = withoutFiles(task);
	return { ...cut, record: furtherFields(cut.record, { ...sent, ...cut }) };
}

/** What n8n stores of a run whose items have left: who asks later for its tasks needs no more. */
export function endedRun(run: StoredRun, entries: readonly TaskEntry[]): StoredRun {
	const stored = entries.map(({ itemIndex, taskIndex, state, taskId, failed, costUsd, task }) => {
		const known = { itemIndex, taskIndex, plan: undefined, state, taskId, failed, costUsd };
		return task === undefined ? known : { ...known, task: stateAlone(task) };
	});
	return { ...run, settings: undefined, limits: undefined, common: undefined, entries: stored };
}

/** The state and the cost last; the links perish. */
const stateAlone = ({ taskId, state, creditsConsumed }: TaskRecord): TaskRecord => {
	const known = { taskId, creditsConsumed, record: {} };
	if (state === 'FAILURE') return { ...known, state, reason: undefined };
	return state === 'SUCCESS' ? { ...known, state, resultUrls: [] } : { ...known, state };
};

/** The fields that all plans have alike. */
function commonOf(plans: readonly TaskPlan[]): Partial<TaskPlan> {
	const [first, ...others] = plans;
	if (first === undefined || others.length === 0) return {};
	const isAlike = ([name, value]: [string, unknown]) =>
		name !== 'input' && others.every((plan) => isSame(plan[name as keyof TaskPlan], value));
	return Object.fromEntries(Object.entries(first).filter(isAlike));
}

/** What is stored of a plan. The input that was sent stands in the entry, unless it may be sent again. */
function withoutCommon(
	{ plan, state, sent, failed = [] }: TaskEntry,
	common: Partial<TaskPlan>,
): TaskPlan | undefined {
	if (plan === undefined) return undefined;
	const isCreated = plan.kind === 'create' && state === 'created' && sent !== undefined;
	const isSent = isCreated && failed.length >= plan.retryFailed;
	const left = Object.entries(plan).filter(
		([name]) => !(name in common) && !(isSent && name === 'input'),
	);
	return Object.fromEntries(left) as unknown as TaskPlan;
}

/** The entries of a run as n8n has stored them, with their plans and their files. */
export const revivedEntries = (
	context: IExecuteFunctions,
	{ entries, common }: StoredRun,
): TaskEntry[] => entries.map((entry) => revived(context, entry, common));

function revived(
	context: IExecuteFunctions,
	stored: TaskEntry,
	common: StoredRun['common'],
): TaskEntry {
	const entry = lacksFile(stored) ? begunAnew(stored) : stored;
	if (entry.task) isAsStored.add(entry.task);
	if (!entry.plan) return entry;
	entry.plan = { ...common, ...entry.plan } as TaskPlan;
	const { plan, state } = entry;
	if (plan.kind !== 'create' || plan.input === undefined) return entry;
	try {
		plan.input = reviveFiles(context, plan);
	} catch (error) {
		if (state === 'free') fail(entry, ItemError.from(error));
		// The task goes on without its file. It cannot be created again.
		else plan.retryFailed = 0;
	}
	return entry;
}

/** The settings of a run as n8n has stored them. JSON has no Infinity. */
export function revivedSettings({ settings }: StoredRun): RunSettings {
	const { limitAt, endsAt, suspendAfterMs } = settings ?? {};
	return {
		maxInFlight: 1,
		ifSomeFail: 'keep',
		warnings: [],
		...settings,
		limitAt: limitAt ?? Infinity,
		endsAt: endsAt ?? Infinity,
		suspendAfterMs: suspendAfterMs ?? Infinity,
	};
}

/**
 * The entries of a run that is planned anew. What is ordered stays as it is, whatever the parameters say now; what failed
 * or was not ordered takes the new parameters.
 *
 * @param before the entries of the try before
 * @param items in the order of the input items
 * @param mayFailAgain whether what has failed is tried again
 * @returns in the order of the input items
 */
export function replanned(
	before: readonly TaskEntry[],
	items: readonly ItemPlan[],
	mayFailAgain = true,
): TaskEntry[] {
	const known = new Map(before.map((entry) => [positionOf(entry), entry]));
	const planned = items.flatMap((plan) => {
		const entry = known.get(positionOf(plan));
		if (entry?.end === 'error' && !mayFailAgain) return [entry];
		return plan.kind === 'refused' ? refused(plan, entry, before) : entryOf(plan, entry);
	});
	const positions = new Set(planned.map(positionOf));
	const left = before.filter((entry) => isOrdered(entry) && !positions.has(positionOf(entry)));
	return [...planned, ...left].sort(
		(a, b) => a.itemIndex - b.itemIndex || a.taskIndex - b.taskIndex,
	);
}

type Refused = Extract<ItemPlan, { kind: 'refused' }>;
type Planned = Exclude<ItemPlan, Refused>;

function entryOf(plan: Planned, known: TaskEntry | undefined): TaskEntry {
	const { itemIndex, taskIndex } = plan;
	if (known && isOrdered(known)) {
		const isAlike = known.plan === undefined || known.plan.kind === plan.kind;
		return isAlike ? { ...known, plan } : known;
	}
	// A task that was only read is read on, if it is still the same one.
	if (known && plan.kind === 'read' && known.taskId === plan.taskId) return { ...known, plan };
	return {
		itemIndex,
		taskIndex,
		plan,
		state: 'free',
		...(known?.failed && { failed: known.failed }),
	};
}

/** The refusal of an item concerns what is not ordered. @returns none if all is ordered */
function refused(
	{ itemIndex, taskIndex, error }: Refused,
	known: TaskEntry | undefined,
	before: readonly TaskEntry[],
): TaskEntry[] {
	const isLeft = (entry: TaskEntry) => entry.itemIndex === itemIndex && !isOrdered(entry);
	const left = known && isOrdered(known) ? before.find(isLeft)?.taskIndex : taskIndex;
	const free = left !== undefined && { itemIndex, taskIndex: left, plan: undefined, state: 'free' };
	// Without a plan nobody can go on with the task, which the error names.
	const entry = (free || (known?.plan === undefined && { ...known })) as TaskEntry | false;
	if (!entry) return [];
	fail(entry, error);
	return [entry];
}
