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
const FOREIGN = { isOwn: false };
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
const times = <T>(count: number, value: T) => Array<T>(count).fill(value);

/** A step in a few words: `read in 2 s`, `failed: The task is not finished after 600 s`. */
function told(step: Step, now: number): string {
	if ('at' in step) {
		const ms = step.at - now;
		return ms <= 0 ? `${step.kind} now` : `${step.kind} in ${ms / SECOND} s`;
	}
	if (step.kind === 'failed') return `failed: ${step.error.told}`;
	if (step.kind !== 'orderAgain') return step.kind;
	return `order again in ${(step.again.at - now) / SECOND} s`;
}

const NOW = HOUR;
const get = readPlan({ wait: false });
const wait = readPlan();
const download = { download: true, split: false, binaryField: 'data' };
const until = NOW + 10 * MINUTE;
/** A task that is waited for, and was read a moment ago. */
const waiting: Partial<TaskEntry> = { until, readAt: NOW, dueAt: NOW + 2 * SECOND, task: pending };
/** The same of another run. */
const foreignEntry = (more: Partial<TaskEntry> = {}) =>
	entryOf({ ...waiting, plan: wait, state: 'created', taskId: 'task-1', ...more });
const downtime = { message: 'The service is down', description: '', statusCode: 503, task: {} };
const failed = { message: 'Overloaded', description: '', statusCode: undefined, task: {} };
const again = { at: NOW + 5 * SECOND, until: NOW + MINUTE, deadline: NOW + HOUR, failure: failed };
const now = NOW;
const ago = (ms: number) => NOW - ms;
const unknownFor = (ms: number) => ({ isRefusal: false, ms });

const ORDERS: Array<[knows: string, TaskEntry, Partial<RunView>, string]> = [
	['a task that was planned is ordered', entryOf(), {}, 'order now'],
	[
		'an item whose parameters are refused needs nothing',
		{ ...entryOf(), plan: undefined },
		{},
		'left',
	],
	[
		'an order without an answer is never sent again',
		entryOf({ state: 'sent' }),
		{},
		'failed: It is not known whether the task was created. Its answer was lost in an earlier try',
	],
	[
		'an order of a killed turn is never sent again, even if the run stops',
		entryOf({ state: 'sent', doubtIn: '7' }),
		{ isStopping: true },
		'failed: It is not known whether the task was created. Its execution was killed or stopped in a turn that may have sent it',
	],
	['a run that stops orders nothing more', entryOf(), { isStopping: true }, 'left'],
	[
		"nothing is ordered when n8n's time limit is near",
		entryOf(),
		{ endsAt: now },
		'failed: This item was not sent: n8n cancels the execution soon, because its time limit is over',
	],
	[
		'the time limit that comes in a second keeps no order back',
		entryOf(),
		{ endsAt: now + SECOND },
		'order now',
	],
	[
		'an item whose patience is over says why it was not taken',
		entryOf(),
		{ orderUntil: now, whyNotTaken: 'The account is full' },
		'failed: The account is full',
	],
	['a task that failed is ordered again after its pause', entryOf({ again }), {}, 'order in 5 s'],
	[
		'a task that failed is ordered again until it is too late',
		entryOf({ again: { ...again, at: now, until: now + 1 } }),
		{},
		'order now',
	],
	[
		'a task that failed, and could not be ordered again in time, has failed',
		entryOf({ again: { ...again, until: now } }),
		{},
		'failed: Overloaded',
	],
	[
		'a task that failed has failed, if the run stops',
		entryOf({ again }),
		{ isStopping: true },
		'failed: Overloaded',
	],
	[
		'a task of an item that does not wait has its result when it is ordered',
		createdEntry({ plan: plan({ completion: 'return' }) }),
		{},
		'result',
	],
];

