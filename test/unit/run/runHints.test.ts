import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { endHints, hint, showHints } from '../../../nodes/MediaGeneration/run/runHints';
import type { CreatePlan, ReadPlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import type { ItemResult } from '../../../nodes/MediaGeneration/report/failedTask';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';

const BASE = {
	itemIndex: 0,
	pollIntervalMs: 2000,
	timeoutMs: 1000,
	patienceMs: 600_000,
	output: { download: true, binaryField: 'data', split: false },
};

const create = (estimatedCostUsd?: number, webhookUrl?: string): CreatePlan => ({
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
const billed = (creditsConsumed: number | null) =>
	items({ taskId: 'task-1', state: 'SUCCESS', creditsConsumed });
const failed = new ItemError('Task task-1 failed', {
	task: { taskId: 'task-1', state: 'FAILURE' },
});
const late = new ItemError('Not finished', {
	task: { taskId: 'task-1', state: 'PENDING', timedOut: true },
});
const refused = new ItemError("The parameter 'Prompt' is empty");

const held = new ItemError('Task task-1 failed at the service: Held back.', {
	task: { taskId: 'task-1', state: 'FAILURE', input: { prompt: 'A blue bird' } },
});
const video = { ...create(), model: 'videovendor/video-model-2-mini' };

const two = [create(0.08), create(0.08)];
const forty = Array.from({ length: 40 }, () => create(0.1));
const FAILED_ALONE = 'Run only the failed items again: a full run would pay for the others twice.';
const AGAIN = `${FAILED_ALONE} To collect failed items: Settings → On Error → 'Continue (using error output)'.`;

it.each<[string, Array<CreatePlan | ReadPlan | ItemError>, ItemResult[], string]>([
	[
		'how many tasks were created and what they cost',
		[create(0.08), create(0.5125)],
		[done, done],
		'2 tasks created. Estimated price: 0.5925 USD.',
	],
	['one task', [create(0.08)], [done], '1 task created. Estimated price: 0.08 USD.'],
	[
		'what failed',
		forty,
		forty.map((_, index) => (index < 3 ? failed : done)),
		`3 of 40 tasks failed: Task task-1 failed. Estimated price: 3.7 USD. ${AGAIN}`,
	],
	[
		'a task once, into however many items its results are split',
		[create(0.08)],
		[items({ taskId: 'task-1', resultIndex: 0 }, { taskId: 'task-1', resultIndex: 1 })],
		'1 task created. Estimated price: 0.08 USD.',
	],
	[
		'a failed task of a suspended execution, whose item has its reason in `error`',
		two,
		[items({ taskId: 'task-1', state: 'FAILURE', error: 'Held back' }), done],
		`1 of 2 tasks failed: Held back. Estimated price: 0.08 USD. ${AGAIN}`,
	],
	[
		'the prompt of the first failed item, with the reason and without the id',
		two,
		[held, done],
		`1 of 2 tasks failed: Held back (prompt: “A blue bird”). Estimated price: 0.08 USD. ${AGAIN}`,
	],
	[
		'which prompt it was of several',
		[...two, create(0.08)],
		[held, held, done],
		`2 of 3 tasks failed: Held back (first prompt: “A blue bird”). Estimated price: 0.08 USD. ${AGAIN}`,
	],
	[
		'the duration that is missing, where it alone is',
		[video],
		[done],
		"1 task created. The price of 1 task is not known: set 'Duration (Seconds)'.",
	],
	[
		'the price of a task that was not finished in time: it goes on',
		[create(0.08)],
		[late],
		'1 task not finished in time. Estimated price: 0.08 USD.',
	],
	[
		'items where one has no task',
		[refused, create(0.08)],
		[refused, done],
		`1 of 2 items failed: The parameter 'Prompt' is empty. Estimated price: 0.08 USD. ${AGAIN}`,
	],
	[
		'of how many tasks the price is not known',
		[create(0.08), create()],
		[done, done],
		"2 tasks created. Estimated price: 0.08 USD. The price of 1 task is not known: enter it in 'Price per Task (USD)'.",
	],
	[
		'what the service has billed',
		two,
		[billed(8), billed(0.3)],
		'2 tasks created. Estimated price: 0.16 USD. The service charged 8.3 credits.',
	],
	[
		'for how many of the tasks it has',
		two,
		[billed(8), billed(null)],
		'2 tasks created. Estimated price: 0.16 USD. The service charged 8 credits for 1 task.',
	],
	[
		'no price of tasks that were created before',
		[wait, wait],
		[failed, done],
		`1 of 2 tasks failed: Task task-1 failed. ${AGAIN}`,
	],
])('a run is summed up by %s', (_what, plans, results, expected) => {
	const [hint, ...others] = endHints(plans, results, 'https://api.example.com', false);
	const isWarning = results.some((result) => result instanceof ItemError || result[0]?.json.error);
	expect(hint?.type).toBe(isWarning ? 'warning' : 'info');
	expect(hint?.message).toBe(expected);
	expect(others).toEqual([]);
});

it('nobody is told to collect failed items that leave by the error output already', () => {
	const [hint] = endHints(two, [failed, done], 'https://api.example.com', false, true);
	expect(hint?.message).toMatch(new RegExp(`${FAILED_ALONE}$`));
});

it('nothing is said where tasks were read and none failed', () => {
	expect(endHints([wait], [done], 'https://api.example.com', false)).toEqual([]);
});

describe('the hint about callbacks that cannot arrive', () => {
	const LOCAL = 'http://localhost:5678/webhook/a/callback?token=secret';
	const hints = (plans: CreatePlan[], baseUrl: string) =>
		endHints(plans, [done], baseUrl, false).slice(1);

	it('names both ends where the service cannot call back, and not the token', () => {
		const [hint] = hints([create(0.08, LOCAL)], 'https://api.example.com');
		expect(hint?.type).toBe('info');
		expect(hint?.message).toContain('api.example.com cannot call http://localhost:5678,');
		expect(hint?.message).toContain('WEBHOOK_URL');
		expect(hint?.message).not.toContain('secret');
	});

	it('is not given where the service is on the same machine, or nothing calls back', () => {
		expect(hints([create(0.08, LOCAL)], 'http://127.0.0.1:4010')).toEqual([]);
		expect(hints([create(0.08)], 'https://api.example.com')).toEqual([]);
	});
});

it('no hint is shown on a version of n8n that shows none', () => {
	expect(() => showHints({} as IExecuteFunctions, hint('1 task created'))).not.toThrow();
});
