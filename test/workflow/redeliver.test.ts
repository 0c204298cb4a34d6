import type { IncomingHttpHeaders } from 'node:http';
import { json } from 'node:stream/consumers';

import { callbackToken } from '../../nodes/MediaGeneration/shared/addresses';
import { claimStart } from '../../nodes/MediaGeneration/callback/ledger';
import { listen } from '../listen';
import { additionalData, executeContext, type TestNode, TRIGGER } from './engine';
import { field, IMAGE_MODEL, keepsGoing, MINUTE, SECOND, stage, text } from './support';
import { time } from './time';

const PATH = '/webhook/x/callback';
const on = stage();

interface Received {
	url: string;
	headers: IncomingHttpHeaders;
	body: { taskId: string };
}
const received: Received[] = [];
/** What the trigger answers, in turn; then 200. */
const statuses: number[] = [];
const answers: string[] = [];
/** What follows from a callback that it takes. */
let accept: (taskId: string) => void;
let trigger: Awaited<ReturnType<typeof listen>>;
beforeAll(async () => {
	trigger = await listen((request, response) => {
		void json(request).then((body) => {
			const { url = '', headers } = request;
			received.push({ url, headers, body: body as Received['body'] });
			accept((body as Received['body']).taskId);
			response.writeHead(statuses.shift() ?? 200).end(answers.shift() ?? '{ "accepted": true }');
		});
	});
});
beforeEach(() => {
	received.splice(0);
	accept = () => {};
});
afterAll(async () => await trigger.close());

const node = (more: TestNode = {}): TestNode => ({
	...more,
	parameters: {
		resource: 'task',
		operation: 'redeliver',
		taskId: '={{ $json.taskId }}',
		callbackUrl: trigger.url + PATH,
	},
});
const unfinished = () => {
	const input = { prompt: 'A', simulate: { latencyMs: MINUTE } };
	return { json: { taskId: on.service.createTask(IMAGE_MODEL, input).taskId } };
};
const finished = () => ({ json: { taskId: on.finishedTask() } });

it('finished tasks are sent to the trigger without their record and the API key, and unfinished ones are left alone', async () => {
	const task = finished();
	const { output } = await on.run(node(), [task, unfinished()]);
	expect(field(output, 'delivered')).toEqual([true, false]);
	expect(field(output, 'delivery')).toEqual(['accepted', undefined]);
	expect(field(output, 'state')).toEqual(['SUCCESS', 'PENDING']);
	const url = `${PATH}?token=${callbackToken(PATH, on.service.apiKey)}`;
	expect(received).toMatchObject([{ url, headers: { 'content-type': 'application/json' } }]);
	expect(received[0]?.body).toEqual({ ...task.json, state: 'SUCCESS' });
	expect(JSON.stringify(received)).not.toContain(on.service.apiKey);
});

it('a trigger that does not take it, or a web page in its place, is an error of the item, which shows no part of the token', async () => {
	const token = callbackToken(PATH, on.service.apiKey);
	statuses.push(200, 404, 404);
	const page = '<!DOCTYPE html><title>Log in</title>';
	answers.push(page, `Cannot POST ${PATH}?token=${token}`, `${'x'.repeat(460)} ?token=${token}`);
	const { output } = await on.run(node(keepsGoing), [finished(), finished(), finished()]);
	expect(field(output, 'error')).toEqual([
		text('A web page answers in place of'),
		text('(HTTP 404): Cannot POST /webhook/x/callback?token=***'),
		text('x'.repeat(460)),
	]);
	expect(field(output, 'state')).toEqual(Array(3).fill('SUCCESS'));
	expect(JSON.stringify(output)).not.toContain(token.slice(0, 8));
});

describe('a trigger of the same workflow', () => {
	/** n8n has the address of the trigger of these tests. */
	const own = { ...TRIGGER, id: 'own', webhookId: 'x' };
	const send = async (task: ReturnType<typeof finished>) =>
		await on.run(node(keepsGoing), [task], {
			triggers: [own],
			host: { ...additionalData(on.credential), webhookBaseUrl: `${trigger.url}/webhook` },
		});
	const starts = async (taskId: string) => await claimStart(executeContext({ node: own }), taskId);

	it('that has started for the task is not called', async () => {
		const task = finished();
		await starts(task.json.taskId);
		const { output } = await send(task);
		expect(output).toMatchObject([{ json: { delivered: true, delivery: 'duplicate' } }]);
		expect(received).toEqual([]);
	});

	it('that starts a little after its answer has the result', async () => {
		accept = (taskId) => time.later(3 * SECOND, () => void starts(taskId));
		const { output } = await send(finished());
		expect(output).toMatchObject([{ json: { delivered: true, delivery: 'accepted' } }]);
		expect(received).toHaveLength(1);
	});

	it('whose execution dies has nothing delivered, and the item says so', async () => {
		const task = finished();
		const { output } = await send(task);
		const { taskId } = task.json;
		expect(output).toMatchObject([
			{
				json: {
					taskId,
					error: text('has not started its workflow'),
					advice: text('list of executions'),
				},
			},
		]);
		expect(output[0]?.json).not.toHaveProperty('delivered');
		expect(on.elapsed).toBeLessThan(10 * SECOND);
	});
});
