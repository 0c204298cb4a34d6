import nock from '../../nock';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import { endCheckOf, noteCheckOf } from '../../../nodes/MediaGeneration/suspend/expectedCallbacks';
import { API_KEY, executeContext } from '../../workflow/engine';

const N8N = 'https://n8n.test';
const PATH = '/webhook-waiting/13/callback';
const URL_OF_CHECK = `${N8N}${PATH}?signature=of-n8n`;

const context = () => executeContext();

const told = (taskId = 'task-2', path = PATH) =>
	nock(N8N)
		.post(path, { taskId })
		.query({ signature: 'of-n8n', token: callbackToken(path, API_KEY) });

describe('a task that has started its workflow', () => {
	it('wakes its check when it is the last one, with the token, and once', async () => {
		const call = told().reply(200, {});
		noteCheckOf(['task-1', 'task-2'], URL_OF_CHECK);
		await endCheckOf(context(), 'task-1');
		await endCheckOf(context(), 'task-1');
		expect(call.isDone()).toBe(false);
		await endCheckOf(context(), 'task-2');
		expect(call.isDone()).toBe(true);
		const again = told().reply(200, {});
		await endCheckOf(context(), 'task-2');
		expect(again.isDone()).toBe(false);
		nock.cleanAll();
	});

	it('wakes no other check', async () => {
		const other = '/webhook-waiting/14/callback';
		const calls = [told('task-1').reply(200, {}), told('task-3', other).reply(200, {})];
		noteCheckOf(['task-1'], URL_OF_CHECK);
		noteCheckOf(['task-3'], `${N8N}${other}?signature=of-n8n`);
		await endCheckOf(context(), 'task-3');
		expect(calls.map((call) => call.isDone())).toEqual([false, true]);
		await endCheckOf(context(), 'task-1');
		expect(calls.map((call) => call.isDone())).toEqual([true, true]);
	});

	it('leaves a check alone that n8n cannot wake now', async () => {
		const call = told().reply(409, {});
		noteCheckOf(['task-2'], URL_OF_CHECK);
		await endCheckOf(context(), 'task-2');
		expect(call.isDone()).toBe(true);
	});

	it('calls nobody where the check is not known', async () => {
		noteCheckOf(['task-8'], '');
		await expect(endCheckOf(context(), 'task-8')).resolves.toBeUndefined();
		await expect(endCheckOf(context(), 'task-9')).resolves.toBeUndefined();
	});
});
