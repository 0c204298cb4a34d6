import { checkSuspendable } from '../../../nodes/MediaGeneration/plan/suspendable';
import { API_KEY, executeContext } from '../../workflow/engine';

const contextWith = (settings: object) => {
	const context = executeContext({
		node: {},
		credential: { baseUrl: 'https://api.example.com', apiKey: API_KEY },
	});
	Object.assign(context, { getWorkflowSettings: () => settings });
	const hints: string[] = [];
	Object.assign(context, {
		addExecutionHints: ({ message }: { message: string }) => hints.push(message),
	});
	return { context, hints };
};

it('suspends with the engine of today, without a word', () => {
	const { context, hints } = contextWith({ executionOrder: 'v1' });
	expect(() => checkSuspendable(context)).not.toThrow();
	expect(hints).toEqual([]);
});

it('refuses the engine v2, which resumes no execution', () => {
	const { context } = contextWith({ engineType: 'v2' });
	expect(() => checkSuspendable(context)).toThrow('engine v2');
});

it('refuses it where a running node is told of it by the id of its execution alone', () => {
	const { context } = contextWith({});
	Object.assign(context, { getExecutionId: () => '01a200b4-3048-73fe-8a3a-955880aa5c89' });
	expect(() => checkSuspendable(context)).toThrow('engine v2');
});

it('warns of a time limit, which counts the wait', () => {
	const { context, hints } = contextWith({ executionTimeout: 60 });
	checkSuspendable(context);
	expect(hints).toEqual([expect.stringContaining('time limit of 60 s')]);
});

it("warns of n8n's own time limit, which holds for a workflow without one", () => {
	const { context, hints } = contextWith({});
	Object.assign(context.additionalData, { executionTimeoutTimestamp: Date.now() + 90_000 });
	checkSuspendable(context);
	expect(hints).toEqual([expect.stringContaining('time limit of 90 s')]);
	expect(hints[0]).toContain('EXECUTIONS_TIMEOUT');
});

it("names n8n's largest time limit where that of the workflow is above it", () => {
	const { context, hints } = contextWith({ executionTimeout: 86_400 });
	Object.assign(context.additionalData, { executionTimeoutTimestamp: Date.now() + 3_600_000 });
	checkSuspendable(context);
	expect(hints).toEqual([expect.stringContaining('time limit of 3600 s')]);
});

it('suspends where n8n does not tell its settings', () => {
	const { context } = contextWith({});
	Object.assign(context, { getWorkflowSettings: undefined });
	expect(() => checkSuspendable(context)).not.toThrow();
});

/** @param missing what the `n8n-workflow` of an older n8n does not have */
function checkWithout(missing: string, context: ReturnType<typeof contextWith>['context']) {
	jest.isolateModules(() => {
		jest.doMock('n8n-workflow', () => {
			const { [missing]: _, ...older } =
				jest.requireActual<Record<string, unknown>>('n8n-workflow');
			return older;
		});
		jest
			.requireActual<{ checkSuspendable: typeof checkSuspendable }>(
				'../../../nodes/MediaGeneration/plan/suspendable',
			)
			.checkSuspendable(context);
	});
}

it('refuses n8n 1, which may resume an execution more than once', () => {
	expect(() => checkWithout('validateWorkflowHasTriggerLikeNode', contextWith({}).context)).toThrow(
		'needs n8n 2 or later',
	);
});

it('warns of an n8n that does not look for executions whose sub-execution has ended', () => {
	const { context, hints } = contextWith({});
	checkWithout('WAIT_FOR_SUB_EXECUTION', context);
	expect(hints).toEqual([expect.stringContaining('Before 2.41')]);
});
