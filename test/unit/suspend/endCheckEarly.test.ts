import nock from '../../nock';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import {
	deliveryChecks,
	DeliveryChecks,
	endCheckOf,
} from '../../../nodes/MediaGeneration/suspend/endCheckEarly';
import { API_KEY, executeContext } from '../../workflow/engine';
import { FakeClock } from '../support';

const N8N = 'https://n8n.test';
const PATH = '/webhook-waiting/13/callback';
const URL_OF_CHECK = `${N8N}${PATH}?signature=of-n8n`;

const context = () => executeContext();

describe('the checks of a process', () => {
	it('are told with the last of their tasks, and once', () => {
		const checks = new DeliveryChecks(new FakeClock());
		checks.note('one', ['a', 'b']);
		checks.note('two', ['c']);
		expect(checks.started('a')).toBeUndefined();
		expect(checks.started('a')).toBeUndefined();
		expect(checks.started('c')).toBe('two');
		expect(checks.started('b')).toBe('one');
		expect(checks.started('b')).toBeUndefined();
		expect(checks.started('unknown')).toBeUndefined();
	});
});

describe('a task that has started its workflow', () => {
	const told = () =>
		nock(N8N)
			.post(PATH, { taskId: 'task-2' })
			.query({ signature: 'of-n8n', token: callbackToken(PATH, API_KEY) });

	it('wakes its check when it is the last one, with the token', async () => {
		const call = told().reply(200, {});
		deliveryChecks.note(URL_OF_CHECK, ['task-1', 'task-2']);
		await endCheckOf(context(), 'task-1');
		expect(call.isDone()).toBe(false);
		await endCheckOf(context(), 'task-2');
		expect(call.isDone()).toBe(true);
	});

	it('leaves a check alone that n8n cannot wake now', async () => {
		const call = told().reply(409, {});
		deliveryChecks.note(URL_OF_CHECK, ['task-2']);
		await endCheckOf(context(), 'task-2');
		expect(call.isDone()).toBe(true);
	});

	it('calls nobody where the check is not known', async () => {
		await expect(endCheckOf(context(), 'task-9')).resolves.toBeUndefined();
	});
});
