import type { IDataObject, IWorkflowExecuteAdditionalData } from 'n8n-workflow';

import { type DeliveryCheck, readCheck } from '../../nodes/MediaGeneration/suspend/checkState';
import { startWorkflow, type TestNode, TRIGGER_PATH } from './engine';
import { imageNode, prompts, stage } from './support';
import { passTime, settle } from './time';

jest.setTimeout(60_000);

const on = stage();

const SECOND = 1000;

beforeEach(() => on.service.configure({ callbackLost: true }));

/** The tasks that each sub-execution checks, and when it was begun. */
let checks: Array<{ at: number; taskIds: string[] }>;
beforeEach(() => (checks = []));

const executeWorkflow: IWorkflowExecuteAdditionalData['executeWorkflow'] = async (
	_workflow,
	_data,
	{ inputData = [] },
) => {
	const { deliveries } = readCheck(inputData) as DeliveryCheck;
	checks.push({ at: Date.now(), taskIds: deliveries.map(({ taskId }) => taskId) });
	return await Promise.resolve({ executionId: '2', data: [null] });
};

const notify = (...simulate: IDataObject[]) => notifyBy({}, ...simulate);

const notifyBy = (node: TestNode, ...simulate: IDataObject[]) =>
	startWorkflow(
		on.workflow(
			imageNode(
				{ maxInFlight: 1 },
				{
					...node,
					parameters: { completion: 'trigger', callbackUrl: `https://n8n.test${TRIGGER_PATH}` },
				},
			),
			prompts(...simulate.map((each, index) => ({ prompt: `Prompt ${index}`, simulate: each }))),
		),
		'trigger',
		{ executeWorkflow },
	);

it('checks are left behind at the end of a run, once', async () => {
	await passTime(notify({}, {}).result);
	expect(checks.map(({ taskIds }) => taskIds)).toEqual([on.taskIds]);
});

it('of a batch that takes long to be created, the first tasks are checked before the last is created', async () => {
	const refused = { createStatus: { status: 429, times: 1, retryAfter: 300 } };
	const { run } = await passTime(notify({}, {}, refused).result);
	const [, , last] = on.creates;
	expect(run.status).toBe('success');
	expect(checks.map(({ taskIds }) => taskIds)).toEqual([
		on.taskIds.slice(0, 2),
		on.taskIds.slice(2),
	]);
	expect(checks[0]?.at).toBeLessThan((checks[1]?.at ?? 0) - 200 * SECOND);
	expect(last).toBeDefined();
});

it('what was created before a stop is checked', async () => {
	const refused = { createStatus: { status: 429, times: 1, retryAfter: 300 } };
	const { execution, result } = notify({}, refused);
	await settle();
	await jest.advanceTimersByTimeAsync(5 * SECOND);
	await settle();
	expect(on.taskIds).toHaveLength(1);
	execution.cancel();
	expect((await passTime(result)).run.status).toBe('canceled');
	await passTime(jest.advanceTimersByTimeAsync(20 * SECOND));
	expect(checks.map(({ taskIds }) => taskIds)).toEqual([on.taskIds]);
});

it('tries of Retry On Fail leave one check for each task, however many there are', async () => {
	const tries = { retryOnFail: true, maxTries: 3, waitBetweenTries: 0 };
	const refusedTwice = { createStatus: { status: 400, times: 2 } };
	const { run } = await passTime(notifyBy(tries, {}, refusedTwice).result);
	expect(run.status).toBe('success');
	expect(on.taskIds).toHaveLength(2);
	expect(checks.flatMap(({ taskIds }) => taskIds)).toEqual(on.taskIds);
});
