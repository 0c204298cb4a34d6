import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import {
	parseTaskRecord,
	type TaskRecord,
} from '../../../nodes/MediaGeneration/service/taskRecord';
import {
	type ResultsCheck,
	type SuspendedItem,
} from '../../../nodes/MediaGeneration/suspend/checkState';
import { nextCheckAt } from '../../../nodes/MediaGeneration/suspend/checkSchedule';
import { checkTasks, giveUp, isComplete } from '../../../nodes/MediaGeneration/suspend/checkTasks';

const NOW = 1_000_000;
const LATER = NOW + 60_000;

const item = (index: number, until = LATER): SuspendedItem => ({
	item: index,
	json: { taskId: `task-${index}` },
	waits: { until, timeoutMs: 600_000 },
});
const check = (...items: SuspendedItem[]): ResultsCheck => ({
	version: 1,
	purpose: 'results',
	nodeName: 'Media',
	startedAt: 0,
	intervalMs: 0,
	parentExecutionId: '1',
	onError: 'stopWorkflow',
	ifSomeFail: 'keep',
	output: { download: false, split: false, binaryField: 'data' },
	items,
});

/** A service with these states or errors, which notes what is read; a task that is not in it cannot be read. */
function service(states: Record<string, string | Error>) {
	const reads: string[] = [];
	let atOnce = 0;
	let most = 0;
	const read = async (taskId: string): Promise<TaskRecord> => {
		reads.push(taskId);
		most = Math.max(most, ++atOnce);
		await Promise.resolve();
		atOnce--;
		const state = states[taskId];
		if (state === undefined) throw new ServiceError('serviceDown', 'HTTP 500');
		if (state instanceof Error) throw state;
		return parseTaskRecord(taskId, { state });
	};
	return { read, reads, most: () => most };
}

const many = (count: number, until?: number) =>
	Array.from({ length: count }, (_, index) => item(index, until));
const allOf = (count: number, state: string) =>
	Object.fromEntries(Array.from({ length: count }, (_, index) => [`task-${index}`, state]));

describe('a check for results', () => {
	it('costs one read while the first task is not finished, however many there are', async () => {
		const { read, reads } = service({ ...allOf(500, 'SUCCESS'), 'task-0': 'PENDING' });
		const after = await checkTasks(check(...many(500)), read, NOW);
		expect(reads).toEqual(['task-0']);
		expect(isComplete(after)).toBe(false);
	});

	it('reads each task once where all are finished, at most 25 at once', async () => {
		const { read, reads, most } = service(allOf(500, 'SUCCESS'));
		const after = await checkTasks(check(...many(500)), read, NOW);
		expect(new Set(reads).size).toBe(500);
		expect(reads).toHaveLength(500);
		expect(most()).toBeLessThanOrEqual(25);
		expect(isComplete(after)).toBe(true);
	});

	it('reads nothing again that it found finished before', async () => {
		const states: Record<string, string> = { ...allOf(3, 'SUCCESS'), 'task-2': 'PENDING' };
		const first = await checkTasks(check(...many(3)), service(states).read, NOW);
		const { read, reads } = service(allOf(3, 'SUCCESS'));
		const second = await checkTasks(first, read, NOW);
		expect(reads).toEqual(['task-2']);
		expect(second.items.map(({ record }) => record?.state)).toEqual(Array(3).fill('SUCCESS'));
	});

	it('counts a failed task as finished', async () => {
		const after = await checkTasks(check(item(0)), service({ 'task-0': 'FAILURE' }).read, NOW);
		expect(isComplete(after)).toBe(true);
		expect(after.items[0]).toMatchObject({
			json: { taskId: 'task-0', record: { state: 'FAILURE' } },
			failure: { message: 'Task task-0 failed at the service' },
		});
	});

	it('that gets no answer to a few reads found nothing, sends no more of them, and is never an end', async () => {
		const { read, reads } = service({});
		const before = check(...many(100));
		expect(await checkTasks(before, read, NOW)).toEqual(before);
		expect(reads.length).toBeGreaterThanOrEqual(3);
		expect(reads.length).toBeLessThanOrEqual(4);
	});

	it('reads a task whose time is up once more, whatever the others do, and then gives it up', async () => {
		const { read, reads } = service({ 'task-0': 'PENDING', 'task-1': 'PENDING' });
		const after = giveUp(await checkTasks(check(item(0), item(1, NOW)), read, NOW), NOW);
		expect(reads.sort()).toEqual(['task-0', 'task-1']);
		expect(after.items[0]).toMatchObject({ waits: { until: LATER } });
		expect(after.items[1]).toMatchObject({
			json: { taskId: 'task-1', timedOut: true, record: { state: 'PENDING' } },
			failure: { message: 'Task task-1 is not finished after 600 s (last state: PENDING)' },
		});
		expect(after.items[1]).not.toHaveProperty('waits');
	});

	it('takes a result that comes with the last read', async () => {
		const { read } = service({ 'task-0': 'SUCCESS' });
		const after = giveUp(await checkTasks(check(item(0, NOW)), read, NOW), NOW);
		expect(after.items[0]).not.toHaveProperty('failure');
		expect(isComplete(after)).toBe(true);
	});

	it('leaves the state before as it was', async () => {
		const before = check(...many(3));
		const text = JSON.stringify(before);
		await checkTasks(before, service(allOf(3, 'SUCCESS')).read, NOW);
		expect(JSON.stringify(before)).toBe(text);
	});
});

