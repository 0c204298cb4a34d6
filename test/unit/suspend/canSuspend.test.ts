import type { IExecuteFunctions } from 'n8n-workflow';

import {
	obstacleOf,
	resumeAddress,
	suspensionWarnings,
} from '../../../nodes/MediaGeneration/suspend/canSuspend';
import { API_KEY, executeContext } from '../../workflow/engine';

const SERVICE = 'https://api.example.com';

const contextWith = (settings: object = {}, more: Partial<IExecuteFunctions> = {}) => {
	const context = executeContext({ node: {}, credential: { baseUrl: SERVICE, apiKey: API_KEY } });
	return Object.assign(context, { getWorkflowSettings: () => settings, ...more });
};

type Module = { obstacleOf: typeof obstacleOf; suspensionWarnings: typeof suspensionWarnings };

/** @param missing what the `n8n-workflow` of an older n8n does not have */
function without(missing: string): Module {
	let loaded: Module | undefined;
	jest.isolateModules(() => {
		jest.doMock('n8n-workflow', () => {
			const { [missing]: _, ...older } =
				jest.requireActual<Record<string, unknown>>('n8n-workflow');
			return older;
		});
		loaded = jest.requireActual<Module>('../../../nodes/MediaGeneration/suspend/canSuspend');
		jest.dontMock('n8n-workflow');
	});
	if (!loaded) throw new Error('Not loaded');
	return loaded;
}

const CHAT = { type: '@n8n/n8n-nodes-langchain.chatTrigger' };

/** A context of an execution that a trigger above the node has started. */
const startedBy = (
	parameters: object,
	{ hasRun = true, disabled = false, type = 'n8n-nodes-base.webhook' } = {},
) =>
	contextWith(
		{},
		{
			getParentNodes: () => [
				{ name: 'Other "caller"', type, typeVersion: 1, disabled, parameters } as never,
			],
			evaluateExpression: ((expression: string) => {
				expect(expression).toBe('{{ $("Other \\"caller\\"").isExecuted }}');
				return hasRun;
			}) as never,
		},
	);

describe('an execution', () => {
	it('is suspended with the engine of today, whatever starts it', () => {
		expect(obstacleOf(contextWith({ executionOrder: 'v1' }))).toBeUndefined();
	});

	it('is suspended where n8n does not tell its settings', () => {
		const context = contextWith();
		Object.assign(context, { getWorkflowSettings: undefined });
		expect(obstacleOf(context)).toBeUndefined();
	});

	it("is not suspended by n8n's engine v2, which resumes none", () => {
		const expected = { why: expect.stringContaining('engine v2') as string, ifChosen: 'refuse' };
		expect(obstacleOf(contextWith({ engineType: 'v2' }))).toEqual(expected);
		// A running node is told of it by the id of its execution alone.
		const id = '01a200b4-3048-73fe-8a3a-955880aa5c89';
		expect(obstacleOf(contextWith({}, { getExecutionId: () => id }))).toEqual(expected);
	});

	it('is not suspended by n8n 1, which may resume one more than once', () => {
		const { obstacleOf: obstacle } = without('validateWorkflowHasTriggerLikeNode');
		expect(obstacle(contextWith())).toEqual({
			why: expect.stringContaining('needs n8n 2 or later') as string,
			ifChosen: 'refuse',
		});
	});

	it.each([
		['an agent before version 3', { isToolExecution: () => true }],
		['an agent from version 3 on', { getNode: () => ({ type: 'x.mediaGenerationTool' }) as never }],
	])('is not suspended as a tool of %s', (_what, more) => {
		expect(obstacleOf(contextWith({}, more))).toEqual({
			why: expect.stringContaining('AI agent') as string,
			ifChosen: 'refuse',
		});
	});

	it('is not suspended in a sub-workflow unless that is chosen: its caller may get the first result only', () => {
		expect(obstacleOf(contextWith({}, { getMode: () => 'integrated' }))).toEqual({
			why: expect.stringContaining('sub-workflow') as string,
			ifChosen: 'suspend',
		});
	});

	it.each([
		['a Webhook and a Form', { responseMode: 'lastNode' }, {}],
		['a chat', { options: { responseMode: 'lastNode' } }, CHAT],
		['a chat by default', { options: {} }, CHAT],
	])('is not suspended where %s answers with the last node', (_what, parameters, more) => {
		expect(obstacleOf(startedBy(parameters, more))).toEqual({
			why: expect.stringContaining('\'Other "caller"\' answers') as string,
			ifChosen: 'hold',
		});
	});

	it.each<[string, object, Parameters<typeof startedBy>[1]]>([
		['answers at once', { responseMode: 'onReceived' }, {}],
		['is a chat that streams', { options: { responseMode: 'streaming' } }, CHAT],
		['answers by a node of its own', { responseMode: 'responseNode' }, {}],
		['has not started this execution', { responseMode: 'lastNode' }, { hasRun: false }],
		['is switched off', { responseMode: 'lastNode' }, { disabled: true }],
	])('is suspended where the Webhook %s', (_what, parameters, more) => {
		expect(obstacleOf(startedBy(parameters, more))).toBeUndefined();
	});
});

describe('the warnings of a suspension', () => {
	it('are none as a rule', () => {
		expect(suspensionWarnings(contextWith({ executionOrder: 'v1' }))).toEqual([]);
	});

	it('name a time limit, which counts the wait', () => {
		expect(suspensionWarnings(contextWith({ executionTimeout: 60 }))).toEqual([
			expect.stringContaining('time limit of 60 s'),
		]);
	});

	it.each([-1, 0])('know that a time limit of %d is none', (executionTimeout) => {
		expect(suspensionWarnings(contextWith({ executionTimeout }))).toEqual([]);
	});

	it("name n8n's own time limit, which holds for a workflow without one", () => {
		const context = contextWith();
		Object.assign(context.additionalData, { executionTimeoutTimestamp: Date.now() + 90_000 });
		const [warning, ...others] = suspensionWarnings(context);
		expect(warning).toContain('time limit of 90 s');
		expect(warning).toContain('EXECUTIONS_TIMEOUT');
		expect(others).toEqual([]);
	});

	it("name n8n's largest time limit where that of the workflow is above it", () => {
		const context = contextWith({ executionTimeout: 86_400 });
		Object.assign(context.additionalData, { executionTimeoutTimestamp: Date.now() + 3_600_000 });
		expect(suspensionWarnings(context)).toEqual([expect.stringContaining('time limit of 3600 s')]);
	});

	it('name an n8n that does not look for executions whose sub-execution has ended', () => {
		const { suspensionWarnings: warnings } = without('WAIT_FOR_SUB_EXECUTION');
		expect(warnings(contextWith())).toEqual([expect.stringContaining('Before 2.41')]);
	});
});

describe('the address that a suspended run is called back at', () => {
	it('is that of the execution, with a token', () => {
		const address = resumeAddress(contextWith(), { apiKey: API_KEY, baseUrl: SERVICE });
		const { origin, pathname, searchParams } = new URL(address ?? '');
		expect(origin + pathname).toBe('https://n8n.test/webhook-waiting/1/callback');
		expect(searchParams.get('token')).toMatch(/^[0-9a-f]{64}$/);
	});

	it('is none where the service cannot reach n8n', () => {
		const context = contextWith();
		jest
			.spyOn(context, 'evaluateExpression')
			.mockReturnValue('http://localhost:5678/webhook-waiting/1');
		expect(resumeAddress(context, { apiKey: API_KEY, baseUrl: SERVICE })).toBeUndefined();
	});
});
