import {
	createRunExecutionData,
	type ExecutionError,
	ManualExecutionCancelledError,
	type RelatedExecution,
	UserError,
} from 'n8n-workflow';

import { StoredStop } from '../../../nodes/MediaGeneration/shared/storedStop';
import { contextOf } from '../create/makers';
import { FakeClock } from '../support';

/** Execution 1 runs the node. */
interface Stored {
	error?: ExecutionError;
	parentExecution?: RelatedExecution;
}

function storing(executions: Record<string, Stored>) {
	const clock = new FakeClock();
	const context = contextOf();
	const asked: string[] = [];
	context.getExecutionDataById = async (id) => {
		asked.push(id);
		const stored = executions[id];
		if (stored === undefined) throw new Error('No connection to the database');
		const { error, parentExecution } = stored;
		return createRunExecutionData({
			...(parentExecution && { parentExecution }),
			resultData: { ...(error && { error }) },
		});
	};
	return { clock, asked, stop: new StoredStop(context, clock) };
}

const stopOf = (id: string) => ({ error: new ManualExecutionCancelledError(id) });
const calledBy = (executionId: string, shouldResume: boolean) => ({
	parentExecution: { executionId, workflowId: 'caller', shouldResume },
});

it.each<[boolean, string, Record<string, Stored>]>([
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
	[false, 'nothing, since n8n does not answer', {}],
	[false, 'nothing of the caller, since n8n does not answer', { 1: calledBy('2', true) }],
])('finds %s where n8n has stored %s', async (isFound, _what, executions) => {
	const { clock, stop } = storing(executions);
	clock.pass(10_000);
	expect(await stop.isFound()).toBe(isFound);
});

it('asks every ten seconds, once for all creates of that time', async () => {
	const { clock, stop, asked } = storing({ 1: {} });
	const ask = async () => await Promise.all([stop.isFound(), stop.isFound()]);
	for (const [ms, times] of [
		[0, 0],
		[9_999, 0],
		[1, 1],
		[9_999, 1],
		[1, 2],
	] as const) {
		clock.pass(ms);
		expect(await ask()).toEqual([false, false]);
		expect(asked).toHaveLength(times);
	}
});
