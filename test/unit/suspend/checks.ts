import type { IDataObject } from 'n8n-workflow';

import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import {
	parseTaskRecord,
	type TaskRecord,
} from '../../../nodes/MediaGeneration/service/taskRecord';
import type {
	AwaitedDelivery,
	DeliveryCheck,
	ResultsCheck,
	SuspendedItem,
} from '../../../nodes/MediaGeneration/suspend/checkState';
import { MINUTE } from '../../durations';
import { EPOCH as NOW } from '../../virtualTime';
import { executeContext, type TestWorkflow } from '../../workflow/engine';

export { MINUTE, NOW };

/** @param more what n8n's context has in place of its own */
export const contextOf = (test: TestWorkflow = {}, more: object = {}) =>
	Object.assign(executeContext(test), more);

export const indexes = (count: number) => Array.from({ length: count }, (_, index) => index);

/** An item of a suspended run whose task is unfinished. */
export const item = (index: number, until = NOW + 60 * MINUTE): SuspendedItem => ({
	item: index,
	json: { taskId: `task-${index}` },
	waits: { until, timeoutMs: 70 * MINUTE },
	output: { download: false, split: false, binaryField: 'data' },
});

export const delivery = (index: number, until = NOW + 60 * MINUTE): AwaitedDelivery => ({
	taskId: `task-${index}`,
	until,
	address: 'https://n8n.test/webhook/a/callback',
});

const BASE = {
	version: 1,
	nodeName: 'Media',
	startedAt: NOW - 10 * MINUTE,
	intervalMs: 0,
	supervisorId: '8',
} as const;

export const resultsCheck = (more: Partial<ResultsCheck> = {}): ResultsCheck => ({
	...BASE,
	purpose: 'results',
	parentExecutionId: '7',
	onError: 'stopWorkflow',
	ifSomeFail: 'keep',
	items: indexes(2).map((index) => item(index)),
	...more,
});

export const deliveryCheck = (more: Partial<DeliveryCheck> = {}): DeliveryCheck => ({
	...BASE,
	purpose: 'delivery',
	deliveries: indexes(2).map((index) => delivery(index)),
	...more,
});

export const allOf = <T extends string | Error>(count: number, state: T): Record<string, T> =>
	Object.fromEntries(indexes(count).map((index) => [`task-${index}`, state]));

/** A service with these states or errors, which notes what is read; a task that is not in it cannot be read. */
export function service(states: Record<string, string | Error>) {
	const reads: string[] = [];
	let atOnce = 0;
	let most = 0;
	const read = async (taskId: string): Promise<TaskRecord> => {
		reads.push(taskId);
		most = Math.max(most, ++atOnce);
		await Promise.resolve();
		atOnce--;
		const state = states[taskId] ?? new ServiceError('serviceDown', 'The service is down');
		if (state instanceof Error) throw state;
		return parseTaskRecord(taskId, { state });
	};
	return { read, reads, states, most: () => most };
}

/** The execution that waits, which names the supervisor. */
export const PARENT: IDataObject = {
	resultData: {},
	waitTill: new Date(NOW + 60 * MINUTE),
	executionData: { nodeExecutionStack: [{ metadata: { waitingChildExecutionIds: ['8'] } }] },
};