const READS: Array<[knows: string, TaskEntry, Partial<RunView>, string]> = [
	[
		'a task that was created a moment ago is read when it is due',
		createdEntry({ until, dueAt: now + 2 * SECOND }),
		{},
		'read in 2 s',
	],
	['a task of another run is read at once', entryOf({ plan: wait }), FOREIGN, 'read now'],
	['a pending task is read when it is due', createdEntry(waiting), {}, 'read in 2 s'],
	[
		'no task is read in a pause that the service asks for',
		createdEntry(waiting),
		{ readsPausedUntil: now + MINUTE },
		'read in 60 s',
	],
	[
		'a task whose last read failed is read again, although a read before found it pending',
		createdEntry({ ...waiting, trouble: downtime, dueAt: now + 4 * SECOND }),
		{},
		'read in 4 s',
	],
	[
		'a task whose last read failed is read again, although a read before found its links',
		createdEntry({ ...waiting, task: success, trouble: downtime }),
		{},
		'read in 2 s',
	],
	[
		'a run that stops reads the tasks that it has created',
		createdEntry(waiting),
		{ isStopping: true },
		'read in 2 s',
	],
	[
		'a run that stops reads no task of another run',
		entryOf({ ...waiting, plan: wait }),
		{ ...FOREIGN, isStopping: true },
		'left',
	],
];

const ENDS: Array<[knows: string, TaskEntry, Partial<RunView>, string]> = [
	[
		'a task that succeeded has its result',
		createdEntry({ ...waiting, task: success }),
		{},
		'result',
	],
	[
		'a result is downloaded with the links of this turn',
		createdEntry({ ...waiting, task: success, plan: plan({ output: download }) }),
		{},
		'download now',
	],
	[
		'a link of an earlier turn may have expired, so the task is read',
		createdEntry({ ...waiting, task: success, plan: plan({ output: download }) }),
		{ turnStartedAt: now + 1 },
		'read now',
	],
	[
		'a download that failed is tried again at its moment',
		createdEntry({
			...waiting,
			task: success,
			plan: plan({ output: download }),
			downloadAt: now + MINUTE,
		}),
		{},
		'download in 60 s',
	],
	[
		'what is downloaded is the result, also in a later turn',
		createdEntry({ ...waiting, task: success, plan: plan({ output: download }), files: [picture] }),
		{ turnStartedAt: now + 1 },
		'result',
	],
	[
		'a success without a link is read again for a while',
		createdEntry({ ...waiting, task: linkless, linklessAt: ago(19 * SECOND) }),
		{},
		'read in 2 s',
	],
	[
		'a success without a link is the result after 20 s',
		createdEntry({ ...waiting, task: linkless, linklessAt: ago(20 * SECOND) }),
		{},
		'result',
	],
	[
		'a success without a link is the result when the time of the task is up',
		createdEntry({ ...waiting, task: linkless, linklessAt: now, until: now }),
		{},
		'result',
	],
	[
		'a task that failed has failed',
		createdEntry({ ...waiting, task: failure }),
		{},
		'failed: The task failed at the service, whose record begins: {"state":"FAILURE","resultUrls":[]} (task task-1)',
	],
	['Get is answered by a pending task', entryOf({ ...waiting, plan: get }), FOREIGN, 'result'],
	[
		'Get is answered by a failed task',
		entryOf({ ...waiting, plan: get, task: failure }),
		FOREIGN,
		'result',
	],
	[
		'Get is answered by a success without a link',
		entryOf({ ...waiting, plan: get, task: linkless }),
		FOREIGN,
		'result',
	],
	[
		'Get downloads what has a link, if asked to',
		entryOf({ ...waiting, plan: { ...get, output: download }, task: success }),
		FOREIGN,
		'download now',
	],
];

