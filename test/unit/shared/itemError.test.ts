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

describe('made from an error of the service', () => {
	const error = new ServiceError('rejected', 'It was refused', {
		description: 'Do this',
		statusCode: 400,
	});

	it('keeps message, description and status', () => {
		expect(ItemError.from(error)).toMatchObject({
			message: 'It was refused',
			description: 'Do this',
			statusCode: 400,
		});
	});

	it('carries what is known of the task', () => {
		expect(ItemError.from(error, { taskId: 'task-1' }).task).toEqual({ taskId: 'task-1' });
	});
});

describe('made from another', () => {
	it('keeps what the first one knew of the task over what is added', () => {
		const first = new ItemError('So it is', { task: { state: 'FAILURE' } });
		expect(ItemError.from(first, { taskId: 'task-1', state: 'PENDING' }).task).toEqual({
			taskId: 'task-1',
			state: 'FAILURE',
		});
	});

	it.each([
		['a UserError', new UserError('So it is', { description: 'Do this' }), 'Do this'],
		['a plain error', new Error('So it is'), undefined],
		['a text', 'So it is', undefined],
	])('keeps the words of %s', (_what, error, description) => {
		expect(ItemError.from(error)).toMatchObject({ message: 'So it is', description });
	});
});

describe('as an item that goes out', () => {
	const task = { taskId: 'task-1', resultUrls: ['https://m/1.png'] };
	const error = new ItemError('So it is', { task });

	it('has what is known of the task beside the error', () => {
		expect(error.toItem(NODE, { item: 2 })).toEqual({
			json: { ...task, error: 'So it is' },
			pairedItem: { item: 2 },
		});
	});

	it('has it under details on the error output, by which n8n tells it', () => {
		const item = error.toItem({ ...NODE, onError: 'continueErrorOutput' }, { item: 2 });
		expect(item.json).toEqual({ error: 'So it is', details: task });
	});

	it('is told by older n8n, too, whose copy for the error output keeps what is known', () => {
		const item = error.toItem({ ...NODE, onError: 'continueErrorOutput' }, { item: 2 });
		expect(item.error).toMatchObject({ message: 'So it is' });
		expect({ ...item }).toEqual({
			json: { error: 'So it is', details: task },
			pairedItem: { item: 2 },
		});
		expect({ ...item }).not.toHaveProperty('error');
	});

	it('has the error alone where nothing is known', () => {
		const bare = new ItemError('So it is');
		expect([bare.toItem(NODE), bare.toItem({ ...NODE, onError: 'continueErrorOutput' })]).toEqual(
			Array(2).fill({ json: { error: 'So it is' } }),
		);
	});
});

describe('as an error of n8n', () => {
	it('with a status is a NodeApiError that shows message, description, status and item', () => {
		const error = new ItemError('It was refused', { description: 'Do this', statusCode: 400 });
		const shown = error.toNodeError(NODE, 3);
		expect(shown).toBeInstanceOf(NodeApiError);
		expect(shown).toMatchObject({
			message: 'It was refused',
			description: 'Do this',
			httpCode: '400',
			context: { itemIndex: 3 },
		});
	});

	it('without a status is a NodeOperationError', () => {
		const shown = new ItemError('So it is', { description: 'Do this' }).toNodeError(NODE, 0);
		expect(shown).toBeInstanceOf(NodeOperationError);
		expect(shown).toMatchObject({ message: 'So it is', description: 'Do this' });
	});

	it.each([401, 402, 403, 404, 429, 500, 503])(
		'with HTTP %d keeps our message, where n8n has one of its own',
		(statusCode) => {
			const shown = new ItemError('What happened', { statusCode }).toNodeError(NODE, 0);
			expect(shown.message).toBe('What happened');
		},
	);

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
