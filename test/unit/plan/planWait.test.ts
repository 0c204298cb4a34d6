import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { planRun } from '../../../nodes/MediaGeneration/plan/planRun';
import { systemClock } from '../../../nodes/MediaGeneration/shared/clock';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { API_KEY, executeContext } from '../../workflow/engine';
import { caught } from '../support';

const SERVICE = 'https://api.example.com';
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

interface Given {
	options?: IDataObject;
	parameters?: IDataObject;
	items?: INodeExecutionData[];
	/** What n8n says of the execution otherwise than the tests need as a rule. */
	more?: Partial<IExecuteFunctions>;
}

async function plan({ options = {}, parameters = {}, items, more }: Given = {}) {
	const context = executeContext({
		node: { parameters: { prompt: 'A lighthouse', ...parameters, options } },
		credential: { baseUrl: SERVICE, apiKey: API_KEY },
		...(items && { items }),
	});
	Object.assign(context, more);
	const planned = await planRun(context, { apiKey: API_KEY, baseUrl: SERVICE }, systemClock);
	const [first] = planned.items;
	if (first === undefined || first instanceof ItemError) throw new Error('No item was planned');
	const webhookUrl = first.kind === 'create' ? first.webhookUrl : undefined;
	return { ...planned, timeoutMs: first.timeoutMs, webhookUrl };
}

const TOOL = { isToolExecution: () => true };
const ENGINE_V2 = { getWorkflowSettings: () => ({ engineType: 'v2' }) as never };
const SUB_WORKFLOW = { getMode: () => 'integrated' as const };
const WEBHOOK: Partial<IExecuteFunctions> = {
	getParentNodes: () => [
		{
			name: 'Webhook',
			type: 'n8n-nodes-base.webhook',
			parameters: { responseMode: 'lastNode' },
		} as never,
	],
	evaluateExpression: () => true as never,
};
const TASKS = { resource: 'task', operation: 'wait', taskId: 'task-1, task-2' };

describe('a run', () => {
	it('is held for five minutes unless it says otherwise, and its tasks are waited for a day', async () => {
		expect(await plan()).toMatchObject({
			suspendAfterMs: 5 * MINUTE_MS,
			timeoutMs: DAY_MS,
			warnings: [],
		});
	});

	it.each([0, 0.5, 1, 90])(
		'is suspended after %d minutes where that is chosen',
		async (minutes) => {
			const { suspendAfterMs } = await plan({ options: { suspendAfter: minutes } });
			expect(suspendAfterMs).toBe(minutes * MINUTE_MS);
		},
	);

	it.each([[-1], ['soon'], [null]])(
		'with %j minutes is refused or has the default',
		async (value) => {
			const planned = plan({ options: { suspendAfter: value } });
			if (value === null) expect((await planned).suspendAfterMs).toBe(5 * MINUTE_MS);
			else await expect(planned).rejects.toThrow("'Suspend After'");
		},
	);

	it('gives its tasks a callback address only where it is suspended at once', async () => {
		expect((await plan({ options: { suspendAfter: 0 } })).webhookUrl).toContain(
			'/webhook-waiting/1/',
		);
		for (const suspendAfter of [undefined, 0.01, 5]) {
			const { webhookUrl } = await plan({ options: { suspendAfter } });
			expect(webhookUrl).toBeUndefined();
		}
	});

	it('gives none where the service cannot call n8n', async () => {
		const more = {
			evaluateExpression: () => 'http://localhost:5678/webhook-waiting/1' as never,
			getParentNodes: () => [],
		};
		const { webhookUrl, suspendAfterMs } = await plan({ options: { suspendAfter: 0 }, more });
		expect([webhookUrl, suspendAfterMs]).toEqual([undefined, 0]);
	});

	it.each(['trigger', 'return'])(
		'of which nobody waits (%s) reads no Suspend After',
		async (completion) => {
			const parameters = { completion, callbackUrl: 'https://n8n.test/webhook/a/callback' };
			const options = { suspendAfter: 0 };
			expect(await plan({ options, parameters, more: ENGINE_V2 })).toMatchObject({
				suspendAfterMs: Infinity,
				timeoutMs: DAY_MS,
				warnings: [],
			});
		},
	);

	it('of Task → Wait is suspended like one that creates', async () => {
		const parameters = { ...TASKS, taskId: 'task-1' };
		expect(await plan({ parameters, options: { suspendAfter: 2 } })).toMatchObject({
			suspendAfterMs: 2 * MINUTE_MS,
			timeoutMs: DAY_MS,
		});
	});

	it('says at its begin what may go wrong where it is suspended at once, and not otherwise', async () => {
		const more = { getWorkflowSettings: () => ({ executionTimeout: 60 }) as never };
		expect((await plan({ more, options: { suspendAfter: 0 } })).warnings).toEqual([
			expect.stringContaining('time limit of 60 s'),
		]);
		expect((await plan({ more })).warnings).toEqual([]);
	});
});

