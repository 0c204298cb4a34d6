import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { noteWoken, timeLimitOf } from '../../../nodes/MediaGeneration/n8n/stretch';
import { planWait } from '../../../nodes/MediaGeneration/plan/planWait';
import type { ItemPlan } from '../../../nodes/MediaGeneration/plan/planTypes';
import type { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { ItemParameters } from '../../../nodes/MediaGeneration/shared/parameters';
import { executeContext } from '../../workflow/engine';
import { caught } from '../support';
import { image, json, planOf } from './planning';

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
	return { ...planned, timeoutMs: first.timeoutMs };
}

const AT_ONCE = { suspendAfter: 0 };
const AFTER_A_DAY = { timeoutMs: DAY_MS, warnings: [] };

const node = (type: string) => ({ getNode: () => ({ ...executeContext().getNode(), type }) });
const mode = (name: string) => ({ getMode: () => name as 'integrated' });
const settings = (given: object) => ({ getWorkflowSettings: () => given as never });

const CHAT = '@n8n/n8n-nodes-langchain.chatTrigger';

/** A run that a trigger above the node has started. */
function startedBy(
	parameters: object,
	{ hasRun = true, disabled = false, type = 'n8n-nodes-base.webhook', answered = true } = {},
) {
	const answer = { name: 'Answer', type: 'n8n-nodes-base.respondToWebhook' };
	const trigger = { name: 'Other "caller"', type, typeVersion: 1, disabled, parameters };
	const values: Record<string, unknown> = {
		'{{ $("Answer").isExecuted }}': answered,
		'{{ $("Other \\"caller\\"").isExecuted }}': hasRun,
		"{{ 'last' + 'Node' }}": 'lastNode',
	};
	return {
		others: { Answer: answer },
		getParentNodes: () => [trigger],
		evaluateExpression: (expression: string) => values[expression],
	} as unknown as Partial<IExecuteFunctions>;
}
const webhook = (responseMode: string, more = {}) => startedBy({ responseMode }, more);
const chat = (options: object) => startedBy({ options }, { type: CHAT });

/** What is decided for a run of one item that waits. */
function decide(given: Partial<IExecuteFunctions>, options: IDataObject = {}, limitAt = Infinity) {
	const context = Object.assign(executeContext({ node: { parameters: { options } } }), given);
	Object.assign(context.workflow.nodes, 'others' in given ? given.others : {});
	const item = { kind: 'create', completion: 'wait', itemIndex: 0, taskIndex: 0 } as ItemPlan;
	return planWait([item], new ItemParameters(context, 0), limitAt);
}

describe('a run sleeps', () => {
	it.each<[string, Given, object]>([
		['after five minutes as a rule', {}, AFTER_A_DAY],
		[
			'after the minutes chosen',
			{ options: { suspendAfter: 0.5 } },
			{ suspendAfterMs: MINUTE_MS / 2 },
		],
		['with no minutes by default', { options: { suspendAfter: null } }, AFTER_A_DAY],
		['in a sub-workflow', { context: mode('integrated') }, AFTER_A_DAY],
		['in a retry', { context: mode('retry') }, AFTER_A_DAY],
	])('%s', async (_what, given, wait) => {
		expect(await plan(given)).toMatchObject({ suspendAfterMs: 5 * MINUTE_MS, ...wait });
	});

	it.each<[string, Partial<IExecuteFunctions>]>([
		['where it is not saved', settings({ saveDataSuccessExecution: 'none' })],
		['where a Webhook answers at once', webhook('onReceived')],
		['by a chat that answers by nodes', chat({ responseMode: 'responseNodes' })],
		['where a node has answered already', webhook('responseNode')],
		['where the Webhook has not started it', webhook('lastNode', { hasRun: false })],
		['where the Webhook is switched off', webhook('lastNode', { disabled: true })],
	])('%s', (_what, context) => {
		expect(decide(context, AT_ONCE)).toMatchObject({ suspendAfterMs: 0, warnings: [] });
	});
});