const LATE = 'failed: The task is not finished after 600 s; last state: PENDING';
const LIMITS: Array<[knows: string, TaskEntry, Partial<RunView>, string]> = [
	[
		'the last read of a task comes when its time is up',
		createdEntry({ ...waiting, until: now + 3 * SECOND }),
		{},
		'read in 3 s',
	],
	[
		'a task that was read less than 2 s before its time is up is not read again',
		createdEntry({ ...waiting, until: now + SECOND }),
		{},
		'read in 1 s',
	],
	[
		'a task that was read when its time was up has failed',
		createdEntry({ ...waiting, until: now }),
		{},
		`${LATE} (task task-1)`,
	],
	[
		'a task that was read a moment before its time was up, before the run slept, is read once more: its record was not stored',
		createdEntry({ ...waiting, until: now }),
		{ turnStartedAt: now + 1 },
		'read now',
	],
	[
		'a task that could not be read is tried for as long again',
		createdEntry({ ...waiting, until: now, trouble: downtime }),
		{},
		'read in 2 s',
	],
	[
		'a task that could not be read for as long again has failed',
		createdEntry({ ...waiting, until: ago(10 * MINUTE), trouble: downtime }),
		{},
		`${LATE}; the last read failed: The service is down (task task-1)`,
	],
	[
		'a task with a day is tried for ten minutes more',
		createdEntry({
			...waiting,
			plan: plan({ timeoutMs: 24 * HOUR }),
			until: ago(10 * MINUTE - 4 * SECOND),
			trouble: downtime,
		}),
		{},
		'read in 2 s',
	],
	[
		'a task with a day is not tried for longer',
		createdEntry({
			...waiting,
			plan: plan({ timeoutMs: 24 * HOUR }),
			until: ago(10 * MINUTE),
			trouble: downtime,
		}),
		{},
		'failed: The task is not finished after 86400 s; last state: PENDING; the last read failed: The service is down (task task-1)',
	],
	[
		'a task with 20 s is tried for 20 s more',
		createdEntry({
			...waiting,
			plan: plan({ timeoutMs: 20 * SECOND }),
			until: ago(20 * SECOND),
			trouble: downtime,
		}),
		{},
		'failed: The task is not finished after 20 s; last state: PENDING; the last read failed: The service is down (task task-1)',
	],
	[
		'a pause of reads beyond the time of a task makes the time longer',
		createdEntry({ ...waiting, until: now }),
		{ readsPausedUntil: now + MINUTE },
		'read in 60 s',
	],
	[
		'a caller that hangs up hears of its task in time',
		createdEntry({ ...waiting, until: now, trouble: downtime }),
		{ hangsUp: true },
		`${LATE}; the last read failed: The service is down. It goes on: do not order it again, ask for its result later (task task-1)`,
	],
	[
		"a wait ends for n8n's time limit, and says after how long",
		createdEntry({ ...waiting, createdAt: ago(MINUTE), readAt: ago(SECOND) }),
		{ endsAt: now },
		`${LATE.replace('600', '60')} (task task-1)`,
	],
	[
		'an own task is read while the service says for less than five minutes that there is none',
		createdEntry({ ...waiting, trouble: downtime, denied: unknownFor(5 * MINUTE - 1) }),
		{},
		'read in 2 s',
	],
	[
		'an own task of which the service says for five minutes that there is none has failed',
		createdEntry({ ...waiting, trouble: downtime, denied: unknownFor(5 * MINUTE) }),
		{},
		'failed: The service is down (task task-1)',
	],
	[
		'a task of another run that was never read is read while the service says for less than five minutes that there is none',
		foreignEntry({ task: undefined, trouble: downtime, denied: unknownFor(5 * MINUTE - 1) }),
		FOREIGN,
		'read in 2 s',
	],
	[
		'a task of another run has failed when the service says so for five minutes',
		foreignEntry({ task: undefined, trouble: downtime, denied: unknownFor(5 * MINUTE) }),
		FOREIGN,
		'failed: The service is down (task task-1)',
	],
	[
		'a rounded time between two reads ends no wait',
		createdEntry({ until, readAt: now + 0.25, dueAt: now + 2000.25, task: pending }),
		{},
		'read in 2.00025 s',
	],
];

describe.each([
	['to be ordered', ORDERS],
	['that is read', READS],
	['that has ended', ENDS],
	['with a limit', LIMITS],
])('of a task %s the next step is decided:', (_what, rows) => {
	it.each(rows)('%s', (_sentence, entry, view, expected) => {
		expect(told(nextStep(entry, { ...VIEW, ...view }, NOW), NOW)).toBe(expected);
	});
});

type Answer = 'PENDING' | 'SUCCESS' | 'FAILURE' | 'running' | 'linkless' | ServiceError;

interface Given extends Partial<RunView> {
	item?: TaskPlan;
	/** When the time of the task is up; undefined: it begins with the first read. */
	until?: number;
	/** How long the service takes to answer, milliseconds. */
	answerMs?: number;
	/** When the task is read first. */
	firstAt?: number;
}

function recordOf(answer: Answer): TaskRecord | ServiceError {
	if (answer instanceof ServiceError) return answer;
	if (answer === 'linkless') return linkless;
	return record(answer, answer === 'SUCCESS' ? [LINK] : []);
}

