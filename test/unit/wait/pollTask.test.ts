import { Hold } from '../../../nodes/MediaGeneration/wait/hold';
import { waitForTask } from '../../../nodes/MediaGeneration/wait/pollTask';
import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import {
	parseTaskRecord,
	type TaskRecord,
} from '../../../nodes/MediaGeneration/service/taskRecord';
import { sleepUntil, Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { FakeClock } from '../support';

const SECOND = 1000;
const HOUR = 3600 * SECOND;

type Answer = string | ServiceError;

const trouble = (retryAfterMs?: number) =>
	new ServiceError('serviceDown', 'The service is not working', {
		...(retryAfterMs !== undefined && { retryAfterMs }),
	});
const noState = () => new ServiceError('unusableRecord', 'No state');

/** One wait whose nth read is answered by the nth answer, and by the last one from then on. */
function waiting(
	answers: Answer[],
	{ answerMs = 0, ...options } = {} as {
		answerMs?: number;
		timeoutMs?: number;
		pollIntervalMs?: number;
		signal?: AbortSignal;
		isAbandoned?: () => boolean;
		isOwn?: boolean;
		holdOf?: (clock: FakeClock) => Hold;
	},
) {
	const clock = new FakeClock();
	/** When each read was sent, and when it was answered. */
	const reads: Array<{ sent: number; answered: number }> = [];
	const { timeoutMs = HOUR, pollIntervalMs = 2 * SECOND, signal, isAbandoned, holdOf } = options;
	const { isOwn = false } = options;
	const hold = holdOf?.(clock);
	const read = async (taskId: string): Promise<TaskRecord> => {
		const answer = answers[Math.min(reads.length, answers.length - 1)] ?? '';
		const sent = clock.now();
		clock.pass(answerMs);
		reads.push({ sent, answered: clock.now() });
		if (typeof answer !== 'string') throw answer;
		return parseTaskRecord(taskId, { state: answer });
	};
	const result = waitForTask({
		taskId: 'task-1',
		read,
		clock,
		firstReadAt: pollIntervalMs,
		deadline: timeoutMs,
		pollIntervalMs,
		signal,
		isOwn,
		hold: hold ?? new Hold(clock, Infinity, []),
		nextSlot: () => clock.now(),
		...(isAbandoned && { isAbandoned }),
	});
	return { result, reads, clock };
}

/** From each answer to the next read. */
const pauses = (reads: Array<{ sent: number; answered: number }>) =>
	reads.slice(1).map(({ sent }, index) => sent - (reads[index]?.answered ?? 0));

const times = <T>(count: number, value: T) => Array<T>(count).fill(value);

describe('the interval', () => {
	it('lies before the first read too', async () => {
		const { result, reads } = waiting(['SUCCESS']);
		await result;
		expect(reads.map(({ sent }) => sent)).toEqual([2 * SECOND]);
	});

	it.each([
		[2, 0],
		[2, 1500],
		[5, 0],
		[5, 9000],
	])(
		'of %d s is kept from an answer that took %d ms to the next read, for hours',
		async (interval, answerMs) => {
			const { result, reads } = waiting(['PENDING'], {
				timeoutMs: 3 * HOUR,
				pollIntervalMs: interval * SECOND,
				answerMs,
			});
			await result;
			expect(reads.length).toBeGreaterThan(700);
			// The last read waits for the deadline.
			expect(new Set(pauses(reads).slice(0, -1))).toEqual(new Set([interval * SECOND]));
		},
	);
});

describe('a finished task', () => {
	it.each(['SUCCESS', 'FAILURE'])('ends the wait with %s', async (state) => {
		const { result, reads } = waiting(['PENDING', 'running', state]);
		expect(await result).toMatchObject({ taskId: 'task-1', state });
		expect(reads).toHaveLength(3);
	});
});

describe('at the deadline', () => {
	it('the wait ends with the last record, and at no later time', async () => {
		const { result, reads, clock } = waiting(['PENDING'], { timeoutMs: 7 * SECOND });
		expect(await result).toMatchObject({
			state: 'PENDING',
			last: { state: 'PENDING' },
			lastError: undefined,
		});
		expect(reads.map(({ sent }) => sent / SECOND)).toEqual([2, 4, 7]);
		expect(clock.now()).toBe(7 * SECOND);
	});

	it('a read that is due at that very moment is still made', async () => {
		const { result } = waiting(['PENDING', 'SUCCESS'], { timeoutMs: 4 * SECOND });
		expect(await result).toMatchObject({ state: 'SUCCESS' });
	});

	it('the wait names what the last read failed with', async () => {
		const { result } = waiting(['PENDING', trouble()], { timeoutMs: 10 * SECOND });
		expect(await result).toMatchObject({
			state: 'PENDING',
			last: { state: 'PENDING' },
			lastError: { kind: 'serviceDown' },
		});
	});

	it('an answer has made earlier trouble forgotten', async () => {
		const { result } = waiting([trouble(), 'PENDING'], { timeoutMs: 10 * SECOND });
		expect(await result).toMatchObject({ lastError: undefined });
	});

	it('a wait shorter than the interval reads once', async () => {
		const { result, reads } = waiting(['SUCCESS'], { timeoutMs: SECOND });
		expect(await result).toMatchObject({ state: 'SUCCESS' });
		expect(reads.map(({ sent }) => sent / SECOND)).toEqual([1]);
	});

	it('a task that is done 1.5 s before it, and after the last interval, is seen', async () => {
		const { result, clock } = waiting([...times(119, 'PENDING'), 'SUCCESS'], {
			timeoutMs: 600 * SECOND - 1,
			pollIntervalMs: 5 * SECOND,
		});
		expect(await result).toMatchObject({ state: 'SUCCESS' });
		expect(clock.now()).toBe(600 * SECOND - 1);
	});

	it.each([0, 500, 1900, 3000])(
		'no two reads are nearer than 2 s, answers of %d ms',
		async (ms) => {
			for (let timeoutMs = 2000; timeoutMs < 16_000; timeoutMs += 100) {
				const { result, reads, clock } = waiting(['PENDING', trouble(), 'PENDING'], {
					timeoutMs,
					pollIntervalMs: 3000,
					answerMs: ms,
				});
				await result;
				expect(Math.min(...pauses(reads), Infinity)).toBeGreaterThanOrEqual(2000);
				expect(clock.now()).toBeLessThanOrEqual(timeoutMs + ms);
			}
		},
	);

	it('a Retry-After beyond it does not prolong the wait', async () => {
		const { result, reads, clock } = waiting([trouble(9 * HOUR)], { timeoutMs: 60 * SECOND });
		await result;
		expect(clock.now()).toBe(60 * SECOND);
		expect(reads).toHaveLength(1);
	});
});

describe('trouble that may pass', () => {
	it('is met with ever longer pauses, up to half a minute', async () => {
		const { result, reads } = waiting([...times(7, trouble()), 'SUCCESS']);
		await result;
		expect(pauses(reads).map((ms) => ms / SECOND)).toEqual([2, 4, 8, 16, 30, 30, 30]);
	});

	it('that is over brings the interval back', async () => {
		const { result, reads } = waiting([trouble(), trouble(), 'PENDING', trouble(), 'SUCCESS']);
		await result;
		expect(pauses(reads).map((ms) => ms / SECOND)).toEqual([2, 4, 2, 2]);
	});

	it('for hours does not end a task that finishes in the end', async () => {
		const { result, clock } = waiting([...times(700, trouble()), 'SUCCESS'], {
			timeoutMs: 9 * HOUR,
		});
		expect(await result).toMatchObject({ state: 'SUCCESS' });
		expect(clock.now()).toBeGreaterThan(5 * HOUR);
	});

	it.each([
		[1, 2],
		[7, 7],
		[45, 45],
	])('with Retry-After of %d s is followed by a pause of %d s', async (asked, paused) => {
		const { result, reads } = waiting([trouble(asked * SECOND), 'SUCCESS']);
		await result;
		expect(pauses(reads)).toEqual([paused * SECOND]);
	});

	it.each([
		'tooManyRequests',
		'serviceDown',
		'unreachable',
		'noAnswer',
		'unexpectedAnswer',
		'unusableRecord',
	] as const)('%s is one of the kind', async (kind) => {
		const { result } = waiting([new ServiceError(kind, ''), 'SUCCESS']);
		expect(await result).toMatchObject({ state: 'SUCCESS' });
	});
});

describe('trouble that will not pass', () => {
	it.each(['unauthorized', 'notFound', 'rejected', 'noCredits', 'cancelled'] as const)(
		'%s ends the wait at once',
		async (kind) => {
			const { result, reads } = waiting(['PENDING', new ServiceError(kind, 'So it is')]);
			await expect(result).rejects.toMatchObject({ kind });
			expect(reads).toHaveLength(2);
		},
	);

	it('three records without a state in a row end the wait', async () => {
		const { result, reads } = waiting([noState(), noState(), noState(), 'SUCCESS']);
		await expect(result).rejects.toMatchObject({ kind: 'unusableRecord' });
		expect(reads).toHaveLength(3);
	});

	it('two of them, then a record, and two again do not', async () => {
		const { result } = waiting([noState(), noState(), 'PENDING', noState(), noState(), 'SUCCESS']);
		expect(await result).toMatchObject({ state: 'SUCCESS' });
	});
});

describe('a task that this node created', () => {
	const refused = (kind: 'notFound' | 'unauthorized') => new ServiceError(kind, 'So it is');
	const own = { isOwn: true };

	it.each(['notFound', 'unauthorized'] as const)(
		'survives two answers in a row that say %s',
		async (kind) => {
			const { result, reads } = waiting([refused(kind), refused(kind), 'SUCCESS'], own);
			expect(await result).toMatchObject({ state: 'SUCCESS' });
			expect(pauses(reads)).toEqual([2 * SECOND, 4 * SECOND]);
		},
	);

	it('is given up after three of them in a row, of whatever kind', async () => {
		const { result, reads } = waiting(
			[refused('notFound'), noState(), refused('unauthorized'), 'SUCCESS'],
			own,
		);
		await expect(result).rejects.toMatchObject({ kind: 'unauthorized' });
		expect(reads).toHaveLength(3);
	});

	it('has all its chances again after each record', async () => {
		const twice = times(2, refused('notFound'));
		const { result } = waiting([...twice, 'PENDING', ...twice, 'SUCCESS'], own);
		expect(await result).toMatchObject({ state: 'SUCCESS' });
	});

	it.each(['rejected', 'noCredits', 'cancelled'] as const)('has none at %s', async (kind) => {
		const { result, reads } = waiting([new ServiceError(kind, 'So it is'), 'SUCCESS'], own);
		await expect(result).rejects.toMatchObject({ kind });
		expect(reads).toHaveLength(1);
	});
});

it.each([true, false])("a firewall's page is no word of the API (own task: %s)", async (isOwn) => {
	const page = new ServiceError('unauthorized', 'HTTP 403', { isForeign: true });
	const { result } = waiting([...times(9, page), 'SUCCESS'], { isOwn });
	expect(await result).toMatchObject({ state: 'SUCCESS' });
});

it('a redirect, such as to a page about maintenance, ends no wait for an own task', async () => {
	const redirect = new ServiceError('redirected', 'HTTP 302', { statusCode: 302 });
	const { result } = waiting([...times(9, redirect), 'SUCCESS'], { isOwn: true });
	expect(await result).toMatchObject({ state: 'SUCCESS' });
	const other = waiting([redirect, 'SUCCESS']);
	await expect(other.result).rejects.toMatchObject({ kind: 'redirected' });
});

describe('a wait that nobody needs any more', () => {
	it('is left before its next read', async () => {
		let abandoned = false;
		const { result, reads } = waiting(['PENDING'], { isAbandoned: () => abandoned });
		while (reads.length < 2) await Promise.resolve();
		abandoned = true;
		expect(await result).toMatchObject({ state: 'PENDING' });
		expect(reads).toHaveLength(2);
	});
});

describe('a task whose run is held no longer', () => {
	it('is handed over after the read that finds it unfinished, with its last record', async () => {
		const holdOf = (clock: FakeClock) => new Hold(clock, 5 * SECOND, []);
		const { result, reads } = waiting(['QUEUED', 'RUNNING'], { holdOf });
		expect(await result).toMatchObject({
			isHandedOver: true,
			last: { record: { state: 'RUNNING' } },
		});
		expect(reads.map(({ sent }) => sent / SECOND)).toEqual([2, 4, 6]);
	});

	it('is not handed over where that read finds it finished', async () => {
		const holdOf = (clock: FakeClock) => new Hold(clock, 5 * SECOND, []);
		const { result } = waiting(['PENDING', 'PENDING', 'SUCCESS'], { holdOf });
		expect(await result).toMatchObject({ state: 'SUCCESS', taskId: 'task-1' });
	});

	it('is handed over although it could not be read, with what was known before', async () => {
		const holdOf = (clock: FakeClock) => new Hold(clock, 3 * SECOND, []);
		const { result } = waiting(['PENDING', trouble()], { holdOf });
		expect(await result).toMatchObject({
			isHandedOver: true,
			last: { record: { state: 'PENDING' } },
			lastError: { kind: 'serviceDown' },
		});
	});

	it('is an error, and not handed over, where reading on is no use', async () => {
		const holdOf = (clock: FakeClock) => new Hold(clock, 0, []);
		const gone = new ServiceError('notFound', 'No such task');
		await expect(waiting([gone], { holdOf }).result).rejects.toBe(gone);
	});

	it('is given up, and not handed over, where its time is up in the same moment', async () => {
		const holdOf = (clock: FakeClock) => new Hold(clock, 6 * SECOND, []);
		const { result } = waiting(['PENDING'], { holdOf, timeoutMs: 6 * SECOND });
		expect(await result).toMatchObject({ isHandedOver: false });
	});
});

describe('a stop', () => {
	it('before the first read lets no read happen', async () => {
		const { result, reads } = waiting(['SUCCESS'], { signal: AbortSignal.abort() });
		await expect(result).rejects.toBeInstanceOf(Stopped);
		expect(reads).toEqual([]);
	});
});

describe('sleeping until a moment', () => {
	it('goes on where a timer went off a little early', async () => {
		const clock = new FakeClock();
		clock.sleep = async () => clock.pass(40);
		await sleepUntil(100, clock, undefined);
		expect(clock.now()).toBe(120);
	});

	it('comes in pieces that a timer can hold, where the moment is months away', async () => {
		const clock = new FakeClock();
		await sleepUntil(90 * 24 * HOUR, clock, undefined);
		expect(clock.now()).toBe(90 * 24 * HOUR);
		expect(Math.max(...clock.sleeps)).toBeLessThan(2 ** 31);
	});

	it('takes no time for a moment that has passed', async () => {
		const clock = new FakeClock(500);
		await sleepUntil(100, clock, undefined);
		expect(clock.sleeps).toEqual([]);
	});
});
