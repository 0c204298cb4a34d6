import type { IWorkflowExecuteAdditionalData } from 'n8n-workflow';

import type { Settings } from '../service/settings';
import { startWorkflow, type TestNode, type TestWorkflow, TRIGGER_PATH } from './engine';
import { imageNode, item, prompts, stage, threeTries } from './support';
import { passTime, settle, time } from './time';
import { SECOND } from '../durations';

const on = stage();

/** The tasks that each sub-execution checks, and when it was begun. */
let checks: Array<{ at: number; taskIds: string[] }>;
let refusals: number;
/** The settings of each sub-execution, and all that it is handed. */
let settings: unknown[];
let handed: string;
beforeEach(() => {
	checks = [];
	settings = [];
	handed = '';
	refusals = 0;
});

const executeWorkflow: IWorkflowExecuteAdditionalData['executeWorkflow'] = async (
	{ code },
	_data,
	{ inputData = [] },
) => {
	settings.push(code?.settings);
	handed += JSON.stringify(inputData);
	if (refusals-- > 0) throw new Error('No sub-workflows now');
	// A stopped run leaves another execution behind, which lists its tasks.
	const awaited = inputData.filter(({ json }) => json.address !== undefined);
	const taskIds = awaited.map(({ json }) => String(json.taskId));
	if (taskIds.length > 0) checks.push({ at: Date.now(), taskIds });
	return await Promise.resolve({ executionId: '2', data: [null] });
};

/** Creates a task for each of these settings of the service, one after the other. @param test of the workflow */
function notify(
	simulate: Settings[],
	more: TestNode = {},
	path = TRIGGER_PATH,
	test: Partial<TestWorkflow> = {},
) {
	const parameters = { completion: 'trigger', callbackUrl: `https://n8n.test${path}` };
	const node = imageNode({ maxInFlight: 1 }, { ...more, parameters });
	const items = simulate.map((each, index) => item(`Prompt ${index}`, each));
	const workflow = on.workflow(node, prompts(...items));
	return startWorkflow({ ...workflow, ...test, host: { executeWorkflow } });
}
const checked = () => checks.map(({ taskIds }) => taskIds);

const LATER = { createStatus: { status: 429, times: 1, retryAfter: 300 } };

it('no check is left behind for a test address, which n8n answers only while somebody listens', async () => {
	await passTime(notify([{}], {}, '/webhook-test/3f1c2a/callback').result);
	expect(on.taskIds).toHaveLength(1);
	expect(checks).toEqual([]);
});

it('of a batch that takes long to be created, the first tasks are checked before the last is created', async () => {
	const { run } = await passTime(notify([{}, {}, LATER]).result);
	expect(run.status).toBe('success');
	expect(on.creates.length).toBeGreaterThan(2);
	expect(checked()).toEqual([on.taskIds.slice(0, 2), on.taskIds.slice(2)]);
	expect(checks[0]?.at).toBeLessThan((checks[1]?.at ?? 0) - 200 * SECOND);
});

it('a check is handed the address of the trigger without its token, which is made anew when it is needed', async () => {
	await passTime(notify([{}]).result);
	expect(checked()).toEqual([on.taskIds]);
	expect(handed).toContain('/3f1c2a/callback');
	expect(handed).not.toContain('token');
});

it('where n8n does not start the early check, the tasks are checked with the others', async () => {
	refusals = 1;
	await passTime(notify([{}, { createStatus: { status: 429, times: 1, retryAfter: 100 } }]).result);
	expect(on.taskIds).toHaveLength(2);
	expect(checked()).toEqual([on.taskIds]);
});

it('what was created before a stop is checked', async () => {
	const { execution, result } = notify([{}, LATER]);
	await settle();
	await time.pass(5 * SECOND);
	await settle();
	expect(on.taskIds).toHaveLength(1);
	execution.cancel();
	expect((await passTime(result)).run.status).toBe('canceled');
	await passTime(time.pass(20 * SECOND));
	expect(checked()).toEqual([on.taskIds]);
});

it('tries of Retry On Fail leave one check for each task, however many there are', async () => {
	const refused = { createStatus: { status: 400, times: 2 } };
	const { run } = await passTime(notify([{}, refused], threeTries).result);
	expect(run.status).toBe('success');
	expect(on.taskIds).toHaveLength(2);
	expect(checked().flat()).toEqual(on.taskIds);
});

it('a check has the settings of the workflow, but for what would end it or refuse it, and n8n does not save its success', async () => {
	const own = {
		timezone: 'Europe/Berlin',
		errorWorkflow: 'hears',
		saveDataErrorExecution: 'none',
		saveDataSuccessExecution: 'all',
		saveManualExecutions: false,
		saveExecutionProgress: true,
		callerPolicy: 'none',
		executionTimeout: 300,
	} as const;
	await passTime(notify([{}], {}, TRIGGER_PATH, { settings: own }).result);
	expect(settings).toEqual([
		{
			...own,
			engineType: 'v1',
			executionOrder: 'v1',
			callerPolicy: 'workflowsFromSameOwner',
			executionTimeout: -1,
			saveDataSuccessExecution: 'none',
		},
	]);
});
