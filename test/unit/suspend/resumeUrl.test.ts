import { failureText } from '../../../nodes/MediaGeneration/report/taskErrors';
import { checkItem, readCheck } from '../../../nodes/MediaGeneration/suspend/storedCheck';
import { resumeUrl, storeInput } from '../../../nodes/MediaGeneration/suspend/resumeUrl';
import { contextOf, deliveryCheck } from './checks';

describe('the address that resumes an execution', () => {
	it.each([
		['https://n8n.test/webhook-waiting/12', 'https://n8n.test/webhook-waiting/12/callback'],
		[
			'https://n8n.test/webhook-waiting/12?signature=a%2Fb',
			'https://n8n.test/webhook-waiting/12/callback?signature=a%2Fb',
		],
		['http://n8n.test/n8n/webhook-waiting/12/', 'http://n8n.test/n8n/webhook-waiting/12/callback'],
	])('made of %s is %s', (url, expected) => {
		expect(resumeUrl(contextOf({}, { evaluateExpression: () => url }))).toBe(expected);
	});

	it('is made of what n8n calls its own', () => {
		expect(resumeUrl(contextOf())).toMatch(/^https:\/\/n8n\.test\/webhook-waiting\/1\/callback/);
	});
});

it('what is stored in place of the input stays, although n8n empties the list that the node returns', () => {
	const execution = contextOf();
	const items = [{ json: { taskId: 'task-1' } }];
	storeInput(execution, items);
	expect(execution.getExecuteData().data).toEqual({ main: [items] });
	items.length = 0;
	expect(execution.getExecuteData().data.main?.[0]).toHaveLength(1);
});

describe('the state of the checks', () => {
	const stored = (state: object) => JSON.parse(JSON.stringify([checkItem(state as never)])) as [];

	it('comes back as it was stored', () => {
		expect(readCheck(stored(deliveryCheck()))).toEqual(deliveryCheck());
	});

	it.each([
		['results', [{ json: { taskId: 'task-1' } }, { json: {} }]],
		['one result', [{ json: { taskId: 'task-1' } }]],
		['a result with a field of the user', [{ json: { check: { model: 'Submariner' } } }]],
		['nothing', []],
	])('is not in %s', (_what, items) => {
		expect(readCheck(items)).toBeUndefined();
	});

	it('of a newer version is refused with a way out, and not guessed', () => {
		const newer = stored({ ...deliveryCheck(), version: 2 });
		expect(() => readCheck(newer)).toThrow('another version');
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
