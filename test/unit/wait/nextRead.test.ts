import {
	type ServiceErrorKind,
	ServiceError,
} from '../../../nodes/MediaGeneration/service/serviceError';
import { parseTaskRecord } from '../../../nodes/MediaGeneration/service/taskRecord';
import {
	afterRead,
	type Known,
	nextRead,
	type ReadRule,
} from '../../../nodes/MediaGeneration/wait/nextRead';
import { HOUR, SECOND } from '../../durations';

type Answer = 'PENDING' | 'SUCCESS' | 'FAILURE' | 'running' | 'linkless' | ServiceError;

const error = (kind: ServiceErrorKind, more = {}) => new ServiceError(kind, 'So it is', more);
const trouble = (retryAfterMs?: number) => error('serviceDown', { retryAfterMs });
const unknown = () => error('notFound');
const times = <T>(count: number, value: T) => Array<T>(count).fill(value);

function recordOf(answer: Exclude<Answer, ServiceError>) {
	const resultUrls = answer === 'SUCCESS' ? ['https://m.example.com/1.png'] : [];
	return parseTaskRecord('task-1', {
		state: answer === 'linkless' ? 'SUCCESS' : answer,
		resultUrls,
	});
}

interface Given extends Partial<ReadRule> {
	/** How long the service takes to answer, milliseconds. */
	answerMs?: number;
	firstAt?: number;
}

/** One task whose nth read is answered by the nth answer, and by the last one from then on. */
function reading(answers: Answer[], { answerMs = 0, firstAt = 2 * SECOND, ...rules }: Given = {}) {
	const rule = { pollIntervalMs: 2 * SECOND, deadline: HOUR, isOwn: true, ...rules };
	const reads: Array<{ sent: number; answered: number }> = [];
	let known: Known = { dueAt: firstAt, failures: 0 };
	for (let now = 0; ;) {
		const next = nextRead(known, rule, now);
		if (next.kind !== 'read') {
			const sentAt = reads.map(({ sent }) => sent / SECOND);
			const pauses = reads
				.slice(1)
				.map(({ sent }, index) => (sent - (reads[index]?.answered ?? 0)) / SECOND);
			return { ...next, at: now / SECOND, reads: reads.length, sentAt, pauses };
		}
		const sent = Math.max(now, next.at);
		now = sent + answerMs;
		const answer = answers[Math.min(reads.length, answers.length - 1)] ?? 'PENDING';
		reads.push({ sent, answered: now });
		known = afterRead(known, answer instanceof ServiceError ? answer : recordOf(answer), rule, now);
	}
}

const FOREIGN = { isOwn: false };

it.each([
	[2, 0],
	[5, 9000],
])('%d s are kept from an answer that took %d ms to the next read, for hours', (interval, ms) => {
	const waits = { deadline: 3 * HOUR, pollIntervalMs: interval * SECOND, answerMs: ms };
	const { reads, pauses } = reading(['PENDING'], waits);
	expect(reads).toBeGreaterThan(700);
	// The last read waits for the deadline.
	expect(new Set(pauses.slice(0, -1))).toEqual(new Set([interval]));
});

describe('an own task is read until its time is up', () => {
	const ANSWERS: Array<[string, ServiceError]> = [
		['402', error('noCredits', { statusCode: 402 })],
		...[405, 409, 423].map((statusCode): [string, ServiceError] => [
			String(statusCode),
			error('rejected', { statusCode }),
		]),
		...[425, 499, 500, 502, 503].map((statusCode): [string, ServiceError] => [
			String(statusCode),
			error('serviceDown', { statusCode }),
		]),
		['404', unknown()],
		['401', error('unauthorized', { statusCode: 401 })],
		['a redirect', error('redirected', { statusCode: 302 })],
		['429', error('tooManyRequests')],
		['no connection', error('unreachable')],
		['no answer', error('noAnswer')],
		['a page of a gateway', error('unexpectedAnswer')],
		['a record without a state', error('unusableRecord')],
	];

	it.each(ANSWERS)('with %s to single reads', (_what, answer) => {
		const answers = ['PENDING' as const, ...times(9, answer), 'SUCCESS' as const];
		expect(reading(answers)).toMatchObject({ kind: 'finished', reads: 11 });
	});

	it.each(ANSWERS)('with %s to every read', (_what, answer) => {
		expect(reading([answer])).toMatchObject({ kind: 'timeIsUp', at: HOUR / SECOND });
	});
});

