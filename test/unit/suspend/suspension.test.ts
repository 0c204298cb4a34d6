import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import {
	pendingItem,
	pendingTaskId,
	resumeUrl,
	storeInput,
} from '../../../nodes/MediaGeneration/suspend/suspension';
import { failureText } from '../../../nodes/MediaGeneration/report/outcome';
import { executeContext } from '../../workflow/engine';
import { SERVICE } from '../callback/webhook';

const context = (items?: INodeExecutionData[]) =>
	executeContext({
		node: {},
		credential: { baseUrl: SERVICE, apiKey: 'key' },
		...(items && { items }),
	});
describe('the address that resumes an execution', () => {
	it.each([
		['https://n8n.test/webhook-waiting/12', 'https://n8n.test/webhook-waiting/12/callback'],
		[
			'https://n8n.test/webhook-waiting/12?signature=a%2Fb',
			'https://n8n.test/webhook-waiting/12/callback?signature=a%2Fb',
		],
		['http://n8n.test/n8n/webhook-waiting/12/', 'http://n8n.test/n8n/webhook-waiting/12/callback'],
	])('made of %s is %s', (url, expected) => {
		const execution = context();
		jest.spyOn(execution, 'evaluateExpression').mockReturnValue(url);
		expect(resumeUrl(execution)).toBe(expected);
	});

	it('is made of what n8n calls its own', () => {
		expect(resumeUrl(context())).toMatch(/^https:\/\/n8n\.test\/webhook-waiting\/1\/callback/);
	});
});

describe('suspending', () => {
	it('stores the given items in place of the input, although n8n empties the list that the node returns', () => {
		const execution = context();
		const items = [pendingItem({ taskId: 'task-1' }, 0)];
		storeInput(execution, items);
		expect(execution.getExecuteData().data).toEqual({ main: [items] });
		items.length = 0;
		expect(execution.getExecuteData().data.main?.[0]).toHaveLength(1);
	});
});

describe('a stored item', () => {
	it('waits for its task', () => {
		expect(pendingTaskId(pendingItem({ taskId: 'task-1' }, 0))).toBe('task-1');
	});

	it.each<[string, IDataObject]>([
		['is finished', { taskId: 'task-1', state: 'SUCCESS' }],
		['left at once', { taskId: 'task-1', state: 'PENDING' }],
		['went out with an error', { error: 'The prompt is empty' }],
		['was waited for in vain', { taskId: 'task-1', timedOut: true, error: 'Not finished' }],
		['has something else for an id', { taskId: 7, timedOut: true }],
	])('waits for none where it %s', (_what, json) => {
		expect(pendingTaskId({ json })).toBeUndefined();
	});
});

describe('what is said of a failed task', () => {
	it.each([
		['no such colour', 'Task task-1 failed at the service: no such colour'],
		[undefined, 'Task task-1 failed at the service'],
	])('names the reason where there is one (%s)', (reason, text) => {
		expect(failureText({ taskId: 'task-1', reason })).toBe(text);
	});
});
