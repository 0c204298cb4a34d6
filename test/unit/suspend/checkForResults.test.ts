import { meaningOf } from '../../../nodes/MediaGeneration/service/answer';
import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { parseTaskRecord } from '../../../nodes/MediaGeneration/service/taskRecord';
import { nextCheckAt } from '../../../nodes/MediaGeneration/suspend/checkSchedule';
import type { SuspendedItem } from '../../../nodes/MediaGeneration/suspend/checkState';
import {
	checkResults,
	giveUp,
	isComplete,
} from '../../../nodes/MediaGeneration/suspend/checkForResults';
import { virtualTime } from '../../workflow/time';
import { allOf, indexes, item, MINUTE, NOW, resultsCheck, service } from './checks';

virtualTime();

const check = (...items: SuspendedItem[]) => resultsCheck({ items });
const many = (count: number, until?: number) =>
	check(...indexes(count).map((index) => item(index, until)));
const waitingIn = ({ items }: { items: SuspendedItem[] }) =>
	items.filter(({ waits }) => waits).map(({ json }) => json.taskId);

describe('a check for results', () => {
	it('costs one read while the first task is not finished, however many there are', async () => {
		const { read, reads } = service({ ...allOf(500, 'SUCCESS'), 'task-0': 'PENDING' });
		expect(isComplete(await checkResults(many(500), read, NOW))).toBe(false);
		expect(reads).toEqual(['task-0']);
	});

	it('reads each task once where all are finished, at most 25 at once, and changes no state', async () => {
		const { read, reads, most } = service(allOf(500, 'SUCCESS'));
		const before = many(500);
		const text = JSON.stringify(before);
		expect(isComplete(await checkResults(before, read, NOW))).toBe(true);
		expect([new Set(reads).size, reads.length]).toEqual([500, 500]);
		expect(most()).toBeLessThanOrEqual(25);
		expect(JSON.stringify(before)).toBe(text);
	});

	it('reads a task once that several items name, and takes the answer for each of them', async () => {
		const { read, reads } = service({ 'task-0': 'SUCCESS' });
		const items = indexes(50).map((index) => ({ ...item(0), item: index }));
		expect(isComplete(await checkResults(check(...items), read, NOW))).toBe(true);
		expect(reads).toEqual(['task-0']);
	});

	it('reads nothing again that it found finished before', async () => {
		const states = { ...allOf(3, 'SUCCESS'), 'task-2': 'PENDING' };
		const first = await checkResults(many(3), service(states).read, NOW);
		const { read, reads } = service(allOf(3, 'SUCCESS'));
		const second = await checkResults(first, read, NOW);
		expect(reads).toEqual(['task-2']);
		expect(second.items.map(({ record }) => record?.state)).toEqual(Array(3).fill('SUCCESS'));
	});

	it('that gets no answer to a few reads found nothing, sends no more of them, and is never an end', async () => {
		const { read, reads } = service({});
		const before = many(100);
		expect(await checkResults(before, read, NOW)).toMatchObject(before);
		expect(reads).toHaveLength(3);
	});

	it('reads a task whose time is up once more, whatever the others do, and then gives it up', async () => {
		const { read, reads } = service(allOf(2, 'PENDING'));
		const after = giveUp(await checkResults(check(item(0), item(1, NOW)), read, NOW), NOW);
		expect(reads.sort()).toEqual(['task-0', 'task-1']);
		expect(waitingIn(after)).toEqual(['task-0']);
		expect(after.items[1]).toMatchObject({
			json: { taskId: 'task-1', timedOut: true, record: {} },
			failure: { message: 'Task task-1 is not finished after 4200 s (last state: PENDING)' },
		});
	});

	it('names the state of a record that the service has wrapped', async () => {
		const read = async () => parseTaskRecord('task-0', { data: { state: 'PENDING' } });
		const after = giveUp(await checkResults(many(1, NOW), read, NOW), NOW);
		expect(after.items[0]?.failure?.message).toContain('(last state: PENDING)');
	});
});

describe('a task that says nothing of the others', () => {
	const gone = () => new ServiceError('notFound', 'No such task (HTTP 404)', { statusCode: 404 });
	const fromProxy = () =>
		new ServiceError('notFound', 'Not of the service', {
			meaning: { ...meaningOf('notFound'), speaker: 'stranger' },
		});
	const down = () => new ServiceError('serviceDown', 'HTTP 500', { statusCode: 500 });
	const noRecord = () => new ServiceError('unusableRecord', 'No state');

	it.each([
		['the service has forgotten', gone],
		['always answers 500', down],
		['has a record without a state', noRecord],
	])('(it %s) does not keep the others from being read', async (_what, error) => {
		const { read } = service({ ...allOf(50, 'SUCCESS'), 'task-0': error() });
		expect(waitingIn(await checkResults(many(50), read, NOW))).toEqual(['task-0']);
	});

	it('fails at its time where the service does not know it, and is not said to go on', async () => {
		const { read } = service({ 'task-0': 'PENDING', 'task-1': gone() });
		const after = giveUp(await checkResults(check(item(0), item(1, NOW)), read, NOW), NOW);
		const message = 'Task task-1: No such task (HTTP 404)';
		expect(after.items[1]).toMatchObject({ json: { taskId: 'task-1' }, failure: { message } });
		expect(after.items[1]?.json).not.toHaveProperty('timedOut');
	});

	it('is the error of its item when it is gone in three checks in a row', async () => {
		const { read } = service({ ...allOf(2, 'SUCCESS'), 'task-0': gone() });
		let state = many(2);
		for (const missed of [1, 2]) {
			state = await checkResults(state, read, NOW);
			expect(state.items[0]).toMatchObject({ missed, waits: {} });
		}
		state = await checkResults(state, read, NOW);
		expect(isComplete(state)).toBe(true);
		expect(state.items[0]).toEqual({
			item: 0,
			json: { taskId: 'task-0' },
			failure: { message: 'Task task-0: No such task (HTTP 404)' },
		});
	});

	it.each<[string, string | Error]>([
		['a read that finds it', 'PENDING'],
		['an answer of something before the service', fromProxy()],
	])('is not gone where %s came between', async (_what, between) => {
		let state = many(1);
		for (const answer of [gone(), gone(), between, gone(), gone()]) {
			state = await checkResults(state, service({ 'task-0': answer }).read, NOW);
		}
		expect(state.items[0]?.missed).toBe(2);
		expect(isComplete(state)).toBe(false);
	});
});