describe('a run is held to its end, for ten minutes or as the user says', () => {
	const waits = 'the caller of \'Other "caller"\' waits';
	const noExecution = { getExecutionId: () => undefined as never };
	const uuid = '01a200b4-3048-73fe-8a3a-955880aa5c89';

	it.each<[string, Partial<IExecuteFunctions>, why: string, isRefused: boolean]>([
		['as a tool of older agents', { isToolExecution: () => true }, 'AI agent', true],
		['as a tool of agents from version 3 on', node('x.mediaGenerationTool'), 'AI agent', true],
		["by n8n's engine v2", settings({ engineType: 'v2' }), 'engine v2', true],
		['by that, told by the id of the execution', { getExecutionId: () => uuid }, 'engine v2', true],
		['where a Webhook and a Form answer with the last node', webhook('lastNode'), waits, false],
		['where an expression says so', webhook("={{ 'last' + 'Node' }}"), waits, false],
		['where a chat answers with the last node', chat({ responseMode: 'lastNode' }), waits, false],
		['by a chat by default', chat({}), waits, false],
		['where a chat streams its answer', chat({ responseMode: 'streaming' }), waits, false],
		['where a node is to answer', webhook('responseNode', { answered: false }), waits, false],
		['for an evaluation', mode('evaluation'), 'evaluation', false],
		['without an execution', noExecution, 'no execution that could be woken', false],
	])('%s', async (_what, context, why, isRefused) => {
		const held = { suspendAfterMs: Infinity, seconds: 600 };
		expect(decide(context)).toMatchObject({ ...held, warnings: [] });
		if (isRefused) {
			const refused = (await caught(() => decide(context, AT_ONCE))) as ItemError;
			expect(refused.message).toMatch(`cannot be stored before its first task `);
			expect(refused.message).toContain(why);
			expect(refused.description).toContain('No task was created');
		} else {
			const warnings = [expect.stringContaining(why)];
			expect(decide(context, AT_ONCE)).toMatchObject({ ...held, warnings });
		}
	});

	it('of which nobody waits reads no suspendAfter', async () => {
		const given = { options: AT_ONCE, parameters: { completion: 'return' } };
		const wait = { suspendAfterMs: Infinity, timeoutMs: DAY_MS, warnings: [] };
		expect(await plan({ ...given, context: settings({ engineType: 'v2' }) })).toMatchObject(wait);
	});
});

describe("n8n's time limit", () => {
	const SECOND_MS = 1_000;
	/** How old the execution was when its present run began, and how long ago n8n has woken it. */
	interface Age {
		ageMs?: number;
		wokenMs?: number;
		mode?: string;
	}

	/** Seconds from now until n8n cancels the execution. */
	function limitOf(given: object, told: number | undefined, age: Age) {
		const { ageMs = 0, wokenMs, mode = 'trigger' } = age;
		const runData = { Start: [{ startTime: Date.now() - ageMs }, { startTime: 0 }] };
		const context = Object.assign(executeContext(), settings(given), {
			getMode: () => mode,
			runExecutionData: { resultData: { runData } },
		});
		const ends = told === undefined ? undefined : Date.now() + told * SECOND_MS;
		Object.assign(context.additionalData, { executionTimeoutTimestamp: ends });
		if (wokenMs !== undefined) noteWoken(context, Date.now() - ageMs);
		return Math.round((timeLimitOf(context) - Date.now()) / SECOND_MS);
	}

	const woken = { ageMs: 200_000, wokenMs: 0 };
	const old = { ageMs: 86_400_000 };
	const limit = { executionTimeout: 300 };
	it.each<[string, object, number | undefined, Age, number]>([
		['is none as a rule', { executionTimeout: -1 }, undefined, {}, Infinity],
		['of the workflow counts from the start', { executionTimeout: 60 }, undefined, {}, 60],
		['holds for a workflow without one', {}, 90, {}, 90],
		['is the smaller one of two', { executionTimeout: 86_400 }, 90, {}, 90],
		['counts from the first node', limit, 240, { ageMs: 60_000 }, 240],
		['counts so after a wake, when n8n says that all is left', limit, 300, woken, 100],
		['of n8n does so, too', {}, 300, woken, 100],
		['of a retry does not count from the nodes before', limit, 300, { ...old, mode: 'retry' }, 300],
		['of a step in the editor does not, too', limit, 300, { ...old, mode: 'manual' }, 300],
	])('%s', (_what, given, told, age, expected) => {
		expect(limitOf(given, told, age)).toBe(expected);
	});

	it('ends the wait a little before, and a run near it does not sleep any more', () => {
		const now = Date.now();
		const [near, far] = [now + 2 * MINUTE_MS, now + 10 * MINUTE_MS];
		expect(decide({}, {}, far)).toMatchObject({ suspendAfterMs: 300_000, endsAt: far - 10_000 });
		expect(decide({}, {}, near)).toMatchObject({ suspendAfterMs: Infinity, endsAt: near - 10_000 });
		const soon = now + 10_000;
		expect(decide({}, {}, soon).endsAt - now).toBeCloseTo(5_000, -2);
	});
});

const eachOne = { resource: 'task', operation: 'wait', taskId: '={{ $json.id }}' };
const prompt = { prompt: '={{ $json.prompt }}' };
it.each<[string, IDataObject, IDataObject[]]>([
	['names a task for each of several input items', eachOne, [{ id: 'task-1' }, { id: 'task-2' }]],
	['has an item whose parameters cannot be meant', prompt, [{ prompt: 'a' }, {}]],
])('a run that %s can sleep', async (_what, parameters, items) => {
	const { suspendAfterMs } = await planOf(parameters, json(...items));
	expect(suspendAfterMs).toBe(5 * MINUTE_MS);
});
