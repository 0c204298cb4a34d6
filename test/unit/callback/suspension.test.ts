import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import {
	pendingItem,
	pendingTaskId,
	resumedItems,
	resumeUrl,
	suspend,
} from '../../../nodes/MediaGeneration/callback/suspension';
import { failureText } from '../../../nodes/MediaGeneration/report/outcome';
import {
	parseTaskRecord,
	type FinishedTask,
} from '../../../nodes/MediaGeneration/service/taskRecord';
import { executeContext } from '../../workflow/engine';
import { SERVICE } from './webhook';

const context = (items?: INodeExecutionData[]) =>
	executeContext({
		node: {},
		credential: { baseUrl: SERVICE, apiKey: 'key' },
		...(items && { items }),
	});
const finished = (taskId: string, record: IDataObject) =>
	parseTaskRecord(taskId, record) as FinishedTask;
const options = { download: false, binaryField: 'data', split: false };

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
	it('has n8n wait until the given time, with the given items in place of the input', async () => {
		const execution = context([{ json: { prompt: 'a' } }]);
		const wait = jest.spyOn(execution, 'putExecutionToWait');
		const until = new Date(2026, 0, 1);
		const items = [pendingItem({ taskId: 'task-1' }, 0)];
		await suspend(execution, items, until);
		expect(execution.getExecuteData().data).toEqual({ main: [items] });
		expect(wait).toHaveBeenCalledWith(until);
	});

	it('keeps the items although n8n empties the list that the node returns', async () => {
		const execution = context();
		const items = [pendingItem({ taskId: 'task-1' }, 0)];
		await suspend(execution, items, new Date());
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

describe('resumed items', () => {
	const sent = { model: 'm', input: { prompt: 'a' }, estimatedCostUsd: 0.08 };
	const stored = [
		pendingItem({ taskId: 'task-1', state: 'PENDING', ...sent, record: { taskId: 'task-1' } }, 0),
		{ json: { error: 'The prompt is empty' }, pairedItem: { item: 1 } },
		pendingItem({ taskId: 'task-2', state: 'PENDING', ...sent }, 2),
		pendingItem({ taskId: 'task-3', state: 'PENDING', ...sent }, 3),
	];
	const success = {
		state: 'SUCCESS',
		resultUrls: ['https://m/1', 'https://m/2'],
		creditsConsumed: 8,
	};
	const failure = { state: 'FAILURE', error: { message: 'no such colour' }, creditsConsumed: 0 };
	const tasks = new Map([
		['task-1', finished('task-1', success)],
		['task-2', finished('task-2', failure)],
	]);

	it('hold what became of the tasks, what was sent, and their input item', () => {
		expect(resumedItems(stored, tasks, options)).toEqual([
			{
				json: { taskId: 'task-1', ...sent, ...success, record: success },
				pairedItem: { item: 0 },
			},
			stored[1],
			{
				json: {
					taskId: 'task-2',
					...sent,
					...failure,
					resultUrls: [],
					record: failure,
					error: 'Task task-2 failed at the service: no such colour',
				},
				pairedItem: { item: 2 },
			},
			stored[3],
		]);
	});

	it('are one for each result, where that is wanted; a failed task is one all the same', () => {
		const items = resumedItems(stored, tasks, { ...options, split: true });
		expect(items.map(({ json, pairedItem }) => [json.taskId, json.resultUrl, pairedItem])).toEqual([
			['task-1', 'https://m/1', { item: 0 }],
			['task-1', 'https://m/2', { item: 0 }],
			[undefined, undefined, { item: 1 }],
			['task-2', undefined, { item: 2 }],
			['task-3', undefined, { item: 3 }],
		]);
	});

	it('leave the stored ones as they are', () => {
		const before = JSON.stringify(stored);
		resumedItems(stored, tasks, options);
		expect(JSON.stringify(stored)).toBe(before);
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
