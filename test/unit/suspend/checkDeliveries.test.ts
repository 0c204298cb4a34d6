import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import {
	parseTaskRecord,
	type TaskRecord,
} from '../../../nodes/MediaGeneration/service/taskRecord';
import {
	checkDeliveries,
	NOT_FINISHED,
} from '../../../nodes/MediaGeneration/suspend/checkDeliveries';
import {
	type AwaitedDelivery,
	type DeliveryCheck,
} from '../../../nodes/MediaGeneration/suspend/checkState';
import { nextCheckAt } from '../../../nodes/MediaGeneration/suspend/checkSchedule';
const NOW = 1_000_000;

const delivery = (index: number): AwaitedDelivery => ({
	taskId: `task-${index}`,
	until: NOW + 60_000,
	address: 'https://n8n.test/webhook/a/callback',
});
const check = (...deliveries: AwaitedDelivery[]): DeliveryCheck => ({
	version: 1,
	purpose: 'delivery',
	nodeName: 'Media',
	startedAt: 0,
	intervalMs: 0,
	deliveries,
});

/** A service with these states or errors; a task that is not in it cannot be read. */
function service(states: Record<string, string | Error>) {
	const reads: string[] = [];
	const read = async (taskId: string): Promise<TaskRecord> => {
		reads.push(taskId);
		await Promise.resolve();
		const state = states[taskId] ?? new Error('The service is down');
		if (state instanceof Error) throw state;
		return parseTaskRecord(taskId, { state });
	};
	return { read, reads };
}

/** Delivers to a trigger that takes what is finished, with what it says of a task. */
const attempt =
	(read: (taskId: string) => Promise<TaskRecord>, answers: Record<string, string> = {}) =>
	async ({ taskId }: AwaitedDelivery) =>
		(await read(taskId)).state === 'PENDING' ? NOT_FINISHED : answers[taskId];

it('delivers what is finished, and keeps what is not or what the trigger did not take', async () => {
	const { read } = service({ 'task-0': 'SUCCESS', 'task-1': 'PENDING', 'task-2': 'FAILURE' });
	const { deliveries } = await checkDeliveries(
		check(delivery(0), delivery(1), delivery(2)),
		attempt(read, { 'task-2': 'HTTP 404' }),
		NOW,
	);
	expect(deliveries).toEqual([
		{ ...delivery(1), last: 'not finished' },
		{ ...delivery(2), last: 'HTTP 404' },
	]);
});

it('keeps what cannot be read, with the reason', async () => {
	const { read } = service({});
	const { deliveries } = await checkDeliveries(check(delivery(7)), attempt(read), NOW);
	expect(deliveries).toEqual([{ ...delivery(7), last: 'The service is down' }]);
});

it('keeps the very object where nothing has changed, which n8n stores once for all checks', async () => {
	const { read } = service({ 'task-1': 'PENDING' });
	const first = await checkDeliveries(check(delivery(1)), attempt(read), NOW);
	const again = await checkDeliveries(first, attempt(read), NOW);
	expect(again.deliveries[0]).toBe(first.deliveries[0]);
});

it('ends where the service asks to wait, and is followed by none before that time', async () => {
	const busy = new ServiceError('tooManyRequests', 'HTTP 429', { retryAfterMs: 1_200_000 });
	const all = Array.from({ length: 2000 }, (_, index) => delivery(index));
	const states = Object.fromEntries(all.map(({ taskId }) => [taskId, 'SUCCESS']));
	const { read, reads } = service({ ...states, 'task-3': busy });
	const after = await checkDeliveries(check(...all), attempt(read), NOW);
	expect(reads).toHaveLength(25);
	// The one that was refused, and all that were not read.
	expect(after.deliveries).toHaveLength(1 + 2000 - 25);
	expect(nextCheckAt(after, NOW, [])).toBe(NOW + 1_200_000);
});

it('is as ever after a service has asked to wait', async () => {
	const { read } = service({ 'task-0': 'PENDING' });
	const before = { ...check(delivery(0)), notBefore: NOW };
	const after = await checkDeliveries(before, attempt(read), NOW);
	expect(after).not.toHaveProperty('notBefore');
});