/** One task whose nth read is answered by the nth answer, and by the last one from then on. */
function reading(answers: Answer[], given: Given = {}) {
	const { item = plan(), answerMs = 0, firstAt = 2 * SECOND, ...more } = given;
	const { until = item.kind === 'create' ? HOUR : undefined, ...run } = more;
	const view = { ...VIEW, isOwn: item.kind === 'create', ...run };
	const createdAt = item.kind === 'create' ? 0 : undefined;
	const entry = createdEntry({ plan: item, until, dueAt: firstAt, createdAt });
	const reads: Array<{ sent: number; answered: number }> = [];
	for (let now = 0; ;) {
		const step = nextStep(entry, view, now);
		if ('at' in step && step.at > now) now = step.at;
		else if (step.kind !== 'read') {
			const sentAt = reads.map(({ sent }) => sent / SECOND);
			const pauses = reads
				.slice(1)
				.map(({ sent }, index) => (sent - (reads[index]?.answered ?? 0)) / SECOND);
			const message = 'error' in step ? step.error.told : '';
			const isLate = message.startsWith('The task is not finished after');
			const end = isLate ? 'timeIsUp' : step.kind;
			return { end, message, at: now / SECOND, reads: reads.length, sentAt, pauses, entry };
		} else {
			const sent = now;
			now += answerMs;
			const answer = answers[Math.min(reads.length, answers.length - 1)] ?? 'PENDING';
			reads.push({ sent, answered: now });
			entry.until ??= now + timeOf(item);
			const bornAt = entry.createdAt ?? entry.until - timeOf(item);
			const readIntervalMs = run.readIntervalMs ?? readPauseMs(now - bornAt);
			noteRead(entry, recordOf(answer), { ...view, readIntervalMs }, now);
		}
	}
}

const foreign = { item: readPlan({ timeoutMs: HOUR }) };

it.each([
	[2, 0],
	[8, 9000],
])('%d s are kept from an answer that took %d ms to the next read, for hours', (interval, ms) => {
	const waits = { until: 3 * HOUR, readIntervalMs: interval * SECOND, answerMs: ms };
	const { reads, pauses } = reading(['PENDING'], waits);
	expect(reads).toBeGreaterThan(600);
	// The last read waits for the end.
	expect(new Set(pauses.slice(0, -1))).toEqual(new Set([interval]));
});

describe('the pause between two reads grows with the age of the task', () => {
	it.each<[ageS: number, pauseS: number]>([
		[0, 2],
		[20, 2],
		[30, 3],
		[50, 5],
		[3600, 5],
	])('at %d s it is %d s', (ageS, pauseS) => {
		expect(readPauseMs(ageS * SECOND)).toBe(pauseS * SECOND);
	});

	it('an hour takes 740 reads and not 1,800, of a task of this run and of another', () => {
		for (const item of [plan({ timeoutMs: HOUR }), readPlan({ timeoutMs: HOUR })]) {
			const { reads, pauses } = reading(['PENDING'], { item });
			expect(reads).toBeLessThanOrEqual(740);
			expect([pauses[0], pauses.at(-2)]).toEqual([2, 5]);
		}
	});
});

