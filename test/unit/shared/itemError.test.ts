import { type INode, NodeApiError, NodeOperationError, UserError } from 'n8n-workflow';
import { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { ItemError } from '../../../nodes/MediaGeneration/shared/itemError';
import { visibleText } from '../support';

const NODE: INode = {
	id: 'node',
	name: 'Media',
	type: 'mediaGeneration',
	typeVersion: 1,
	position: [0, 0],
	parameters: {},
};
const KEY = 'sk-live-secret';

describe('made from whatever was thrown', () => {
	const told = { description: 'Do this' };

	const rejected = new ServiceError('rejected', 'So it is', { ...told, statusCode: 400 });

	it.each([
		['an error of the service', rejected, { ...told, statusCode: 400 }],
		['a UserError', new UserError('So it is', { ...told }), told],
		['a plain error', new Error('So it is'), { description: undefined }],
		['a text', 'So it is', { description: undefined }],
	])('keeps the words of %s, and carries what is known of the task', (_what, error, words) => {
		const task = { taskId: 'task-1' };
		expect(ItemError.from(error, task)).toMatchObject({ message: 'So it is', ...words, task });
	});

	it('keeps what an ItemError knew of the task over what is added', () => {
		const first = new ItemError('So it is', { task: { state: 'FAILURE' } });
		const { task } = ItemError.from(first, { taskId: 'task-1', state: 'PENDING' });
		expect(task).toEqual({ taskId: 'task-1', state: 'FAILURE' });
	});
});

describe('as an item that goes out', () => {
	const task = { taskId: 'task-1', resultUrls: ['https://m/1.png'], record: {} };
	const error = new ItemError('So it is', { task });

	it('has what is known of the task beside the error, and the record last', () => {
		const { json, pairedItem } = error.toItem(NODE, { item: 2 });
		expect(json).toEqual({ ...task, error: 'So it is (task task-1)' });
		expect(Object.keys(json)).toEqual(['taskId', 'error', 'resultUrls', 'record']);
		expect(pairedItem).toEqual({ item: 2 });
	});

	it('has it under details on the error output', () => {
		const item = error.toItem({ ...NODE, onError: 'continueErrorOutput' }, { item: 2 });
		const json = { error: 'So it is (task task-1)', details: task };
		expect(item).toEqual({ json, pairedItem: { item: 2 } });
	});

	it('has the error alone where nothing is known', () => {
		const bare = new ItemError('So it is');
		expect([bare.toItem(NODE), bare.toItem({ ...NODE, onError: 'continueErrorOutput' })]).toEqual(
			Array(2).fill({ json: { error: 'So it is' } }),
		);
	});
});

describe('as an error of n8n', () => {
	const STATUSES = [400, 401, 402, 403, 404, 429, 500, 503];
	it.each(STATUSES)('with HTTP %d is a NodeApiError that shows all, in our words', (statusCode) => {
		const error = new ItemError('It was refused', { description: 'Do this', statusCode });
		const shown = error.toNodeError(NODE, 3);
		expect(shown).toBeInstanceOf(NodeApiError);
		expect(shown).toMatchObject({
			message: 'It was refused (item 4)',
			description: 'Do this',
			httpCode: String(statusCode),
		});
		// The editor would count it from zero.
		expect(shown).not.toHaveProperty('context.itemIndex');
	});

	it('without a status is a NodeOperationError', () => {
		const shown = new ItemError('So it is', { description: 'Do this' }).toNodeError(
			NODE,
			undefined,
		);
		expect(shown).toBeInstanceOf(NodeOperationError);
		expect(shown).toMatchObject({ message: 'So it is', description: 'Do this' });
	});

	it.each([undefined, 500])('keeps words for which n8n has its own: status %s', (statusCode) => {
		const message = 'Task task-7 failed at the service: connect ECONNREFUSED 10.0.0.1:80';
		const shown = new ItemError(message, { statusCode }).toNodeError(NODE, undefined);
		expect(shown.message).toBe(message);
	});

	it('names its task, whoever threw it, and then its item', () => {
		const error = ItemError.from(new Error('HTTP 500.'), { taskId: '5' });
		expect(error.toNodeError(NODE, 2).message).toBe('HTTP 500 (task 5) (item 3)');
	});

	it('names its item once, counted from one', () => {
		const error = new ItemError('The price is not known (item 3)').toNodeError(NODE, 2);
		expect(error.message).toBe('The price is not known (item 3)');
	});

	it('holds nothing of the request that was refused, and so not the key', () => {
		const request = { headers: { Authorization: `Bearer ${KEY}` } };
		const original = Object.assign(new Error('Refused'), {
			config: request,
			request,
			response: { config: request, status: 400 },
			cause: { config: request },
		});
		expect(visibleText(ItemError.from(original).toNodeError(NODE, 0))).not.toContain(KEY);
	});
});
