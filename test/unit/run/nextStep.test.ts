import type { TaskEntry } from '../../../nodes/MediaGeneration/create/taskEntry';
import type { TaskPlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import {
	GET_MS,
	nextStep,
	noteRead,
	type RunView,
	type Step,
	timeOf,
} from '../../../nodes/MediaGeneration/run/nextStep';
import { readPauseMs } from '../../../nodes/MediaGeneration/read/readWindow';
import {
	ServiceError,
	type ServiceErrorKind,
} from '../../../nodes/MediaGeneration/service/serviceError';
import {
	type FailedTask,
	parseTaskRecord,
	type TaskRecord,
} from '../../../nodes/MediaGeneration/service/taskRecord';
import { HOUR, MINUTE, SECOND } from '../../durations';
import { createdEntry, entryOf, plan, readPlan } from '../create/entries';

/** A run in which nothing keeps a task from its next step. */
const VIEW: RunView = {
	readIntervalMs: 2 * SECOND,
	isOwn: true,
	turnStartedAt: 0,
	endsAt: Infinity,
	readsPausedUntil: -Infinity,
	hangsUp: false,
	isStopping: false,
	orderUntil: Infinity,
	whyNotTaken: 'The service took no task',
};
const LINK = 'https://m.example.com/1.png';

const record = (state: string, resultUrls: string[] = []): TaskRecord =>
	parseTaskRecord('task-1', { state, resultUrls });
const pending = record('PENDING');
const success = record('SUCCESS', [LINK]);
const linkless = record('SUCCESS');
const failure = record('FAILURE');
const picture = { data: '', mimeType: 'image/png' };

const error = (kind: ServiceErrorKind, more = {}) => new ServiceError(kind, 'So it is', more);
const trouble = (retryAfterMs?: number) => error('serviceDown', { retryAfterMs });
const unknown = () => error('notFound');

/** A step in a few words: `read in 2 s`, `failed: The task is not finished after 600 s`. */
function told(step: Step): string {
	if (step.kind === 'failed') return `failed: ${step.error.told.replace(' (task task-1)', '')}`;
	if (!('at' in step)) return step.kind;
	const ms = step.at - NOW;
	return ms <= 0 ? `${step.kind} now` : `${step.kind} in ${ms / SECOND} s`;
}

const NOW = HOUR;
const get = readPlan({ wait: false });
const wait = readPlan();
const loads = { output: { download: true, split: false, binaryField: 'data' } };
/** A task that is waited for, and was read a moment ago. */
const waiting: Partial<TaskEntry> = {
	...{ readAt: NOW, dueAt: NOW + 2 * SECOND, task: pending },
	until: NOW + 10 * MINUTE,
};
const own = (more: Partial<TaskEntry> = {}) => createdEntry({ ...waiting, ...more });
const foreign = (more: Partial<TaskEntry> = {}) =>
	entryOf({ ...waiting, plan: wait, state: 'created', taskId: 'task-1', ...more });
/** A task of which the last read failed. */
const unread = (more: Partial<TaskEntry> = {}) => own({ trouble: downtime, ...more });
/** A task with so much time, which could not be read for so long after it. */
const unreadFor = (ms: number, timeoutMs: number) =>
	unread({ plan: plan({ timeoutMs }), until: NOW - ms });
const loading = (more: Partial<TaskEntry> = {}) =>
	own({ task: success, plan: plan(loads), ...more });
const downtime = { message: 'The service is down', description: '', statusCode: 503, task: {} };
const failed = { message: 'Overloaded', description: '', statusCode: undefined, task: {} };
const retried = (until: number, at = NOW + 5 * SECOND) =>
	entryOf({ again: { at, until, deadline: NOW + HOUR, failure: failed } });
const now = NOW;
const denied = (ms: number) => ({ trouble: downtime, denied: { isRefusal: false, ms } });
const late = (seconds: number, why = '') =>
	`failed: The task is not finished after ${seconds} s; last state: PENDING${why}`;
const DOWN = '; the last read failed: The service is down';
const GOES_ON = '. It goes on: do not order it again, ask for its result later';
const DOUBT = 'failed: It is not known whether the task was created.';

type Row = [that: string, expected: string, entry: TaskEntry, view?: Partial<RunView>];

const ORDERS: Row[] = [
	['was planned', 'order now', entryOf()],
	['has parameters that are refused', 'left', { ...entryOf(), plan: undefined }],
	[
		'was sent without an answer is never sent again',
		`${DOUBT} Its answer was lost in an earlier try`,
		entryOf({ state: 'sent' }),
	],
	[
		'was sent by a killed turn is never sent again, even if the run stops',
		`${DOUBT} Its execution was killed or stopped in a turn that may have sent it`,
		entryOf({ state: 'sent', doubtIn: '7' }),
		{ isStopping: true },
	],
	['was not sent before the run stops', 'left', entryOf(), { isStopping: true }],
	[
		"was not sent before n8n's time limit",
		'failed: This item was not sent: n8n cancels the execution soon, because its time limit is over',
		entryOf(),
		{ endsAt: now },
	],
	['has a time limit that comes in a second', 'order now', entryOf(), { endsAt: now + SECOND }],
	['has no patience left', 'failed: Full', entryOf(), { orderUntil: now, whyNotTaken: 'Full' }],
	['failed is ordered again after its pause', 'order in 5 s', retried(now + MINUTE)],
	['failed is ordered again until it is too late', 'order now', retried(now + 1, now)],
	['failed, and could not be ordered again in time', 'failed: Overloaded', retried(now)],
	['failed, if the run stops', 'failed: Overloaded', retried(now + MINUTE), { isStopping: true }],
	['nobody waits for', 'result', createdEntry({ plan: plan({ completion: 'return' }) })],
];

const READS: Row[] = [
	['was just created', 'read in 2 s', own({ task: undefined, readAt: undefined })],
	['is of another run', 'read now', entryOf({ plan: wait })],
	['is pending', 'read in 2 s', own()],
	['is pending in a pause of reads', 'read in 60 s', own(), { readsPausedUntil: now + MINUTE }],
	['could not be read since it was pending', 'read in 4 s', unread({ dueAt: now + 4 * SECOND })],
	['could not be read since it had its links', 'read in 2 s', unread({ task: success })],
	['a stopping run has created', 'read in 2 s', own(), { isStopping: true }],
	['a stopping run has not created', 'left', foreign(), { isStopping: true }],
];

const linklessFor = (seconds: number, until = waiting.until) =>
	own({ task: linkless, linklessAt: NOW - seconds * SECOND, until });

const ENDS: Row[] = [
	['succeeded', 'result', own({ task: success })],
	['has links of this turn', 'download now', loading()],
	['has links of an earlier turn', 'read now', loading(), { turnStartedAt: now + 1 }],
	['could not be downloaded', 'download in 60 s', loading({ downloadAt: now + MINUTE })],
	['has its files', 'result', loading({ files: [picture] }), { turnStartedAt: now + 1 }],
	['has no link for 19 s', 'read in 2 s', linklessFor(19)],
	['has no link for 20 s', 'result', linklessFor(20)],
	['has no link when its time is up', 'result', linklessFor(0, now)],
	[
		'failed',
		'failed: The task failed at the service, whose record begins: {"state":"FAILURE","resultUrls":[]}',
		own({ task: failure }),
	],
	['is pending, for Get', 'result', foreign({ plan: get })],
	['failed, for Get', 'result', foreign({ plan: get, task: failure })],
	['has no link, for Get', 'result', foreign({ plan: get, task: linkless })],
	['Get downloads', 'download now', foreign({ plan: { ...get, ...loads }, task: success })],
];

const LIMITS: Row[] = [
	['is read for the last time', 'read in 3 s', own({ until: now + 3 * SECOND })],
	['was read just before its time is up', 'read in 1 s', own({ until: now + SECOND })],
	['was read when its time was up', late(600), own({ until: now })],
	[
		'was read when its time was up, before the run slept: the record was not stored',
		'read now',
		own({ until: now }),
		{ turnStartedAt: now + 1 },
	],
	['could not be read in time is tried again', 'read in 2 s', unread({ until: now })],
	['has ten minutes twice', late(600, DOWN), unreadFor(10 * MINUTE, 10 * MINUTE)],
	['has a day and ten minutes', 'read in 2 s', unreadFor(10 * MINUTE - 4 * SECOND, 24 * HOUR)],
	['had a day and ten minutes', late(86400, DOWN), unreadFor(10 * MINUTE, 24 * HOUR)],
	['has 20 s twice', late(20, DOWN), unreadFor(20 * SECOND, 20 * SECOND)],
	[
		'may not be read when its time is up',
		'read in 60 s',
		own({ until: now }),
		{ readsPausedUntil: now + MINUTE },
	],
	[
		'a caller hears of before it hangs up',
		late(600, DOWN + GOES_ON),
		unread({ until: now }),
		{ hangsUp: true },
	],
	[
		"is cut short by n8n's time limit",
		late(60),
		own({ createdAt: now - MINUTE, readAt: now - SECOND }),
		{ endsAt: now },
	],
	['is denied for less than five minutes', 'read in 2 s', own(denied(5 * MINUTE - 1))],
	['is denied for five minutes', 'failed: The service is down', own(denied(5 * MINUTE))],
	[
		'is of another run and denied, never read',
		'read in 2 s',
		foreign({ task: undefined, ...denied(5 * MINUTE - 1) }),
	],
	[
		'is of another run and denied for five minutes',
		'failed: The service is down',
		foreign({ task: undefined, ...denied(5 * MINUTE) }),
	],
	['has moments that are not whole', 'read in 2.00025 s', own({ dueAt: now + 2000.25 })],
];

describe.each([
	['orders', ORDERS],
	['reads', READS],
	['ends', ENDS],
	['limits', LIMITS],
])('what is next (%s)', (_what, rows) => {
	it.each(rows)('of a task that %s: %s', (_that, expected, entry, view = {}) => {
		const isOwn = entry.plan?.kind !== 'read';
		expect(told(nextStep(entry, { ...VIEW, isOwn, ...view }, NOW))).toBe(expected);
	});
});

type Answer = 'PENDING' | 'SUCCESS' | 'linkless' | ServiceError;

interface Given {
	item?: TaskPlan;
	/** When the time of the task is up; undefined: it begins with the first read. */
	until?: number;
	/** How long the service takes to answer, milliseconds. */
	answerMs?: number;
	firstAt?: number;
	readIntervalMs?: number;
	endsAt?: number;
}

function recordOf(answer: Answer): TaskRecord | ServiceError {
	if (answer instanceof ServiceError) return answer;
	if (answer === 'linkless') return linkless;
	return answer === 'SUCCESS' ? success : pending;
}

/** One task whose nth read is answered by the nth answer, and by the last one from then on. */
function reading(answers: Answer[], given: Given = {}) {
	const { item = plan(), answerMs = 0, firstAt = 2 * SECOND, endsAt = Infinity } = given;
	const isOwn = item.kind === 'create';
	const { until = isOwn ? HOUR : undefined } = given;
	const view = { ...VIEW, isOwn, endsAt };
	const entry = createdEntry({
		plan: item,
		until,
		dueAt: firstAt,
		createdAt: isOwn ? 0 : undefined,
	});
	const sentAt: number[] = [];
	const pauses: number[] = [];
	for (let now = 0, answeredAt = NaN; ;) {
		const step = nextStep(entry, view, now);
		if ('at' in step && step.at > now) now = step.at;
		else if (step.kind !== 'read') {
			const message = 'error' in step ? step.error.told : '';
			const end = message.startsWith('The task is not finished after') ? 'timeIsUp' : step.kind;
			return { end, message, step, at: now / SECOND, sentAt, pauses };
		} else {
			if (sentAt.length > 0) pauses.push((now - answeredAt) / SECOND);
			sentAt.push(now / SECOND);
			now = answeredAt = now + answerMs;
			const answer = answers[Math.min(sentAt.length, answers.length) - 1] ?? 'PENDING';
			entry.until ??= now + timeOf(item);
			const age = now - (entry.createdAt ?? entry.until - timeOf(item));
			const { readIntervalMs = readPauseMs(age) } = given;
			noteRead(entry, recordOf(answer), { ...view, readIntervalMs }, now);
		}
	}
}

const ofOthers = { item: readPlan({ timeoutMs: HOUR }) };

it.each([
	[2, 0],
	[8, 9000],
])('%d s are kept from an answer that took %d ms to the next read', (interval, answerMs) => {
	const { pauses } = reading(['PENDING'], { readIntervalMs: interval * SECOND, answerMs });
	expect(pauses.length).toBeGreaterThan(200);
	// The last read waits for the end.
	expect(new Set(pauses.slice(0, -1))).toEqual(new Set([interval]));
});

describe('the pause between two reads grows with the age of the task', () => {
	it.each([
		[0, 2],
		[20, 2],
		[30, 3],
		[50, 5],
		[3600, 5],
	])('at %d s it is %d s', (ageS, pauseS) => {
		expect(readPauseMs(ageS * SECOND)).toBe(pauseS * SECOND);
	});

	it.each([plan({ timeoutMs: HOUR }), ofOthers.item])('an hour takes 740 reads', (item) => {
		const { sentAt, pauses } = reading(['PENDING'], { item });
		expect(sentAt.length).toBeLessThanOrEqual(740);
		expect([pauses[0], pauses.at(-2)]).toEqual([2, 5]);
	});
});

describe("the service's lasting word that there is no such task", () => {
	it.each<[string, Answer[], Given]>([
		['a foreign one that was never read', [], ofOthers],
		['a foreign one that was read', ['PENDING'], ofOthers],
		['an own one', ['PENDING'], {}],
	])('for five minutes ends the wait for %s', (_what, before, given) => {
		const ended = reading([...before, unknown()], given);
		expect(ended).toMatchObject({ end: 'failed', message: 'So it is (task task-1)' });
		expect(ended.at).toBeGreaterThanOrEqual(300);
		expect(ended.at).toBeLessThan(335);
	});

	it('counts a minute at most from one answer to the next: a run that sleeps has asked seldom', () => {
		const entry = createdEntry({ plan: plan({ timeoutMs: HOUR }) });
		for (let nth = 0; nth <= 5; nth++) {
			expect(entry.denied?.ms ?? 0).toBeLessThan(5 * MINUTE);
			noteRead(entry, unknown(), VIEW, nth * 15 * MINUTE);
		}
		expect(entry.denied).toEqual({ isRefusal: false, ms: 5 * MINUTE });
	});

	it('counts anew after an answer with a state', () => {
		const entry = createdEntry({ plan: plan({ timeoutMs: HOUR }) });
		for (const answer of [unknown(), unknown(), pending, unknown()]) {
			noteRead(entry, answer, VIEW, (entry.readAt ?? 0) + MINUTE);
		}
		expect(entry.denied).toEqual({ isRefusal: false, ms: 0 });
	});

	const stranger = { ...unknown().meaning, speaker: 'stranger' as const };
	it.each<[string, Answer[], string]>([
		['is a key that is refused for good, for a foreign task', [error('unauthorized')], 'failed'],
		['is no such key once it was read', ['PENDING', error('unauthorized')], 'timeIsUp'],
		['is not the word of a proxy', [error('notFound', { meaning: stranger })], 'timeIsUp'],
		...[402, 405, 423, 429, 500].map((statusCode): [string, Answer[], string] => [
			`is not HTTP ${statusCode}`,
			[error('rejected', { statusCode })],
			'timeIsUp',
		]),
	])('%s', (_what, answers, end) => {
		expect(reading(answers, ofOthers)).toMatchObject({ end });
	});
});

it('a success without a usable link counts from the first such answer of those in a row', () => {
	const { end, at } = reading(['linkless', 'PENDING', 'linkless']);
	expect(end).toBe('result');
	expect(at).toBeGreaterThanOrEqual(6 + 20);
	expect(at).toBeLessThan(6 + 20 + 5);
});

describe('Get', () => {
	it.each([0, 10 * MINUTE])('tries for half a minute from its first read (%d)', (firstAt) => {
		const ended = reading([trouble()], { item: get, firstAt });
		const at = (firstAt + GET_MS) / SECOND;
		expect(ended).toMatchObject({ end: 'failed', at, message: 'So it is (task task-1)' });
	});

	it('that was never let in says so', () => {
		const view = { ...VIEW, readsPausedUntil: NOW + HOUR };
		const step = nextStep(createdEntry({ plan: get, until: NOW }), view, NOW + GET_MS);
		expect(told(step)).toBe('failed: The service lets no read in');
	});
});

describe('when the time is up', () => {
	it.each([0, 500, 1900, 3000])(
		'no two reads are nearer than 2 s, answers of %d ms',
		(answerMs) => {
			for (let until = 2000; until < 16_000; until += 300) {
				const given = { until, readIntervalMs: 3000, answerMs };
				const { pauses, at } = reading(['PENDING', trouble(), 'PENDING'], given);
				expect(Math.min(...pauses, Infinity)).toBeGreaterThanOrEqual(2);
				expect(Math.round(at * SECOND)).toBeLessThanOrEqual(until + 3000 + 2 * answerMs);
			}
		},
	);

	it("n8n's time limit ends the wait before, with a last read, and the error says so", () => {
		const ended = reading(['PENDING'], { endsAt: 7 * SECOND });
		expect(ended).toMatchObject({ end: 'timeIsUp', sentAt: [2, 4, 7] });
		const { description = '' } = (ended.step as Extract<Step, { kind: 'failed' }>).error;
		expect(description).toContain('raise the time limit of the workflow');
		expect(description).not.toContain('Timeout');
	});
});

const asking = (seconds: number) => trouble(seconds * SECOND);
const [t, u] = [trouble(), error('unusableRecord')];

it.each<[string, Answer[], number[]]>([
	['is met with ever longer pauses', [t, t, t, t, t, t, t], [2, 4, 8, 16, 30, 30, 30]],
	['that is over brings the interval back', [t, t, 'PENDING', t], [2, 4, 2, 2]],
	['is met at the interval if it is an answer without a state', [u, u, u, u], [2, 2, 2, 2]],
	['with Retry-After is followed by that pause', [asking(7), asking(45)], [7, 45]],
	['with a short Retry-After is followed by 2 s', [asking(1)], [2]],
])('trouble that may pass %s', (_what, answers, pauses) => {
	expect(reading([...answers, 'SUCCESS']).pauses).toEqual(pauses);
});

describe('a task that failed', () => {
	const FAILED_AT = 100 * SECOND;

	const failedTask = (creditsConsumed: number | null = 0): FailedTask => ({
		...{ taskId: 'task-1', state: 'FAILURE', creditsConsumed },
		...{ record: {}, reason: 'Overloaded' },
	});

	/** A task of ten seconds, after so many others that failed. */
	const ofTenSeconds = (before = 0, until = 600 * SECOND): Partial<TaskEntry> => ({
		...{ createdAt: 90 * SECOND, until, readAt: FAILED_AT },
		failed: Array.from({ length: before }, (_, index) => `earlier-${index}`),
	});

	function afterFailure(retryFailed: number, known = ofTenSeconds(), task = failedTask()) {
		const entry = createdEntry({ plan: plan({ retryFailed }), task, ...known });
		return nextStep(entry, VIEW, FAILED_AT);
	}

	it('is ordered again after a pause that doubles each time', () => {
		for (const [before, seconds] of [5, 10, 20, 40, 80].entries()) {
			const again = { at: FAILED_AT + seconds * SECOND };
			expect(afterFailure(5, ofTenSeconds(before))).toMatchObject({ again });
		}
	});

	it.each([
		['leaves the next task as much time as it took', 600, { until: 590_000, deadline: 600_000 }],
		['is ordered again just in time', 116, { at: 105_000, until: 106_000 }],
	])('%s', (_what, seconds, again) => {
		expect(afterFailure(5, ofTenSeconds(0, seconds * SECOND))).toMatchObject({ again });
	});

	it('is named where another task comes to nothing', () => {
		const description = expect.stringContaining('not created again in time') as string;
		const failure = { message: 'Overloaded', task: { taskId: 'task-1' }, description };
		expect(afterFailure(1)).toMatchObject({ again: { failure } });
	});

	it('is taken for free where the service does not say what a failed task costs', () => {
		const step = afterFailure(1, ofTenSeconds(), failedTask(null));
		expect(step).toMatchObject({ again: { at: 105_000 } });
	});

	it.each<[string, Parameters<typeof afterFailure>, RegExp]>([
		['nobody asks for it', [0], /'Retry Failed Tasks' creates it again/],
		['it was often enough', [2, ofTenSeconds(2)], /3 tasks of this item have failed/],
		['the time is short', [2, ofTenSeconds(0, 115 * SECOND)], /too little time was left/],
		['a failed task is billed', [2, ofTenSeconds(), failedTask(8)], /charged 8 credits/],
	])('is not ordered again where %s, and says so', (_what, given, why) => {
		const step = afterFailure(...given);
		if (step.kind !== 'failed') throw new Error(`It has not failed: ${step.kind}`);
		expect(step.error.told).toBe('Overloaded (task task-1)');
		expect(step.error.description).toMatch(/Change the prompt or the input of this item/);
		expect(step.error.description).toMatch(why);
		expect(step.error.task).toMatchObject({ taskId: 'task-1', state: 'FAILURE' });
	});

	it('and was created elsewhere is not ordered again', () => {
		const step = nextStep(foreign({ task: failedTask() }), { ...VIEW, isOwn: false }, NOW);
		const description = expect.stringContaining('A failed task stays failed') as string;
		expect(step).toMatchObject({ error: { description } });
	});
});