describe("the service's lasting word that there is no such task", () => {
	it.each<[string, Answer[], Given]>([
		['a foreign one that was never read', [], foreign],
		['a foreign one that was read', ['PENDING'], foreign],
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

	it('is also a key that is refused for good, for a foreign task that was never read', () => {
		const refused = error('unauthorized');
		expect(reading([refused], foreign)).toMatchObject({ end: 'failed' });
		expect(reading(['PENDING', refused], foreign)).toMatchObject({ end: 'timeIsUp' });
	});

	it('is not the word of a proxy', () => {
		const meaning = { ...unknown().meaning, speaker: 'stranger' as const };
		expect(reading([error('notFound', { meaning })], foreign)).toMatchObject({ end: 'timeIsUp' });
	});

	it.each([402, 405, 423, 429, 500])('is not HTTP %d', (statusCode) => {
		const refused = error('rejected', { statusCode });
		expect(reading([refused], foreign)).toMatchObject({ end: 'timeIsUp' });
	});
});

describe('a success without a usable link', () => {
	it('counts from the first such answer of those that came in a row', () => {
		const ended = reading(['linkless', 'PENDING', 'linkless']);
		expect(ended.end).toBe('result');
		expect(ended.at).toBeGreaterThanOrEqual(6 + 20);
		expect(ended.at).toBeLessThan(6 + 20 + 5);
	});
});

describe('Get', () => {
	const once = { item: get, firstAt: 0 };

	it('tries for half a minute from the first read of each task, and ends with the trouble', () => {
		for (const firstAt of [0, 10 * MINUTE]) {
			const ended = reading([trouble()], { ...once, firstAt });
			expect(ended).toMatchObject({ end: 'failed', at: (firstAt + GET_MS) / SECOND });
			expect(ended.message).toBe('So it is (task task-1)');
		}
	});

	it('that was never let in says so', () => {
		const entry = createdEntry({ plan: get, until: NOW });
		const step = nextStep(entry, { ...VIEW, readsPausedUntil: NOW + HOUR }, NOW + GET_MS);
		expect(told(step, NOW)).toBe('failed: The service lets no read in (task task-1)');
	});
});

describe('when the time is up', () => {
	it.each([0, 500, 1900, 3000])(
		'no two reads are nearer than 2 s, answers of %d ms',
		(answerMs) => {
			for (let until = 2000; until < 16_000; until += 100) {
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
		const step = nextStep(ended.entry, { ...VIEW, endsAt: 7 * SECOND }, 7 * SECOND);
		const { description = '' } = (step as Extract<Step, { kind: 'failed' }>).error;
		expect(description).toContain('raise the time limit of the workflow');
		expect(description).not.toContain('Timeout');
	});
});

describe('trouble that may pass', () => {
	it.each<[string, Answer[], number[]]>([
		[
			'is met with ever longer pauses, up to half a minute',
			times(7, trouble()),
			[2, 4, 8, 16, 30, 30, 30],
		],
		[
			'that is over brings the interval back',
			[...times(2, trouble()), 'PENDING', trouble()],
			[2, 4, 2, 2],
		],
		[
			'is met at the interval where the service answers without a state',
			times(4, error('unusableRecord')),
			[2, 2, 2, 2],
		],
		...[1, 7, 45].map((seconds): [string, Answer[], number[]] => [
			`with Retry-After of ${seconds} s is followed by a pause of that length, and of 2 s at least`,
			[trouble(seconds * SECOND)],
			[Math.max(seconds, 2)],
		]),
	])('%s', (_what, answers, pauses) => {
		expect(reading([...answers, 'SUCCESS']).pauses).toEqual(pauses);
	});
});

describe('a task that failed', () => {
	const FAILED_AT = 100 * SECOND;

	const failedTask = (creditsConsumed: number | null = 0): FailedTask => ({
		taskId: 'task-1',
		state: 'FAILURE',
		creditsConsumed,
		record: {},
		reason: 'Overloaded',
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

	function againOf(...given: Parameters<typeof afterFailure>) {
		const step = afterFailure(...given);
		if (step.kind !== 'orderAgain') throw new Error(`It is not ordered again: ${step.kind}`);
		return step.again;
	}

	it('is ordered again after a pause that doubles each time', () => {
		const pauses = [0, 1, 2, 3, 4].map((before) => againOf(5, ofTenSeconds(before)).at - FAILED_AT);
		expect(pauses).toEqual([5, 10, 20, 40, 80].map((seconds) => seconds * SECOND));
	});

	it('leaves the next task as much time as it took itself, up to the same end', () => {
		expect(againOf(5)).toMatchObject({ until: 590 * SECOND, deadline: 600 * SECOND });
		const justInTime = againOf(5, ofTenSeconds(0, 116 * SECOND));
		expect(justInTime).toMatchObject({ at: 105 * SECOND, until: 106 * SECOND });
		expect(afterFailure(5, ofTenSeconds(0, 115 * SECOND))).toMatchObject({ kind: 'failed' });
	});

	it('is named where another task comes to nothing', () => {
		expect(againOf(1).failure).toMatchObject({
			message: 'Overloaded',
			task: { taskId: 'task-1' },
			description: expect.stringContaining('not created again in time') as string,
		});
	});

	it('is taken for free where the service does not say what a failed task costs', () => {
		expect(againOf(1, ofTenSeconds(), failedTask(null))).toMatchObject({ at: 105 * SECOND });
	});

	it.each<[string, Parameters<typeof afterFailure>, RegExp]>([
		['nobody asks for it', [0], /'Retry Failed Tasks' creates it again/],
		['it was often enough', [2, ofTenSeconds(2)], /3 tasks of this item have failed/],
		['the time is short', [2, ofTenSeconds(0, 114 * SECOND)], /too little time was left/],
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
		const entry = entryOf({ plan: wait, taskId: 'task-1', task: failedTask(), readAt: NOW });
		const step = nextStep(entry, { ...VIEW, isOwn: false }, NOW);
		expect(step).toMatchObject({
			error: { description: expect.stringContaining('A failed task stays failed') as string },
		});
	});
});
