import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { callbackHint, showHints, summaryHint } from '../../../nodes/MediaGeneration/run/runHints';
import type { CreatePlan, ReadPlan } from '../../../nodes/MediaGeneration/plan/taskPlan';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';

const BASE = {
	itemIndex: 0,
	pollIntervalMs: 2000,
	timeoutMs: 1000,
	patienceMs: 600_000,
	output: { download: false, binaryField: 'data', split: false },
};

const create = (estimatedCostUsd: number | undefined, webhookUrl?: string): CreatePlan => ({
	...BASE,
	kind: 'create',
	completion: 'wait',
	model: 'provider/model',
	input: {},
	estimatedCostUsd,
	...(webhookUrl !== undefined && { webhookUrl }),
});

const wait: ReadPlan = { ...BASE, kind: 'read', taskId: 'task-1', wait: true };

const items = (...jsons: IDataObject[]): INodeExecutionData[] => jsons.map((json) => ({ json }));
const done = items({ taskId: 'task-1', state: 'SUCCESS' });
const failed = new ItemError('Task task-1 failed', {
	task: { taskId: 'task-1', state: 'FAILURE' },
});

describe('the summary of a run', () => {
	it('tells how many tasks were created and what they cost', () => {
		const plans = [create(0.08), create(0.5125)];
		expect(summaryHint(plans, [done, done])).toMatchObject({
			message: '2 tasks created. Estimated price: 0.5925 USD.',
			type: 'info',
		});
	});

	it('speaks of one task in the singular', () => {
		const hint = summaryHint([create(0.08)], [done]);
		expect(hint?.message).toBe('1 task created. Estimated price: 0.08 USD.');
	});

	it('warns of what failed', () => {
		const plans = Array.from({ length: 40 }, () => create(0.1));
		const results = plans.map((_, index) => (index < 3 ? failed : done));
		expect(summaryHint(plans, results)).toMatchObject({
			message: expect.stringMatching(
				/^3 of 40 tasks failed: Task task-1 failed\. Estimated price: 3.7 USD\. Run only the failed items again/,
			) as string,
			type: 'warning',
		});
	});

	it('counts a task once, into however many items its results are split', () => {
		const split = items(
			{ taskId: 'task-1', state: 'SUCCESS', resultIndex: 0 },
			{ taskId: 'task-1', state: 'SUCCESS', resultIndex: 1 },
		);
		const hint = summaryHint([create(0.08)], [split]);
		expect(hint?.message).toBe('1 task created. Estimated price: 0.08 USD.');
	});

	it('counts a failed task of a suspended execution, whose item has its reason in `error`', () => {
		const result = items({ taskId: 'task-1', state: 'FAILURE', error: 'Held back' });
		const hint = summaryHint([create(0.08), create(0.08)], [result, done]);
		expect(hint?.message).toContain(
			'1 of 2 tasks failed: Held back. Estimated price: 0.08 USD. Run only the failed items again',
		);
	});

	it('counts the price of a task that was not finished in time: it goes on', () => {
		const late = new ItemError('Not finished', {
			task: { taskId: 'task-1', state: 'PENDING', timedOut: true },
		});
		const hint = summaryHint([create(0.08)], [late]);
		expect(hint?.message).toBe('1 task not finished in time. Estimated price: 0.08 USD.');
	});

	it('speaks of items where one has no task', () => {
		const refused = new ItemError("The parameter 'Prompt' is empty");
		const hint = summaryHint([refused, create(0.08)], [refused, done]);
		expect(hint?.message).toContain(
			"1 of 2 items failed: The parameter 'Prompt' is empty. Estimated price: 0.08 USD.",
		);
	});

	it('says of how many tasks the price is not known', () => {
		const plans = [create(0.08), create(undefined)];
		const hint = summaryHint(plans, [done, done]);
		expect(hint?.message).toBe(
			"2 tasks created. Estimated price: 0.08 USD. The price of 1 task is not known: enter it in 'Price per Task (USD)'.",
		);
	});

	it('adds what the service has billed, and for how many of the tasks', () => {
		const billed = (creditsConsumed: number | null) =>
			items({ taskId: 'task-1', state: 'SUCCESS', creditsConsumed });
		const plans = [create(0.08), create(0.08)];
		expect(summaryHint(plans, [billed(8), billed(0.3)])?.message).toBe(
			'2 tasks created. Estimated price: 0.16 USD. The service charged 8.3 credits.',
		);
		expect(summaryHint(plans, [billed(8), billed(null)])?.message).toBe(
			'2 tasks created. Estimated price: 0.16 USD. The service charged 8 credits for 1 task.',
		);
	});

	it('names no price for tasks that were created before', () => {
		const hint = summaryHint([wait, wait], [failed, done]);
		expect(hint?.message).toContain(
			'1 of 2 tasks failed: Task task-1 failed. Run only the failed items again',
		);
	});

	it('says nothing where tasks were read and none failed', () => {
		expect(summaryHint([wait], [done])).toBeUndefined();
	});
});

describe('the hint about callbacks that cannot arrive', () => {
	const LOCAL = 'http://localhost:5678/webhook/a/callback?token=secret';

	it('names both ends where the service cannot call back, and not the token', () => {
		const hint = callbackHint([create(0.08, LOCAL)], 'https://api.example.com');
		expect(hint).toMatchObject({ type: 'info' });
		expect(hint?.message).toContain('api.example.com cannot call http://localhost:5678,');
		expect(hint?.message).toContain('WEBHOOK_URL');
		expect(hint?.message).not.toContain('secret');
	});

	it('is not given where the service is on the same machine', () => {
		expect(callbackHint([create(0.08, LOCAL)], 'http://127.0.0.1:4010')).toBeUndefined();
	});

	it('is not given where nothing calls back', () => {
		expect(callbackHint([create(0.08), wait], 'https://api.example.com')).toBeUndefined();
	});
});

describe('showing hints', () => {
	const hint = { message: '1 task created' };

	it('leaves out those that were not made', () => {
		const addExecutionHints = jest.fn();
		showHints({ addExecutionHints } as unknown as IExecuteFunctions, hint, undefined);
		expect(addExecutionHints.mock.calls).toEqual([[hint]]);
	});

	it('does nothing on a version of n8n that shows none', () => {
		expect(() => showHints({} as IExecuteFunctions, hint)).not.toThrow();
	});
});