describe('a task is found finished', () => {
	// Without a third value Jest hands over a callback in its place.
	it.each<[string, Answer[], Given]>([
		['after other states', ['PENDING', 'running', 'SUCCESS'], {}],
		['at the very deadline', ['PENDING', 'SUCCESS'], { deadline: 4 * SECOND }],
		['in a wait shorter than the interval', ['SUCCESS'], { deadline: SECOND }],
		['as a failed one', ['FAILURE'], {}],
		['as a foreign one', ['PENDING', 'SUCCESS'], FOREIGN],
		['as a foreign one, after trouble', [...times(9, trouble()), 'SUCCESS'], FOREIGN],
		[
			'as a foreign one that a replica does not know yet',
			[...times(3, unknown()), 'SUCCESS'],
			FOREIGN,
		],
		[
			'as a foreign one that is unknown now and then',
			[...times(20, [unknown(), trouble()]).flat(), 'SUCCESS'],
			FOREIGN,
		],
	])('%s', (_what, answers, given) => {
		expect(reading(answers, given)).toMatchObject({ kind: 'finished', reads: answers.length });
	});
});

describe('a foreign id', () => {
	it("ends with the service's lasting word that there is no such task", () => {
		const ended = reading(['PENDING', unknown()], FOREIGN);
		expect(ended).toMatchObject({ kind: 'noSuchTask', error: { kind: 'notFound' } });
		expect(ended.at).toBeGreaterThanOrEqual(10);
		expect(ended.at).toBeLessThan(30);
	});

	it('ends with a key that is refused for good, if it was never read', () => {
		const refused = error('unauthorized');
		expect(reading([refused], FOREIGN)).toMatchObject({ kind: 'noSuchTask' });
		expect(reading(['PENDING', refused], FOREIGN)).toMatchObject({ kind: 'timeIsUp' });
	});

	it.each([402, 405, 423, 429, 500])('does not end with HTTP %d', (statusCode) => {
		const refused = error('rejected', { statusCode });
		expect(reading([refused], FOREIGN)).toMatchObject({ kind: 'timeIsUp' });
	});
});

describe('a success without a usable link', () => {
	it('is read again for a while, and then leaves as it is', () => {
		const ended = reading(['PENDING', 'linkless']);
		expect(ended).toMatchObject({ kind: 'finished', task: { state: 'SUCCESS', resultUrls: [] } });
		expect(ended.at).toBe(4 + 20);
	});

	it('leaves with its links when they come', () => {
		const ended = reading(['linkless', 'linkless', 'SUCCESS']);
		expect(ended).toMatchObject({ kind: 'finished', reads: 3 });
	});

	it('leaves at the deadline', () => {
		const ended = reading(['linkless'], { deadline: 6 * SECOND });
		expect(ended).toMatchObject({ kind: 'finished', at: 6 });
	});
});

describe('Get', () => {
	const once = { ...FOREIGN, isOnce: true, deadline: 30 * SECOND, firstAt: 0 };

	it.each(['PENDING', 'SUCCESS', 'FAILURE', 'linkless'] as const)('is answered by %s', (answer) => {
		expect(reading([answer], once)).toMatchObject({ kind: 'found', reads: 1 });
	});

	it('ends with the trouble that lasts', () => {
		expect(reading([trouble()], once)).toMatchObject({ kind: 'timeIsUp', at: 30 });
	});
});

describe('at the deadline', () => {
	it.each<[string, Answer[], number, number[]]>([
		['a pending task', ['PENDING'], 7, [2, 4, 7]],
		['a task whose read fails', ['PENDING', trouble()], 10, [2, 4, 6, 10]],
		['a task that could be read again', [trouble(), 'PENDING'], 10, [2, 4, 6, 8, 10]],
	])('%s is read once more, and not later', (_what, answers, seconds, sentAt) => {
		const ended = reading(answers, { deadline: seconds * SECOND });
		expect(ended).toMatchObject({ kind: 'timeIsUp', sentAt, at: seconds });
	});

	it.each([0, 500, 1900, 3000])(
		'no two reads are nearer than 2 s, answers of %d ms',
		(answerMs) => {
			for (let deadline = 2000; deadline < 16_000; deadline += 100) {
				const given = { deadline, pollIntervalMs: 3000, answerMs };
				const { pauses, at } = reading(['PENDING', trouble(), 'PENDING'], given);
				expect(Math.min(...pauses, Infinity)).toBeGreaterThanOrEqual(2);
				expect(Math.round(at * SECOND)).toBeLessThanOrEqual(deadline + answerMs);
			}
		},
	);

	it('a Retry-After beyond it does not prolong the wait', () => {
		const ended = reading([trouble(9 * HOUR)], { deadline: 60 * SECOND });
		expect(ended).toMatchObject({ kind: 'timeIsUp', at: 60, reads: 2 });
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

	it('for hours does not end a task that finishes in the end', () => {
		const ended = reading([...times(700, trouble()), 'SUCCESS'], { deadline: 9 * HOUR });
		expect(ended.kind).toBe('finished');
		expect(ended.at).toBeGreaterThan((5 * HOUR) / SECOND);
	});
});

it('a rounded time between two reads ends no wait', () => {
	const known = { dueAt: 2_000.1, answeredAt: 0.2, failures: 0, last: undefined };
	const rule = { pollIntervalMs: 2_000, deadline: HOUR, isOwn: true };
	expect(nextRead(known, rule, 0.2)).toEqual({ kind: 'read', at: 2_000.1 });
});
