import type { IDataObject, IWorkflowExecuteAdditionalData } from 'n8n-workflow';

import type { DeliveryWatch } from '../../nodes/MediaGeneration/wait/watchState';
import { readWatch } from '../../nodes/MediaGeneration/wait/watchState';
import { startWorkflow, TRIGGER_PATH } from './engine';
import { imageNode, prompts, stage } from './support';
import { passTime, settle } from './time';

jest.setTimeout(60_000);

const on = stage();

const SECOND = 1000;

beforeEach(() => on.service.configure({ callbackLost: true }));

/** The tasks that each sub-execution looks for, and when it was begun. */
let watches: Array<{ at: number; taskIds: string[] }>;
beforeEach(() => (watches = []));

const executeWorkflow: IWorkflowExecuteAdditionalData['executeWorkflow'] = async (
	_workflow,
	_data,
	{ inputData = [] },
) => {
	const { deliveries } = readWatch(inputData) as DeliveryWatch;
	watches.push({ at: Date.now(), taskIds: deliveries.map(({ taskId }) => taskId) });
	return await Promise.resolve({ executionId: '2', data: [null] });
};

const notify = (...simulate: IDataObject[]) =>
	startWorkflow(
		on.workflow(
			imageNode(
				{ maxInFlight: 1 },
				{ parameters: { completion: 'trigger', callbackUrl: `https://n8n.test${TRIGGER_PATH}` } },
			),
			prompts(...simulate.map((each, index) => ({ prompt: `Prompt ${index}`, simulate: each }))),
		),
		'trigger',
		{ executeWorkflow },
	);

it('looks are left behind at the end of a run, once', async () => {
	await passTime(notify({}, {}).result);
	expect(watches.map(({ taskIds }) => taskIds)).toEqual([on.taskIds]);
});

it('of a batch that takes long to be created, the first tasks are looked for before the last is created', async () => {
	const refused = { createStatus: { status: 429, times: 1, retryAfter: 300 } };
	const { run } = await passTime(notify({}, {}, refused).result);
	const [, , last] = on.creates;
	expect(run.status).toBe('success');
	expect(watches.map(({ taskIds }) => taskIds)).toEqual([
		on.taskIds.slice(0, 2),
		on.taskIds.slice(2),
	]);
	expect(watches[0]?.at).toBeLessThan((watches[1]?.at ?? 0) - 200 * SECOND);
	expect(last).toBeDefined();
});

it('what was created before a stop is looked for', async () => {
	const refused = { createStatus: { status: 429, times: 1, retryAfter: 300 } };
	const { execution, result } = notify({}, refused);
	await settle();
	await jest.advanceTimersByTimeAsync(5 * SECOND);
	await settle();
	expect(on.taskIds).toHaveLength(1);
	execution.cancel();
	expect((await passTime(result)).run.status).toBe('canceled');
	await passTime(jest.advanceTimersByTimeAsync(20 * SECOND));
	expect(watches.map(({ taskIds }) => taskIds)).toEqual([on.taskIds]);
});
