import {
	createRunExecutionData,
	type ExecutionError,
	ManualExecutionCancelledError,
	type RelatedExecution,
	UserError,
} from 'n8n-workflow';

import { lookForStop } from '../../../nodes/MediaGeneration/n8n/storedExecution';
import { internalsOf } from '../../../nodes/MediaGeneration/n8n/internals';
import { executeContext } from '../../workflow/engine';
import { FakeClock } from '../support';

/** Execution 1 runs the node. */
interface Stored {
	error?: ExecutionError;
	parentExecution?: RelatedExecution;
}

/** An execution that is not named here is not stored any more. */
type Executions = Record<string, Stored | 'away'>;

/** A run that asks n8n, half a minute after its start. A webhook may have started it on a webhook processor. */
function storing(executions: Executions, mode: 'webhook' | 'trigger' = 'webhook') {
	const clock = new FakeClock();
	const context = executeContext();
	const asked: string[] = [];
	context.getExecutionDataById = async (id) => {
		asked.push(id);
		const stored = executions[id];
		if (stored === undefined) return undefined;
		if (stored === 'away') throw new Error('No connection to the database');
		const { error, parentExecution } = stored;
		return createRunExecutionData({
			...(parentExecution && { parentExecution }),
			resultData: { ...(error && { error }) },
		});
	};
	context.getMode = () => mode;
	const isFound = lookForStop(context);
	clock.pass(30_000);
	return { clock, context, asked, stop: { isFound } };
}

const stopOf = (id: string) => ({ error: new ManualExecutionCancelledError(id) });
const calledBy = (executionId: string, shouldResume: boolean) => ({
	parentExecution: { executionId, workflowId: 'caller', shouldResume },
});

it.each<[boolean, string, Executions]>([
	[true, 'its stop', { 1: stopOf('1') }],
	[true, 'the stop of its caller', { 1: calledBy('2', true), 2: stopOf('2') }],
	[
		true,
		"the stop of its caller's caller",
		{ 1: calledBy('2', true), 2: calledBy('3', true), 3: stopOf('3') },
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

	it.each<[boolean, string, Executions]>([
		[false, 'of that caller', { 1: calledBy('2', true), 2: stopOf('2') }],
		[true, 'of the retry', { 1: { ...stopOf('1'), ...calledBy('2', true) } }],
	])('finds (%s) the stop %s', async (isFound, _what, executions) => {
		const { context, stop } = storing(executions);
		context.getMode = () => 'retry';
		expect(await stop.isFound()).toBe(isFound);
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
	const { context, stop, asked } = storing({ 1: stopOf('1') });
	context.getExecutionId = () => undefined as never;
	expect(await stop.isFound()).toBe(false);
	expect(asked).toEqual([]);
});

it('asks every half a minute, once for all creates of that time', async () => {
	const { clock, stop, asked } = storing({ 1: {} });
	const ask = async () => await Promise.all([stop.isFound(), stop.isFound()]);
	for (const [ms, times] of [
		[0, 1],
		[29_999, 1],
		[1, 2],
	] as const) {
		clock.pass(ms);
		expect(await ask()).toEqual([false, false]);
		expect(asked).toHaveLength(times);
	}
});

it('asks nothing in a run that n8n tells of its stop', async () => {
	const { stop, asked } = storing({ 1: stopOf('1') }, 'trigger');
	expect(await stop.isFound()).toBe(false);
	expect(asked).toEqual([]);
});
