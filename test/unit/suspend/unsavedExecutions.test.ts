import type { obstacleOf } from '../../../nodes/MediaGeneration/suspend/canSuspend';
import { API_KEY, executeContext } from '../../workflow/engine';

/** @param missing what the `n8n-workflow` of an older n8n does not have */
function obstacle(saveDataSuccessExecution: string | undefined, missing = '') {
	const credential = { baseUrl: 'https://api.example.com', apiKey: API_KEY };
	const context = executeContext({ node: {}, credential });
	Object.assign(context, { getWorkflowSettings: () => ({ saveDataSuccessExecution }) });
	let found: ReturnType<typeof obstacleOf>;
	jest.isolateModules(() => {
		jest.doMock('n8n-workflow', () => {
			const { [missing]: _, ...n8n } = jest.requireActual<Record<string, unknown>>('n8n-workflow');
			return n8n;
		});
		const path = '../../../nodes/MediaGeneration/suspend/canSuspend';
		found = jest.requireActual<{ obstacleOf: typeof obstacleOf }>(path).obstacleOf(context);
		jest.dontMock('n8n-workflow');
	});
	return found;
}

describe('a workflow whose successful executions are not saved', () => {
	it('is held before n8n 2.41, which may delete its waiting executions in queue mode', () => {
		const { why, ifChosen } = obstacle('none', 'WAIT_FOR_SUB_EXECUTION') ?? {};
		expect(why).toContain('before 2.41, n8n in queue mode may delete it');
		expect(why).toContain("choose 'Save' in the workflow's settings");
		expect(ifChosen).toBe('hold');
	});

	it('is suspended since, and so is one that is saved', () => {
		expect(obstacle('none')).toBeUndefined();
		expect(obstacle('all', 'WAIT_FOR_SUB_EXECUTION')).toBeUndefined();
		expect(obstacle(undefined, 'WAIT_FOR_SUB_EXECUTION')).toBeUndefined();
	});
});
