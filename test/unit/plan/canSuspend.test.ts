import type * as CanSuspend from '../../../nodes/MediaGeneration/plan/canSuspend';
import { obstacleOf, suspensionWarnings } from '../../../nodes/MediaGeneration/plan/canSuspend';
import { BEFORE_2_41, BEFORE_N8N_2, onOlderN8n } from '../olderN8n';
import { contextOf } from '../suspend/checks';

const contextWith = (settings: object = {}, more: object = {}) =>
	contextOf({}, { getWorkflowSettings: () => settings, ...more });

const without = (missing: string) =>
	onOlderN8n(missing, () =>
		jest.requireActual<typeof CanSuspend>('../../../nodes/MediaGeneration/plan/canSuspend'),
	);

const CHAT = '@n8n/n8n-nodes-langchain.chatTrigger';

/** A context of an execution that a trigger above the node has started. */
const startedBy = (
	parameters: object,
	{ hasRun = true, disabled = false, type = 'n8n-nodes-base.webhook', answered = true } = {},
) => {
	const answer = { name: 'Answer', type: 'n8n-nodes-base.respondToWebhook' };
	const trigger = { name: 'Other "caller"', type, typeVersion: 1, disabled, parameters };
	const isExecuted: Record<string, boolean> = {
		'{{ $("Answer").isExecuted }}': answered,
		'{{ $("Other \\"caller\\"").isExecuted }}': hasRun,
	};
	return contextOf(
		{},
		{
			getWorkflowSettings: () => ({}),
			workflow: { nodes: { Answer: answer } },
			getParentNodes: () => [trigger],
			evaluateExpression: (expression: string) => {
				expect(Object.keys(isExecuted)).toContain(expression);
				return isExecuted[expression];
			},
		},
	);
};
const webhook = (responseMode: string, more = {}) => startedBy({ responseMode }, more);
const chat = (options: object) => startedBy({ options }, { type: CHAT });

describe('an execution is suspended', () => {
	it.each<[string, ReturnType<typeof contextWith>]>([
		['with the engine of today, whatever starts it', contextWith({ executionOrder: 'v1' })],
		['where n8n does not tell its settings', contextOf({}, { getWorkflowSettings: undefined })],
		['where a Webhook answers at once', webhook('onReceived')],
		['by a chat that answers by nodes', chat({ responseMode: 'responseNodes' })],
		['where a node has answered already', webhook('responseNode')],
		['where the Webhook has not started it', webhook('lastNode', { hasRun: false })],
		['where the Webhook is switched off', webhook('lastNode', { disabled: true })],
		['since n8n 2.41 without being saved', contextWith({ saveDataSuccessExecution: 'none' })],
	])('%s', (_what, context) => {
		expect(obstacleOf(context, true)).toBeUndefined();
	});

	it.each(['all', undefined])('before n8n 2.41 where it is saved (%s)', (saved) => {
		const context = contextWith({ saveDataSuccessExecution: saved });
		expect(without(BEFORE_2_41).obstacleOf(context, true)).toBeUndefined();
	});
});

describe('an execution is not suspended', () => {
	const isToolExecution = () => true;
	const mode = (name: string) => contextWith({}, { getMode: () => name });
	const node = (type: string) => contextWith({}, { getNode: () => ({ type }) });
	const execution = (id: string) => contextWith({}, { getExecutionId: () => id });
	const uuid = '01a200b4-3048-73fe-8a3a-955880aa5c89';
	const waits = 'the caller of \'Other "caller"\' waits';

	it.each<[string, ReturnType<typeof contextWith>, why: string, ifChosen: string]>([
		['as a tool of older agents', contextWith({}, { isToolExecution }), 'AI agent', 'refuse'],
		['as a tool of agents from version 3 on', node('x.mediaGenerationTool'), 'AI agent', 'refuse'],
		["by n8n's engine v2", contextWith({ engineType: 'v2' }), 'engine v2', 'refuse'],
		['by that, which only the id of the execution tells', execution(uuid), 'engine v2', 'refuse'],
		// Its caller may get the first result only.
		['in a sub-workflow', mode('integrated'), 'sub-workflow', 'suspend'],
		['where a Webhook and a Form answer with the last node', webhook('lastNode'), waits, 'hold'],
		['where a chat answers with the last node', chat({ responseMode: 'lastNode' }), waits, 'hold'],
		['by a chat by default', chat({}), waits, 'hold'],
		// The stream ends at the suspension.
		['where a chat streams its answer', chat({ responseMode: 'streaming' }), waits, 'hold'],
		// In queue mode n8n gives an empty answer at the suspension.
		['where a node is to answer', webhook('responseNode', { answered: false }), waits, 'hold'],
		// n8n measures what is there at the suspension.
		['for an evaluation', mode('evaluation'), 'evaluation', 'hold'],
	])('%s', (_what, context, why, ifChosen) => {
		const obstacle = { why: expect.stringContaining(why) as string, ifChosen };
		expect(obstacleOf(context, true)).toEqual(obstacle);
	});

	it('by n8n 1, which may resume one more than once', () => {
		expect(without(BEFORE_N8N_2).obstacleOf(contextWith(), true)).toEqual({
			why: 'that needs n8n 2 or later',
			ifChosen: 'refuse',
		});
	});

	it('before n8n 2.41 where it is not saved: in queue mode n8n may delete it', () => {
		const context = contextWith({ saveDataSuccessExecution: 'none' });
		const { why, ifChosen } = without(BEFORE_2_41).obstacleOf(context, true) ?? {};
		expect(why).toContain('before 2.41 n8n in queue mode may delete them');
		expect(why).toContain("choose 'Save' in the workflow's settings");
		expect(ifChosen).toBe('hold');
	});
});

describe('the warnings of a suspension', () => {
	/** @param seconds until n8n's own limit ends the execution */
	const limited = (settings: object, seconds?: number) => {
		const context = contextWith(settings);
		const executionTimeoutTimestamp = seconds && Date.now() + seconds * 1000;
		Object.assign(context.additionalData, { executionTimeoutTimestamp });
		return suspensionWarnings(context);
	};

	const NONE = [{ executionOrder: 'v1' }, { executionTimeout: -1 }, { executionTimeout: 0 }];
	it.each(NONE)('are none with %j', (settings) => {
		expect(limited(settings)).toEqual([]);
	});

	it.each<[string, object, number | undefined, number]>([
		['a time limit, which counts the wait', { executionTimeout: 60 }, undefined, 60],
		["n8n's own limit, which holds for a workflow without one", {}, 90, 90],
		[
			"n8n's largest limit where the workflow's is above it",
			{ executionTimeout: 86_400 },
			3600,
			3600,
		],
	])('name %s', (_what, settings, ofN8n, seconds) => {
		const [warning, ...others] = limited(settings, ofN8n);
		expect(warning).toContain(`time limit of ${seconds} s`);
		expect(warning).toContain('EXECUTIONS_TIMEOUT');
		expect(others).toEqual([]);
	});

	it('name an n8n that does not look for executions whose sub-execution has ended', () => {
		const warnings = without(BEFORE_2_41).suspensionWarnings(contextWith());
		expect(warnings).toEqual([expect.stringContaining('Before 2.41')]);
	});
});
