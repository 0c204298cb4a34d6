import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { startSubExecution } from '../n8n/subExecution';
import { clock } from '../shared/clock';
import type { Recipient } from './delivery';

/** A task whose result a trigger waits for. */
export interface AwaitedCallback extends Recipient {
	taskId: string;
	/** When its time is up, milliseconds of the clock. */
	until: number;
}

const NOTE =
	'## n8n made this execution by itself\nA Media Generation node has ordered results for a Media Generation Trigger. This execution makes up for callbacks that do not come: it waits for the tasks, and hands what is finished to the trigger. It ends by itself when the trigger has all of them.\n\n**Do not stop or delete it** while you wait for results. Its node shows how many have come.';

/** The parameters of the node in the sub-execution: an ordinary *Task: Wait*, whose results go to a trigger. */
export const WAIT_PARAMETERS = {
	resource: 'task',
	operation: 'wait',
	taskId: '={{ $json.taskId }}',
	deliverTo: '={{ $json }}',
	downloadResults: false,
	// The run is stored before it looks for the first time, so no kill ends it.
	options: { suspendAfter: 0, timeout: '={{ $json.seconds }}' },
};

/** The items of that node. @param nodeName the node that has created the tasks, for messages */
export function waitItems(
	nodeName: string,
	callbacks: readonly AwaitedCallback[],
): INodeExecutionData[] {
	const now = clock.now();
	return callbacks.map(({ until, ...callback }) => {
		const seconds = Math.max(1, (until - now) / 1000);
		return { json: { ...callback, seconds, createdBy: nodeName } };
	});
}

/**
 * Starts the sub-execution that makes up for callbacks that do not come.
 *
 * @throws n8n's error if n8n starts no sub-execution
 */
export async function startCallbackWait(
	context: IExecuteFunctions,
	nodeName: string,
	callbacks: readonly AwaitedCallback[],
): Promise<void> {
	const how = {
		title: `${nodeName}: waiting for callbacks`,
		nodeName: 'Makes up for lost callbacks',
		note: NOTE,
		parameters: WAIT_PARAMETERS,
	};
	await startSubExecution(context, how, waitItems(nodeName, callbacks));
}
