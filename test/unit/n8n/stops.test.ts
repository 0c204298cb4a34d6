import {
	createRunExecutionData,
	type ExecutionError,
	ManualExecutionCancelledError,
	type RelatedExecution,
	UserError,
} from 'n8n-workflow';

import { lookForStop } from '../../../nodes/MediaGeneration/n8n/stops';
import { internalsOf } from '../../../nodes/MediaGeneration/n8n/internals';
import { executeContext } from '../../workflow/engine';
import { FakeClock } from '../support';

/** Execution 1 runs the node. */
interface Stored {
	error?: ExecutionError;
	parentExecution?: RelatedExecution;
	/** Whether something is still to run, also what waits for the other input of a Merge; default: yes. */
	left?: 'stack' | 'merge' | 'nothing';
	trigger?: string;
}

/** An execution that is not named here is not stored any more. */
type Executions = Record<string, Stored | 'away'>;

/** A run that asks n8n. A webhook may have started it on a webhook processor. @param costMs of a question */
function storing(executions: Executions, mode: 'webhook' | 'trigger' = 'webhook', costMs = 0) {
	const clock = new FakeClock();
	const context = executeContext();
	// As a worker does.
	internalsOf(context).additionalData!.hooks!.handlers!.sendChunk = [() => undefined];
	const asked: string[] = [];
	context.getExecutionDataById = async (id) => {
		asked.push(id);
		clock.pass(costMs);
		const stored = executions[id];
		if (stored === undefined) return undefined;
		if (stored === 'away') throw new Error('No connection to the database');
		const { error, parentExecution, left = 'stack', trigger } = stored;
		const entry = { node: context.getNode(), data: {}, source: null };
		const runtimeData = trigger && {
			...{ version: 1 as const, establishedAt: 0, source: 'webhook' as const },
			triggerNode: { name: 'Trigger', type: trigger },
		};
		return createRunExecutionData({
			...(parentExecution && { parentExecution }),
			resultData: { ...(error && { error }) },
			executionData: {
				nodeExecutionStack: left === 'stack' ? [entry] : [],
				waitingExecution: left === 'merge' ? { Merge: {} } : {},
				...(runtimeData && { runtimeData }),
			},
		});
	};
	const own = executions[1];
	if (own !== 'away' && own?.parentExecution) {
		internalsOf(context).runExecutionData!.parentExecution = own.parentExecution;
	}
	context.getMode = () => mode;
	const isFound = lookForStop(context);
	return { clock, context, asked, stop: { isFound } };
}

const stopOf = (id: string) => ({ error: new ManualExecutionCancelledError(id) });
const calledBy = (executionId: string, shouldResume: boolean) => ({
	parentExecution: { executionId, workflowId: 'caller', shouldResume },
});

const MCP = '@n8n/n8n-nodes-langchain.mcpTrigger';

it.each<[boolean, string, Executions]>([
	[true, 'its stop', { 1: stopOf('1') }],
	[true, 'the stop of its caller', { 1: calledBy('2', true), 2: stopOf('2') }],
	[
		true,
		"the stop of its caller's caller",
		{ 1: calledBy('2', true), 2: calledBy('3', true), 3: stopOf('3') },
	],
	[
		true,
		'a caller with nothing left to run, as a worker stores its stop',
		{ 1: calledBy('2', true), 2: { left: 'nothing' } },
	],
	[
		true,
		'the same of a sub-workflow of an MCP server',
		{
			1: calledBy('2', true),
			2: { ...calledBy('3', true), left: 'nothing', trigger: MCP },
		},
	],
	[
		false,
		'the end of an MCP server, whose tool begins after it',
		{ 1: calledBy('2', true), 2: { left: 'nothing', trigger: MCP } },
	],
	[
		false,
		'a caller that saves its progress in front of a Merge',
		{ 1: calledBy('2', true), 2: { left: 'merge' } },
	],
	[false, 'nothing of a stop', { 1: {} }],
	[false, 'the stop of a caller that does not wait', { 1: calledBy('2', false), 2: stopOf('2') }],
	[false, 'the stop of the execution that is retried', { 1: stopOf('0') }],
	[false, 'another error', { 1: { error: new UserError('No') as never } }],
	[false, 'the call alone, and gives no data of the caller', { 1: calledBy('2', true) }],
	[false, 'nothing at all', {}],
	[false, 'nothing that it can read', { 1: 'away' }],
	[false, 'nothing of the caller that it can read', { 1: calledBy('2', true), 2: 'away' }],
])('finds %s where n8n has stored %s', async (isFound, _what, executions) => {
	expect(await storing(executions).stop.isFound()).toBe(isFound);
});

describe('a retry, for which the caller of the first execution does not wait', () => {
	const CALLERS = { 1: calledBy('2', true), 2: calledBy('3', true) };

	it('asks for no caller', async () => {
		const { context, asked } = storing({ 1: calledBy('2', true), 2: stopOf('2') });
		context.getMode = () => 'retry';
		expect(await lookForStop(context)()).toBe(false);
		expect(asked).toEqual([]);
	});

	it.each<[boolean, string, Executions]>([
		[true, 'of the retry', { ...CALLERS, 2: stopOf('2') }],
		[false, 'of the caller of the first execution', { ...CALLERS, 3: stopOf('3') }],
	])('has a sub-workflow find (%s) the stop %s', async (isFound, _what, executions) => {
		const { context, stop } = storing(executions);
		Object.assign(internalsOf(context).additionalData ?? {}, { rootExecutionMode: 'retry' });
		expect(await stop.isFound()).toBe(isFound);
	});
});

it("asks for nothing in n8n's Agents, which have no executions", async () => {
	const { context, asked } = storing({ 1: stopOf('1') }, 'trigger');
	context.getExecutionId = () => undefined as never;
	expect(await lookForStop(context)()).toBe(false);
	expect(asked).toEqual([]);
});

it('asks before each order, also before those that are sent together', async () => {
	const { stop, asked } = storing({ 1: {} }, 'webhook', 5);
	for (const times of [2, 4]) {
		expect(await Promise.all([stop.isFound(), stop.isFound()])).toEqual([false, false]);
		expect(asked).toHaveLength(times);
	}
});

it('asks at once, and then seldom if the question is costly', async () => {
	const { clock, stop, asked } = storing({ 1: {} }, 'webhook', 280);
	const PAUSE_MS = 20 * (280 - 25);
	for (const [ms, times] of [
		[0, 1],
		[PAUSE_MS - 1, 1],
		[1, 2],
	] as const) {
		clock.pass(ms);
		expect(await stop.isFound()).toBe(false);
		expect(asked).toHaveLength(times);
	}
});

it.each(['in one process', 'by a trigger'])(
	'asks nothing in a run that n8n tells of its stop (%s)',
	async (how) => {
		const { context, stop, asked } = storing({ 1: stopOf('1') }, 'trigger');
		expect(await stop.isFound()).toBe(false);
		if (how === 'in one process') {
			internalsOf(context).additionalData!.hooks!.handlers!.sendChunk = [];
			context.getMode = () => 'webhook';
			expect(await lookForStop(context)()).toBe(false);
		}
		expect(asked).toEqual([]);
	},
);
