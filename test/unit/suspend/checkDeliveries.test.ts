import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import {
	parseTaskRecord,
	type TaskRecord,
} from '../../../nodes/MediaGeneration/service/taskRecord';
import { checkDeliveries } from '../../../nodes/MediaGeneration/suspend/checkDeliveries';
import {
	nextCheckAt,
	type AwaitedDelivery,
	type DeliveryCheck,
} from '../../../nodes/MediaGeneration/suspend/checkState';
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

const notKnown = async () => await Promise.resolve(false);
const taken = async () => await Promise.resolve(undefined);

it('delivers what is finished, and keeps what is not or what the trigger did not take', async () => {
	const { read } = service({ 'task-0': 'SUCCESS', 'task-1': 'PENDING', 'task-2': 'FAILURE' });
	const delivered: string[] = [];
	const { deliveries } = await checkDeliveries(
		check(delivery(0), delivery(1), delivery(2)),
		read,
		async ({ taskId }, { state }) => {
			delivered.push(`${taskId} ${state}`);
			return await Promise.resolve(taskId === 'task-2' ? 'HTTP 404' : undefined);
		},
		notKnown,
		NOW,
	);
	expect(delivered.sort()).toEqual(['task-0 SUCCESS', 'task-2 FAILURE']);
	expect(deliveries).toEqual([
		{ ...delivery(1), last: 'not finished', isPending: true },
		{ ...delivery(2), last: 'HTTP 404', isPending: false },
	]);
});

it('reads nothing for a task that has started its trigger', async () => {
	const { read, reads } = service({});
	const known = async () => await Promise.resolve(true);
	const { deliveries } = await checkDeliveries(check(delivery(0)), read, taken, known, NOW);
	expect([deliveries, reads]).toEqual([[], []]);
});

it('keeps what cannot be read, with the reason', async () => {
	const deliver = async () => await Promise.reject(new Error('never reached'));
	const { read } = service({});
	const { deliveries } = await checkDeliveries(check(delivery(7)), read, deliver, notKnown, NOW);
	expect(deliveries).toEqual([{ ...delivery(7), last: 'The service is down', isPending: false }]);
});

it('keeps the very object where nothing has changed, which n8n stores once for all checks', async () => {
	const { read } = service({ 'task-1': 'PENDING' });
	const first = await checkDeliveries(check(delivery(1)), read, taken, notKnown, NOW);
	const again = await checkDeliveries(first, read, taken, notKnown, NOW);
	expect(again.deliveries[0]).toBe(first.deliveries[0]);
});

it('ends where the service asks to wait, and is followed by none before that time', async () => {
	const busy = new ServiceError('tooManyRequests', 'HTTP 429', { retryAfterMs: 1_200_000 });
	const all = Array.from({ length: 2000 }, (_, index) => delivery(index));
	const states = Object.fromEntries(all.map(({ taskId }) => [taskId, 'SUCCESS']));
	const { read, reads } = service({ ...states, 'task-3': busy });
	const after = await checkDeliveries(check(...all), read, taken, notKnown, NOW);
	expect(reads).toHaveLength(25);
	// The one that was refused, and all that were not read.
	expect(after.deliveries).toHaveLength(1 + 2000 - 25);
	expect(nextCheckAt(after, NOW, [])).toBe(NOW + 1_200_000);
});

it('is as ever after a service has asked to wait', async () => {
	const { read } = service({ 'task-0': 'PENDING' });
	const before = { ...check(delivery(0)), notBefore: NOW };
	const after = await checkDeliveries(before, read, taken, notKnown, NOW);
	expect(after).not.toHaveProperty('notBefore');
});
