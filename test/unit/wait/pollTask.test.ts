import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { parseTaskRecord } from '../../../nodes/MediaGeneration/service/taskRecord';
import { Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import {
	SuspendAfter,
	pollTask,
	type WaitOptions,
} from '../../../nodes/MediaGeneration/wait/pollTask';
import { FakeClock } from '../support';
import { HOUR, MINUTE, SECOND } from '../../durations';

type Answer = string | ServiceError;
type Kind = ServiceError['kind'];

const error = (kind: Kind, more = {}) => new ServiceError(kind, 'So it is', more);
const trouble = (retryAfterMs?: number) =>
	error('serviceDown', retryAfterMs === undefined ? {} : { retryAfterMs });
const noState = () => error('unusableRecord');
const times = <T>(count: number, value: T) => Array<T>(count).fill(value);

interface Given extends Partial<WaitOptions> {
	/** How long the service takes to answer, milliseconds. */
	answerMs?: number;
	/** The run is held for so long. */
	heldMs?: number;
}

/** One wait whose nth read is answered by the nth answer, and by the last one from then on. */
function waiting(answers: Answer[], { answerMs = 0, heldMs = Infinity, ...options }: Given = {}) {
	const clock = new FakeClock();
	/** When each read was sent, and when it was answered. */
	const reads: Array<{ sent: number; answered: number }> = [];
	const { pollIntervalMs = 2 * SECOND } = options;
	const result = pollTask({
		read: async () => {
			const answer = answers[Math.min(reads.length, answers.length - 1)] ?? '';
			const sent = clock.now();
			clock.pass(answerMs);
			reads.push({ sent, answered: clock.now() });
			if (typeof answer !== 'string') throw answer;
			return parseTaskRecord('task-1', { state: answer });
		},
		firstReadAt: pollIntervalMs,
		deadline: HOUR,
		pollIntervalMs,
		signal: undefined,
		isOwn: false,
		suspendAfter: new SuspendAfter(heldMs, []),
		nextSlot: () => clock.now(),
		...options,
	});
	const sentAt = () => reads.map(({ sent }) => sent / SECOND);
	/** From each answer to the next read. */
	const pauses = () =>
		reads.slice(1).map(({ sent }, index) => (sent - (reads[index]?.answered ?? 0)) / SECOND);
	return { result, reads, clock, sentAt, pauses };
}

const OWN = { isOwn: true };
const SUCCESS = { taskId: 'task-1', state: 'SUCCESS' };

it.each([
	[2, 0],
	[5, 9000],
])('%d s are kept from an answer that took %d ms to the next read, for hours', async (...given) => {
	const [interval, answerMs] = given;
	const waits = { deadline: 3 * HOUR, pollIntervalMs: interval * SECOND, answerMs };
	const { result, reads, pauses } = waiting(['PENDING'], waits);
	await result;
	expect(reads.length).toBeGreaterThan(700);
	// The last read waits for the deadline.
	expect(new Set(pauses().slice(0, -1))).toEqual(new Set([interval]));
});

describe('a task is found finished', () => {
	type Case = [what: string, answers: Answer[], given?: Given];
	const redirect = () => error('redirected', { statusCode: 302 });
	const page = () => error('unauthorized', { isForeign: true });
	const [unknown, refused] = [error('notFound'), error('unauthorized')];
	const two = [noState(), noState()];

	it.each<Case>([
		['after other states', ['PENDING', 'running', 'SUCCESS']],
		['at the very deadline', ['PENDING', 'SUCCESS'], { deadline: 4 * SECOND }],
		['in a wait shorter than the interval', ['SUCCESS'], { deadline: SECOND }],
		['after two records without a state, twice', [...two, 'PENDING', ...two, 'SUCCESS']],
		["after a firewall's pages, which are no word of the API", [...times(9, page()), 'SUCCESS']],
		["after a firewall's pages, as an own task", [...times(9, page()), 'SUCCESS'], OWN],
		['after redirects, as an own task', [...times(9, redirect()), 'SUCCESS'], OWN],
		['as an own task, after two answers that do not know it', [unknown, unknown, 'SUCCESS'], OWN],
		['as an own task, after two answers that refuse the key', [refused, refused, 'SUCCESS'], OWN],
		[
			'after answers that do not know it, with other trouble between them',
			[unknown, trouble(), unknown, trouble(), unknown, 'SUCCESS'],
			OWN,
		],
		[
			'and not handed over where the hold ends',
			['PENDING', 'PENDING', 'SUCCESS'],
			{ heldMs: 5 * SECOND },
		],
		['after trouble that may pass', [trouble(), 'SUCCESS']],
	])('%s', async (...[, answers, given]) => {
		const { result, reads } = waiting(answers, given);
		expect(await result).toMatchObject(SUCCESS);
		expect(reads).toHaveLength(answers.length);
	});

	it('as a failed one', async () => {
		expect(await waiting(['FAILURE']).result).toMatchObject({ state: 'FAILURE' });
	});
});

describe('trouble that will not pass ends the wait', () => {
	type Case = [what: string, answers: Answer[], kind: Kind, given?: Given];
	const FOR_OWN: Kind[] = ['rejected', 'noCredits'];
	const FOR_ALL: Kind[] = [...FOR_OWN, 'unauthorized', 'notFound', 'redirected'];

	it.each<Case>([
		...FOR_ALL.map((kind): Case => [`at once: ${kind}`, ['PENDING', error(kind)], kind]),
		...FOR_OWN.map((kind): Case => [`at once, own: ${kind}`, [error(kind)], kind, OWN]),
		['after three records without a state in a row', times(3, noState()), 'unusableRecord'],
		[
			'of an own task after three of its kind in a row',
			[error('notFound'), noState(), error('unauthorized')],
			'unauthorized',
			OWN,
		],
		['and is not handed over', [error('notFound')], 'notFound', { heldMs: 0 }],
	])('%s', async (...[, answers, kind, given]) => {
		const { result, reads } = waiting([...answers, 'SUCCESS'], given);
		await expect(result).rejects.toMatchObject({ kind });
		expect(reads).toHaveLength(answers.length);
	});
});

describe('at the deadline', () => {
	it.each<[string, Answer[], number, string | undefined, number[]]>([
		['the last record', ['PENDING'], 7, undefined, [2, 4, 7]],
		['what the last read failed with', ['PENDING', trouble()], 10, 'So it is', [2, 4, 6, 10]],
		['no trouble that an answer ended', [trouble(), 'PENDING'], 10, undefined, [2, 4, 6, 8, 10]],
	])('the wait ends with %s, and at no later time', async (_what, answers, seconds, said, at) => {
		const { result, sentAt, clock } = waiting(answers, { deadline: seconds * SECOND });
		const last = { state: 'PENDING' };
		expect(await result).toMatchObject({ last, isHandedOver: false, trouble: said });
		expect(sentAt()).toEqual(at);
		expect(clock.now()).toBe(seconds * SECOND);
	});

	it.each([0, 500, 1900, 3000])(
		'no two reads are nearer than 2 s, answers of %d ms',
		async (answerMs) => {
			for (let deadline = 2000; deadline < 16_000; deadline += 100) {
				const given = { deadline, pollIntervalMs: 3000, answerMs };
				const { result, pauses, clock } = waiting(['PENDING', trouble(), 'PENDING'], given);
				await result;
				expect(Math.min(...pauses(), Infinity)).toBeGreaterThanOrEqual(2);
				expect(clock.now()).toBeLessThanOrEqual(deadline + answerMs);
			}
		},
	);

	it('a Retry-After beyond it does not prolong the wait', async () => {
		const { result, reads, clock } = waiting([trouble(9 * HOUR)], { deadline: 60 * SECOND });
		await result;
		expect([clock.now(), reads.length]).toEqual([60 * SECOND, 1]);
	});
});

describe('trouble that may pass', () => {
	it.each<[string, Answer[], number[], Given?]>([
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
		['of an own task is met so, too', times(2, error('notFound')), [2, 4], OWN],
		...[1, 7, 45].map((seconds): [string, Answer[], number[]] => [
			`with Retry-After of ${seconds} s is followed by a pause of that length, and of 2 s at least`,
			[trouble(seconds * SECOND)],
			[Math.max(seconds, 2)],
		]),
	])('%s', async (...[, answers, expected, given]) => {
		const { result, pauses } = waiting([...answers, 'SUCCESS'], given);
		await result;
		expect(pauses()).toEqual(expected);
	});

	it('for hours does not end a task that finishes in the end', async () => {
		const given = { deadline: 9 * HOUR };
		const { result, clock } = waiting([...times(700, trouble()), 'SUCCESS'], given);
		expect(await result).toMatchObject(SUCCESS);
		expect(clock.now()).toBeGreaterThan(5 * HOUR);
	});
});

it('a wait that nobody needs any more is left before its next read', async () => {
	let isAbandoned = false;
	const { result, reads } = waiting(['PENDING'], { isAbandoned: () => isAbandoned });
	while (reads.length < 2) await Promise.resolve();
	isAbandoned = true;
	expect(await result).toMatchObject({ isHandedOver: false });
	expect(reads).toHaveLength(2);
});

describe('a task whose run is held no longer', () => {
	it('is handed over after the read that finds it unfinished, with its last record', async () => {
		const onUnfinished = jest.fn();
		const given = { heldMs: 5 * SECOND, onUnfinished };
		const { result, sentAt } = waiting(['QUEUED', 'RUNNING'], given);
		const last = { record: { state: 'RUNNING' } };
		expect(await result).toMatchObject({ isHandedOver: true, last });
		expect(sentAt()).toEqual([2, 4, 6]);
		expect(onUnfinished).toHaveBeenCalledTimes(3);
	});

	it('is handed over although it could not be read, with what was known before', async () => {
		const { result } = waiting(['PENDING', trouble()], { heldMs: 3 * SECOND });
		expect(await result).toMatchObject({
			isHandedOver: true,
			last: { record: { state: 'PENDING' } },
			trouble: 'So it is',
		});
	});

	it('is handed over when the hold ends, although the service asked to wait longer', async () => {
		const given = { heldMs: 300 * SECOND, deadline: 24 * HOUR };
		const { result, reads, clock } = waiting([trouble(9 * HOUR)], given);
		expect(await result).toMatchObject({ isHandedOver: true });
		expect(clock.now()).toBeLessThan(340 * SECOND);
		expect(reads).toHaveLength(1);
	});

	it('is given up, and not handed over, where its time is up in the same moment', async () => {
		const { result } = waiting(['PENDING'], { heldMs: 6 * SECOND, deadline: 6 * SECOND });
		expect(await result).toMatchObject({ isHandedOver: false });
	});
});

it('what is no trouble of the service ends the wait at once', async () => {
	const { result, reads } = waiting([new Error('Odd') as ServiceError]);
	await expect(result).rejects.toThrow('Odd');
	expect(reads).toHaveLength(1);
});

it('a stop before the first read lets no read happen', async () => {
	const { result, reads } = waiting(['SUCCESS'], { signal: AbortSignal.abort() });
	await expect(result).rejects.toBeInstanceOf(Stopped);
	expect(reads).toEqual([]);
});

describe('a run', () => {
	const [ONE, OTHER] = [{}, {}];

	/** A run that is held for so long after its last create. */
	function held(afterMs: number, ...creates: object[]) {
		const clock = new FakeClock(7 * MINUTE);
		const suspendAfter = new SuspendAfter(afterMs, creates);
		const isOverAfter = (ms: number) => {
			clock.pass(ms);
			return suspendAfter.isOver;
		};
		/** The item creates its last task. */
		const created = (item: object) => {
			suspendAfter.created();
			suspendAfter.close(item);
		};
		return { suspendAfter, isOverAfter, created };
	}

	it('that creates nothing is held from its beginning on', () => {
		const { isOverAfter } = held(MINUTE);
		expect([isOverAfter(MINUTE - 1), isOverAfter(1)]).toEqual([false, true]);
	});

	it('is held until so long after its last create', () => {
		const { isOverAfter, created } = held(MINUTE, ONE, OTHER);
		created(ONE);
		expect(isOverAfter(10 * MINUTE)).toBe(false);
		created(OTHER);
		expect([isOverAfter(MINUTE - 1), isOverAfter(1)]).toEqual([false, true]);
	});

	it('is held no longer for an item that has come to its end', () => {
		const { suspendAfter, isOverAfter } = held(MINUTE, ONE, OTHER);
		suspendAfter.created();
		suspendAfter.close(ONE);
		expect(isOverAfter(MINUTE)).toBe(false);
		// One that was refused created no task at all.
		suspendAfter.close(OTHER);
		expect(isOverAfter(0)).toBe(true);
	});

	it('that stops creating is held for none of its items', () => {
		const { suspendAfter } = held(0, ONE, OTHER);
		suspendAfter.closeAll();
		expect(suspendAfter.isOver).toBe(true);
	});

	it.each([
		[0, 5],
		[1, 30],
	])('of %d ms is noticed to be held no longer after %d s', async (afterMs, seconds) => {
		const clock = new FakeClock();
		const suspendAfter = new SuspendAfter(afterMs, [ONE]);
		const sleep = clock.sleep.bind(clock);
		clock.sleep = async (ms, signal) => {
			await sleep(ms, signal);
			if (clock.now() >= 5 * SECOND) suspendAfter.close(ONE);
		};
		await suspendAfter.sleepUntil(10 * MINUTE, undefined);
		expect(clock.now()).toBe(seconds * SECOND);
	});

	it('that n8n does not suspend is held to its end', () => {
		const { suspendAfter, isOverAfter } = held(0);
		expect(suspendAfter.isOver).toBe(true);
		suspendAfter.switchOff();
		expect(isOverAfter(1e12)).toBe(false);
	});
});
