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
const TIME_LIMIT = { getWorkflowSettings: () => ({ executionTimeout: 60 }) as never };
const LOCAL: Partial<IExecuteFunctions> = {
	evaluateExpression: () => 'http://localhost:5678/webhook-waiting/1' as never,
	getParentNodes: () => [],
};
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
			'gives its tasks a callback address where it is suspended at once',
			{ options: AT_ONCE },
			{ suspendAfterMs: 0, webhookUrl: expect.stringContaining('/webhook-waiting/1/') },
		],
		[
			'gives none where the service cannot call n8n',
			{ options: AT_ONCE, context: LOCAL },
			{ suspendAfterMs: 0, webhookUrl: undefined },
		],
		[
			'of Task → Wait is suspended like one that creates',
			{ parameters: { ...TASKS, taskId: 'task-1' }, options: { suspendAfter: 2 } },
			{ suspendAfterMs: 2 * MINUTE_MS, timeoutMs: DAY_MS },
		],
		[
			'says at its begin what may go wrong where it is suspended at once',
			{ options: AT_ONCE, context: TIME_LIMIT },
			{ warnings: [expect.stringContaining('time limit of 60 s')] },
		],
		['does not say so otherwise', { context: TIME_LIMIT }, { warnings: [] }],
	])('%s', async (_what, given, wait) => {
		expect(await plan(given)).toMatchObject(wait);
	});

	it('of which nobody waits reads no Survive Restarts After', async () => {
		const parameters = { completion: 'return' };
		const wait = { suspendAfterMs: Infinity, timeoutMs: DAY_MS, warnings: [] };
		expect(await plan({ options: AT_ONCE, parameters, context: ENGINE_V2 })).toMatchObject(wait);
	});
});

type Case = [what: string, given: Given];
/** Which other obstacles there are: canSuspend.test.ts. */
const held: Case[] = [
	['whose results are split', SPLIT],
	['in a sub-workflow, whose results are split', { context: SUB_WORKFLOW, ...SPLIT }],
	['of which one input item names two tasks', { parameters: TASKS }],
];

it.each<Case>([
	['as a tool', { context: TOOL }],
	['in a sub-workflow', { context: SUB_WORKFLOW }],
	...held,
])('a run %s is held to its end, for ten minutes or as the user says', async (_what, given) => {
	const ofTenMinutes = { suspendAfterMs: Infinity, timeoutMs: 10 * MINUTE_MS, warnings: [] };
	expect(await plan(given)).toMatchObject(ofTenMinutes);
	const chosen = { ...given, options: { ...given.options, timeout: 7200 } };
	expect(await plan(chosen)).toMatchObject({ suspendAfterMs: Infinity, timeoutMs: 7_200_000 });
});

describe('a run that is to be suspended at once', () => {
	it('is refused as a tool, with a way out', async () => {
		const more = { context: TOOL };
		const { message, description } = await refusalOf(image(AT_ONCE), undefined, more);
		expect(message).toContain('cannot be suspended at once: an AI agent needs');
		expect(description).toMatch(/'Survive Restarts After'.*No task was created/s);
	});

	it('is suspended in a sub-workflow, with a word on what its caller gets', async () => {
		expect(await plan({ context: SUB_WORKFLOW, options: AT_ONCE })).toMatchObject({
			suspendAfterMs: 0,
			timeoutMs: DAY_MS,
			warnings: [expect.stringContaining('the first result only')],
		});
	});

	it.each([
		[1_000, 'a callback', expect.stringContaining('/webhook-waiting/1/') as string],
		[1_001, 'checks alone, since n8n reads all of it anew for each callback', undefined],
	])('of %i tasks has %s', async (tasks, _what, webhookUrl) => {
		const { items } = await planOf(image(AT_ONCE), json(...Array<IDataObject>(tasks).fill({})));
		expect(items.map((item) => item.kind === 'create' && item.webhookUrl)).toEqual(
			Array(tasks).fill(webhookUrl),
		);
	});

	it.each(held)('is held %s, with a word on why', async (_what, given) => {
		const planned = await plan({ ...given, options: { ...given.options, ...AT_ONCE } });
		expect(planned).toMatchObject({ suspendAfterMs: Infinity, webhookUrl: undefined });
		expect(planned.warnings).toEqual([
			expect.stringMatching(/is not suspended.*link the items wrongly/),
		]);
	});
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