describe.each<[string, Given]>([
	['as a tool', { more: TOOL }],
	["by n8n's engine v2", { more: ENGINE_V2 }],
	['in a sub-workflow', { more: SUB_WORKFLOW }],
	['for a Webhook that answers with its last node', { more: WEBHOOK }],
	['whose results are split', { options: { splitResults: true } }],
	['of which one input item names two tasks', { parameters: TASKS }],
])('a run %s', (_what, given) => {
	it('is held to its end, for ten minutes, without a word', async () => {
		expect(await plan(given)).toMatchObject({
			suspendAfterMs: Infinity,
			timeoutMs: 10 * MINUTE_MS,
			warnings: [],
		});
	});

	it('is held for as long as the user says', async () => {
		const options = { ...given.options, timeout: 7200 };
		expect(await plan({ ...given, options })).toMatchObject({
			suspendAfterMs: Infinity,
			timeoutMs: 7_200_000,
		});
	});
});

describe('a run that is to be suspended at once', () => {
	const suspendAfter = 0;

	it.each<[string, Given, string]>([
		['as a tool', { more: TOOL }, 'an AI agent needs'],
		["by n8n's engine v2", { more: ENGINE_V2 }, 'engine v2'],
	])('is refused %s, with a way out', async (_what, given, why) => {
		const refused = await caught(async () => await plan({ ...given, options: { suspendAfter } }));
		expect(refused.message).toContain('cannot be suspended at once');
		expect(refused.message).toContain(why);
		expect(refused).toMatchObject({
			description: expect.stringMatching(/'Suspend After'.*No task was created/s) as string,
		});
	});

	it('is suspended in a sub-workflow, with a word on what its caller gets', async () => {
		const planned = await plan({ more: SUB_WORKFLOW, options: { suspendAfter } });
		expect(planned).toMatchObject({ suspendAfterMs: 0, timeoutMs: DAY_MS });
		expect(planned.warnings).toEqual([expect.stringContaining('the first result only')]);
	});

	it.each<[string, Given, string]>([
		['a Webhook answers with its last node', { more: WEBHOOK }, "'Webhook' answers"],
		['its results are split', { options: { splitResults: true } }, 'link the items wrongly'],
		['an input item names two tasks', { parameters: TASKS }, 'link the items wrongly'],
	])('is held where %s, with a word on why', async (_what, given, why) => {
		const options = { ...given.options, suspendAfter };
		const planned = await plan({ ...given, options });
		expect(planned.suspendAfterMs).toBe(Infinity);
		expect(planned.warnings).toEqual([expect.stringContaining(why)]);
		expect(planned.warnings).toEqual([expect.stringContaining('is not suspended')]);
		expect(planned.webhookUrl).toBeUndefined();
	});
});

it('one task for each of several input items can be suspended', async () => {
	const parameters = { ...TASKS, taskId: '={{ $json.id }}' };
	const items = [{ json: { id: 'task-1' } }, { json: { id: 'task-2' } }];
	expect((await plan({ parameters, items })).suspendAfterMs).toBe(5 * MINUTE_MS);
});

it('an item whose parameters cannot be meant does not keep the others from being suspended', async () => {
	const parameters = { prompt: '={{ $json.prompt }}' };
	const items = [{ json: { prompt: 'a' } }, { json: {} }];
	expect((await plan({ parameters, items })).suspendAfterMs).toBe(5 * MINUTE_MS);
});
