import type * as CanSuspend from '../../../nodes/MediaGeneration/plan/canSuspend';
import { obstacleOf, suspensionWarnings } from '../../../nodes/MediaGeneration/plan/canSuspend';
import { resumeCallbackUrl } from '../../../nodes/MediaGeneration/suspend/resumeWebhook';
import { CREDENTIAL } from '../../workflow/engine';
import { BEFORE_2_41, BEFORE_N8N_2, onOlderN8n } from '../olderN8n';
import { contextOf } from '../suspend/checks';

const contextWith = (settings: object = {}, more: object = {}) =>
	contextOf({}, { getWorkflowSettings: () => settings, ...more });

const without = (missing: string) =>
	onOlderN8n(missing, () =>
		jest.requireActual<typeof CanSuspend>('../../../nodes/MediaGeneration/plan/canSuspend'),
	);

const CHAT = { type: '@n8n/n8n-nodes-langchain.chatTrigger' };

/** A context of an execution that a trigger above the node has started. */
const startedBy = (
	parameters: object,
	{ hasRun = true, disabled = false, type = 'n8n-nodes-base.webhook', answered = true } = {},
) =>
	contextWith(
		{},
		{
			workflow: { nodes: { Answer: { name: 'Answer', type: 'n8n-nodes-base.respondToWebhook' } } },
			getParentNodes: () => [
				{ name: 'Other "caller"', type, typeVersion: 1, disabled, parameters },
			],
			evaluateExpression: (expression: string) => {
				if (expression === '{{ $("Answer").isExecuted }}') return answered;
				expect(expression).toBe('{{ $("Other \\"caller\\"").isExecuted }}');
				return hasRun;
			},
		},
	);

describe('an execution is suspended', () => {
	it.each<[string, ReturnType<typeof contextWith>]>([
		['with the engine of today, whatever starts it', contextWith({ executionOrder: 'v1' })],
		['where n8n does not tell its settings', contextOf({}, { getWorkflowSettings: undefined })],
		['where a Webhook answers at once', startedBy({ responseMode: 'onReceived' })],
		[
			'by a chat that answers by nodes',
			startedBy({ options: { responseMode: 'responseNodes' } }, CHAT),
		],
		['where a node has answered already', startedBy({ responseMode: 'responseNode' })],
		[
			'where the Webhook has not started it',
			startedBy({ responseMode: 'lastNode' }, { hasRun: false }),
		],
		[
			'where the Webhook is switched off',
			startedBy({ responseMode: 'lastNode' }, { disabled: true }),
		],
		['since n8n 2.41 without being saved', contextWith({ saveDataSuccessExecution: 'none' })],
	])('%s', (_what, context) => {
		expect(obstacleOf(context, true)).toBeUndefined();
	});

	it.each(['all', undefined])(
		'before n8n 2.41 where it is saved (%s)',
		(saveDataSuccessExecution) => {
			const context = contextWith({ saveDataSuccessExecution });
			expect(without(BEFORE_2_41).obstacleOf(context, true)).toBeUndefined();
		},
	);
});

describe('an execution is not suspended', () => {
	const uuid = '01a200b4-3048-73fe-8a3a-955880aa5c89';

	it.each<[string, ReturnType<typeof contextWith>, why: string, ifChosen: string]>([
		[
			'as a tool of an agent before version 3',
			contextWith({}, { isToolExecution: () => true }),
			'AI agent',
			'refuse',
		],
		[
			'as a tool of an agent from version 3 on',
			contextWith({}, { getNode: () => ({ type: 'x.mediaGenerationTool' }) }),
			'AI agent',
			'refuse',
		],
		["by n8n's engine v2", contextWith({ engineType: 'v2' }), 'engine v2', 'refuse'],
		[
			"by n8n's engine v2, of which a running node is told by the id of its execution alone",
			contextWith({}, { getExecutionId: () => uuid }),
			'engine v2',
			'refuse',
		],
		[
			'in a sub-workflow: its caller may get the first result only',
			contextWith({}, { getMode: () => 'integrated' }),
			'sub-workflow',
			'suspend',
		],
		[
			'where a Webhook and a Form answer with the last node',
			startedBy({ responseMode: 'lastNode' }),
			'the caller of \'Other "caller"\' waits',
			'hold',
		],
		[
			'where a chat answers with the last node',
			startedBy({ options: { responseMode: 'lastNode' } }, CHAT),
			'the caller of \'Other "caller"\' waits',
			'hold',
		],
		['by a chat by default', startedBy({ options: {} }, CHAT), "'Other", 'hold'],
		[
			'where a chat streams its answer: the stream ends at the suspension',
			startedBy({ options: { responseMode: 'streaming' } }, CHAT),
			'the caller of \'Other "caller"\' waits',
			'hold',
		],
		[
			'where a node is to answer: in queue mode n8n gives an empty answer at the suspension',
			startedBy({ responseMode: 'responseNode' }, { answered: false }),
			'the caller of \'Other "caller"\' waits',
			'hold',
		],
		[
			'for an evaluation: n8n measures what is there at the suspension',
			contextWith({}, { getMode: () => 'evaluation' }),
			'evaluation',
			'hold',
		],
	])('%s', (_what, context, why, ifChosen) => {
		expect(obstacleOf(context, true)).toEqual({
			why: expect.stringContaining(why) as string,
			ifChosen,
		});
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

	it.each([{ executionOrder: 'v1' }, { executionTimeout: -1 }, { executionTimeout: 0 }])(
		'are none with %j',
		(settings) => {
			expect(limited(settings)).toEqual([]);
		},
	);

	it.each<[string, object, number | undefined, number]>([
		['a time limit, which counts the wait', { executionTimeout: 60 }, undefined, 60],
		["n8n's own limit, which holds for a workflow without one", {}, 90, 90],
		[
			"n8n's largest limit where that of the workflow is above it",
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

describe('the address that a suspended run is called back at', () => {
	it('is that of the execution, with a token', () => {
		const url = new URL(resumeCallbackUrl(contextWith(), CREDENTIAL) ?? '');
		expect(url.origin + url.pathname).toBe('https://n8n.test/webhook-waiting/1/callback');
		expect(url.searchParams.get('token')).toMatch(/^[0-9a-f]{64}$/);
	});

	it('is none where the service cannot reach n8n', () => {
		const evaluateExpression = () => 'http://localhost:5678/webhook-waiting/1';
		expect(resumeCallbackUrl(contextWith({}, { evaluateExpression }), CREDENTIAL)).toBeUndefined();
	});
});