describe('a service that asks to wait', () => {
	const later = (retryAfterMs?: number) =>
		new ServiceError('tooManyRequests', 'HTTP 429', {
			...(retryAfterMs !== undefined && { retryAfterMs }),
		});

	it('gets no further read of this check, and none before the time that it says', async () => {
		const { read, reads } = service({ ...allOf(2000, 'SUCCESS'), 'task-1': later(600_000) });
		const after = await checkResults(many(2000), read, NOW);
		expect(reads).toHaveLength(3);
		expect(after.notBefore).toBe(NOW + 600_000);
		expect(nextCheckAt(after, NOW, [])).toBe(NOW + 600_000);
	});

	it('is left alone for a minute where it does not say how long', async () => {
		const after = await checkResults(many(1), service({ 'task-0': later() }).read, NOW);
		expect(after.notBefore).toBe(NOW + 60_000);
	});

	it('is read again as soon as it allows: a check that it has cut short has not seen all tasks', async () => {
		const { read } = service({ ...allOf(100, 'SUCCESS'), 'task-9': later(5_000) });
		const after = { ...(await checkResults(many(100), read, NOW)), startedAt: NOW - 120 * MINUTE };
		expect(waitingIn(after)).toHaveLength(86);
		expect(nextCheckAt(after, NOW, [])).toBe(NOW + MINUTE);
	});

	it.each([
		['before', NOW + 60 * MINUTE],
		['at', NOW],
	])('whenever one task is read, has the others read %s their time', async (_when, until) => {
		let state = many(50, until);
		for (const now of [NOW, NOW + MINUTE]) {
			const { read } = service({ ...allOf(50, 'SUCCESS'), 'task-0': later(5_000) });
			state = giveUp(await checkResults(state, read, now), now);
		}
		expect(waitingIn(state)).toEqual(['task-0']);
	});

	it('is given time to tell of tasks whose time is up: most of them have not been read before', async () => {
		const { read } = service({ ...allOf(100, 'SUCCESS'), 'task-9': later(5_000) });
		const first = giveUp(await checkResults(many(100, NOW), read, NOW), NOW);
		expect(waitingIn(first)).toHaveLength(86);
		const next = nextCheckAt(first, NOW, []);
		const again = service({ ...allOf(100, 'SUCCESS'), 'task-99': 'PENDING' });
		const second = giveUp(await checkResults(first, again.read, next), next);
		expect(second.items.filter(({ failure }) => failure).map(({ item }) => item)).toEqual([99]);
	});

	it('is read as ever in the check after that', async () => {
		const before = { ...many(1), notBefore: NOW };
		const after = await checkResults(before, service({ 'task-0': 'PENDING' }).read, NOW);
		expect(after).not.toHaveProperty('notBefore');
	});
});

describe('a service that cannot tell of a task at its time', () => {
	const trouble = (kind: ServiceError['kind']) =>
		service({ 'task-0': new ServiceError(kind, 'No') });

	it.each([
		'tooManyRequests',
		'unreachable',
		'noAnswer',
		'serviceDown',
		'unauthorized',
		'redirected',
	] as const)('is asked each minute for ten minutes more (%s)', async (kind) => {
		const { read } = trouble(kind);
		let state = many(1, NOW);
		for (const minutes of [0, 1, 9]) {
			const now = NOW + minutes * MINUTE;
			state = giveUp(await checkResults(state, read, now), now);
			expect(isComplete(state)).toBe(false);
			expect(nextCheckAt({ ...state, startedAt: NOW - 600 * MINUTE }, NOW, [])).toBe(NOW + MINUTE);
		}
		const end = NOW + 10 * MINUTE;
		const after = giveUp(await checkResults(state, read, end), end);
		expect(isComplete(after)).toBe(true);
		const message =
			'Task task-0 is not finished after 4200 s (last state: not read; the last read failed: No)';
		expect(after.items[0]).toMatchObject({ json: { timedOut: true }, failure: { message } });
	});

	it('where n8n was down or asleep at that time, is asked from the next check on', async () => {
		const { read } = trouble('serviceDown');
		const state = giveUp(await checkResults(many(1, NOW - 600 * MINUTE), read, NOW), NOW);
		expect(isComplete(state)).toBe(false);
		const end = NOW + 10 * MINUTE;
		expect(isComplete(giveUp(await checkResults(state, read, end), end))).toBe(true);
	});
});
