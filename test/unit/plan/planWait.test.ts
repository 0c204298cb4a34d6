import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { image, json, planOf, refusalOf } from './planning';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

interface Given {
	options?: IDataObject;
	parameters?: IDataObject;
	context?: Partial<IExecuteFunctions>;
}

/** The wait of a run, and what its first item has of it. */
async function plan({ options, parameters, context = {} }: Given = {}) {
	const planned = await planOf(image(options, parameters), undefined, { context });
	const [first] = planned.items;
	if (first === undefined || first.kind === 'refused') throw new Error('No item was planned');
	const webhookUrl = first.kind === 'create' ? first.webhookUrl : undefined;
	return { ...planned, timeoutMs: first.timeoutMs, webhookUrl };
}

const AT_ONCE = { suspendAfter: 0 };

const TOOL = { isToolExecution: () => true };
const ENGINE_V2 = { getWorkflowSettings: () => ({ engineType: 'v2' }) as never };
const SUB_WORKFLOW = { getMode: () => 'integrated' as const };
const TASKS = { resource: 'task', operation: 'wait', taskId: 'task-1, task-2' };
const SPLIT = { options: { splitResults: true } };
const AFTER_A_DAY = { timeoutMs: DAY_MS, warnings: [], webhookUrl: undefined };

describe('a run', () => {
	it.each<[string, Given, object]>([
		['is held for five minutes as a rule', {}, { suspendAfterMs: 5 * MINUTE_MS, ...AFTER_A_DAY }],
		[
			'is suspended after as many minutes as are chosen',
			{ options: { suspendAfter: 0.5 } },
			{ suspendAfterMs: 0.5 * MINUTE_MS, ...AFTER_A_DAY },
		],
		[
			'with no minutes has the default',
			{ options: { suspendAfter: null } },
			{ suspendAfterMs: 5 * MINUTE_MS },
		],
		[
			'of Task → Wait is suspended like one that creates',
			{ parameters: { ...TASKS, taskId: 'task-1' }, options: { suspendAfter: 2 } },
			{ suspendAfterMs: 2 * MINUTE_MS, timeoutMs: DAY_MS },
		],
	])('%s', async (_what, given, wait) => {
		expect(await plan(given)).toMatchObject(wait);
	});

	it('of which nobody waits reads no Survive Restarts After', async () => {
		const parameters = { completion: 'return' };
		const wait = { suspendAfterMs: Infinity, timeoutMs: DAY_MS, warnings: [] };
		expect(await plan({ options: AT_ONCE, parameters, context: ENGINE_V2 })).toMatchObject(wait);
	});
});

it('a run as a tool is held to its end, for ten minutes or as the user says', async () => {
	const ofTenMinutes = { suspendAfterMs: Infinity, timeoutMs: 10 * MINUTE_MS, warnings: [] };
	expect(await plan({ context: TOOL })).toMatchObject(ofTenMinutes);
	const chosen = { context: TOOL, options: { timeout: 7200 } };
	expect(await plan(chosen)).toMatchObject({ suspendAfterMs: Infinity, timeoutMs: 7_200_000 });
});

it.each<[string, Given]>([
	['whose results are split', SPLIT],
	['in a sub-workflow', { context: SUB_WORKFLOW }],
	['of which one input item names two tasks', { parameters: TASKS }],
])('a run %s sleeps like any other, also at once', async (_what, given) => {
	expect(await plan(given)).toMatchObject({ suspendAfterMs: 5 * MINUTE_MS, timeoutMs: DAY_MS });
	const atOnce = { ...given, options: { ...given.options, ...AT_ONCE } };
	expect(await plan(atOnce)).toMatchObject({ suspendAfterMs: 0, warnings: [] });
});

it('a tool that is to be stored before its first task is refused, with a way out', async () => {
	const { message, description } = await refusalOf(image(AT_ONCE), undefined, { context: TOOL });
	expect(message).toContain('cannot be stored before its first task is created: an AI agent needs');
	expect(description).toMatch(/'Survive Restarts After'.*No task was created/s);
});

const eachOne = { ...TASKS, taskId: '={{ $json.id }}' };
const prompt = { prompt: '={{ $json.prompt }}' };
it.each<[string, IDataObject, IDataObject[]]>([
	['names a task for each of several input items', eachOne, [{ id: 'task-1' }, { id: 'task-2' }]],
	['has an item whose parameters cannot be meant', prompt, [{ prompt: 'a' }, {}]],
])('a run that %s can be suspended', async (_what, parameters, items) => {
	const { suspendAfterMs } = await planOf(parameters, json(...items));
	expect(suspendAfterMs).toBe(5 * MINUTE_MS);
});
