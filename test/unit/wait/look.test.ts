import {
	parseTaskRecord,
	type TaskRecord,
} from '../../../nodes/MediaGeneration/service/taskRecord';
import {
	isComplete,
	isUnfinished,
	lookForDeliveries,
	lookForResults,
} from '../../../nodes/MediaGeneration/wait/look';
import type { ResultsWatch, WatchedItem } from '../../../nodes/MediaGeneration/wait/watchState';

const NOW = 1_000_000;
const LATER = NOW + 60_000;

const item = (index: number, until = LATER): WatchedItem => ({
	item: index,
	json: {},
	taskId: `task-${index}`,
	waitsFor: { taskId: `task-${index}`, until },
});
const watch = (...items: WatchedItem[]): ResultsWatch => ({
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

/** A service with these states, which notes what is read; a task that is not in it cannot be read. */
function service(states: Record<string, string>) {
	const reads: string[] = [];
	let atOnce = 0;
	let most = 0;
	const read = async (taskId: string): Promise<TaskRecord> => {
		reads.push(taskId);
		most = Math.max(most, ++atOnce);
		await Promise.resolve();
		atOnce--;
		const state = states[taskId];
		if (state === undefined) throw new Error('The service is down');
		return parseTaskRecord(taskId, { state });
	};
	return { read, reads, most: () => most };
}

const many = (count: number, until?: number) =>
	Array.from({ length: count }, (_, index) => item(index, until));
const allOf = (count: number, state: string) =>
	Object.fromEntries(Array.from({ length: count }, (_, index) => [`task-${index}`, state]));

describe('a look for results', () => {
	it('costs one read while the first task is not finished, however many there are', async () => {
		const { read, reads } = service({ ...allOf(500, 'SUCCESS'), 'task-0': 'PENDING' });
		const after = await lookForResults(watch(...many(500)), read, NOW);
		expect(reads).toEqual(['task-0']);
		expect(isComplete(after)).toBe(false);
	});

	it('reads each task once where all are finished, at most 25 at once', async () => {
		const { read, reads, most } = service(allOf(500, 'SUCCESS'));
		const after = await lookForResults(watch(...many(500)), read, NOW);
		expect(new Set(reads).size).toBe(500);
		expect(reads).toHaveLength(500);
		expect(most()).toBeLessThanOrEqual(25);
		expect(isComplete(after)).toBe(true);
	});

	it('reads nothing again that it found finished before', async () => {
		const states: Record<string, string> = { ...allOf(3, 'SUCCESS'), 'task-2': 'PENDING' };
		const first = await lookForResults(watch(...many(3)), service(states).read, NOW);
		const { read, reads } = service(allOf(3, 'SUCCESS'));
		const second = await lookForResults(first, read, NOW);
		expect(reads).toEqual(['task-2']);
		expect(second.items.map(({ record }) => record?.state)).toEqual(Array(3).fill('SUCCESS'));
	});

	it('counts a failed task as finished', async () => {
		const after = await lookForResults(watch(item(0)), service({ 'task-0': 'FAILURE' }).read, NOW);
		expect(isComplete(after)).toBe(true);
		expect(after.items[0]?.record).toEqual({ state: 'FAILURE' });
	});

	it('that cannot read found nothing, and is never an end', async () => {
		const { read, reads } = service({});
		const before = watch(...many(100));
		expect(await lookForResults(before, read, NOW)).toEqual(before);
		expect(reads).toHaveLength(1);
	});

	it('reads a task whose time is up once more, whatever the others do, and then gives it up', async () => {
		const { read, reads } = service({ 'task-0': 'PENDING', 'task-1': 'PENDING' });
		const after = await lookForResults(watch(item(0), item(1, NOW)), read, NOW);
		expect(reads.sort()).toEqual(['task-0', 'task-1']);
		expect(after.items[0]).toMatchObject({ waitsFor: { taskId: 'task-0' } });
		expect(after.items[1]).toMatchObject({ timedOut: true, record: { state: 'PENDING' } });
		expect(after.items[1]).not.toHaveProperty('waitsFor');
	});

	it('takes a result that comes with the last read', async () => {
		const after = await lookForResults(
			watch(item(0, NOW)),
			service({ 'task-0': 'SUCCESS' }).read,
			NOW,
		);
		expect(after.items[0]).not.toHaveProperty('timedOut');
		expect(isComplete(after)).toBe(true);
	});

	it('leaves the state before as it was', async () => {
		const before = watch(...many(3));
		const text = JSON.stringify(before);
		await lookForResults(before, service(allOf(3, 'SUCCESS')).read, NOW);
		expect(JSON.stringify(before)).toBe(text);
	});
});

describe('a look for callbacks that were lost', () => {
	const delivery = (index: number) => ({
		taskId: `task-${index}`,
		until: LATER,
		address: 'https://n8n.test/webhook/a/callback',
	});
	const deliveries = [delivery(0), delivery(1), delivery(2)];

	it('delivers what is finished, and keeps what is not or what the trigger did not take', async () => {
		const { read } = service({ 'task-0': 'SUCCESS', 'task-1': 'PENDING', 'task-2': 'FAILURE' });
		const delivered: string[] = [];
		const left = await lookForDeliveries(deliveries, read, async ({ taskId }, { state }) => {
			delivered.push(`${taskId} ${state}`);
			return await Promise.resolve(taskId === 'task-2' ? 'HTTP 404' : undefined);
		});
		expect(delivered.sort()).toEqual(['task-0 SUCCESS', 'task-2 FAILURE']);
		expect(left).toEqual([
			{ ...delivery(1), last: 'not finished', isPending: true },
			{ ...delivery(2), last: 'HTTP 404', isPending: false },
		]);
	});

	it('keeps what cannot be read, with the reason', async () => {
		const left = await lookForDeliveries(
			[delivery(7)],
			service({}).read,
			async () => await Promise.reject(new Error('never reached')),
		);
		expect(left).toEqual([{ ...delivery(7), last: 'The service is down', isPending: false }]);
	});

	it('keeps the very object where nothing has changed, which n8n stores once for all looks', async () => {
		const read = service({ 'task-1': 'PENDING' }).read;
		const deliver = async () => await Promise.resolve(undefined);
		const [first] = await lookForDeliveries([delivery(1)], read, deliver);
		const again = await lookForDeliveries(first ? [first] : [], read, deliver);
		expect(again[0]).toBe(first);
	});

	it.each([
		['says so', { isPending: true, last: 'still queued' }, true],
		['says that it was read', { isPending: false, last: 'not finished' }, false],
		['has no such field and says so in words', { last: 'not finished' }, true],
		['has no such field and says something else', { last: 'HTTP 404' }, false],
		['was not looked for', {}, false],
	])('takes a task for unfinished by what its state %s', (_what, more, expected) => {
		expect(isUnfinished({ ...delivery(1), ...more })).toBe(expected);
	});
});