describe('a task that says nothing of the others', () => {
	const gone = () => new ServiceError('notFound', 'No such task (HTTP 404)', { statusCode: 404 });
	const fromProxy = () =>
		new ServiceError('notFound', 'Not of the service', { statusCode: 404, isForeign: true });
	const down = () => new ServiceError('serviceDown', 'HTTP 500', { statusCode: 500 });
	const noRecord = () => new ServiceError('unusableRecord', 'No state');

	it.each([
		['the service has forgotten', gone],
		['always answers 500', down],
		['has a record without a state', noRecord],
	])('(it %s) does not keep the others from being read', async (_what, error) => {
		const { read } = service({ ...allOf(50, 'SUCCESS'), 'task-0': error() });
		const after = await checkTasks(check(...many(50)), read, NOW);
		expect(after.items.filter(({ waits }) => waits).map(({ json }) => json.taskId)).toEqual([
			'task-0',
		]);
	});

	it('is the error of its item when it is gone in three checks in a row', async () => {
		const { read } = service({ ...allOf(2, 'SUCCESS'), 'task-0': gone() });
		let state = check(...many(2));
		for (const missed of [1, 2]) {
			state = await checkTasks(state, read, NOW);
			expect(state.items[0]).toMatchObject({ missed, waits: { until: LATER } });
		}
		state = await checkTasks(state, read, NOW);
		expect(isComplete(state)).toBe(true);
		expect(state.items[0]).toEqual({
			item: 0,
			json: { taskId: 'task-0' },
			failure: { message: 'Task task-0: No such task (HTTP 404)', statusCode: 404 },
		});
	});

	it.each<[string, string | Error]>([
		['a read that finds it', 'PENDING'],
		['an answer that says nothing of it', down()],
		['an answer of something before the service', fromProxy()],
	])('is not gone where %s came between', async (_what, between) => {
		let state = check(item(0));
		for (const answer of [gone(), gone(), between, gone(), gone()]) {
			state = await checkTasks(state, service({ 'task-0': answer }).read, NOW);
		}
		expect(state.items[0]?.missed).toBe(2);
		expect(isComplete(state)).toBe(false);
	});
});

describe('a service that asks to wait', () => {
	const later = (retryAfterMs?: number) =>
		new ServiceError('tooManyRequests', 'HTTP 429', {
			statusCode: 429,
			...(retryAfterMs !== undefined && { retryAfterMs }),
		});

	it('gets no further read of this check, and none before the time that it says', async () => {
		const { read, reads } = service({ ...allOf(2000, 'SUCCESS'), 'task-1': later(600_000) });
		const after = await checkTasks(check(...many(2000)), read, NOW);
		expect(reads.length).toBeLessThanOrEqual(3);
		expect(after.notBefore).toBe(NOW + 600_000);
		expect(nextCheckAt(after, NOW, [])).toBe(NOW + 600_000);
	});

	it('is left alone for a minute where it does not say how long', async () => {
		const after = await checkTasks(check(item(0)), service({ 'task-0': later() }).read, NOW);
		expect(after.notBefore).toBe(NOW + 60_000);
	});

	it('is not asked for tasks whose time is up either', async () => {
		const { read, reads } = service({ ...allOf(100, 'SUCCESS'), 'task-0': later(60_000) });
		await checkTasks(check(...many(100, NOW)), read, NOW);
		expect(reads).toHaveLength(25);
	});

	it('is read as ever in the check after that', async () => {
		const before = { ...check(item(0)), notBefore: NOW };
		const after = await checkTasks(before, service({ 'task-0': 'PENDING' }).read, NOW);
		expect(after).not.toHaveProperty('notBefore');
	});
});
