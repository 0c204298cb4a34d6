import type { IncomingHttpHeaders } from 'node:http';
import { json } from 'node:stream/consumers';

import { callbackToken } from '../../nodes/MediaGeneration/callback/callbackAddress';
import { listen } from '../listen';
import type { TestNode } from './engine';
import { field, IMAGE_MODEL, keepsGoing, MINUTE, stage, text } from './support';

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
let trigger: Awaited<ReturnType<typeof listen>>;
beforeAll(async () => {
	trigger = await listen((request, response) => {
		void json(request).then((body) => {
			const { url = '', headers } = request;
			received.push({ url, headers, body: body as Received['body'] });
			response.writeHead(statuses.shift() ?? 200).end('{ "accepted": true }');
		});
	});
});
beforeEach(() => received.splice(0));
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

it('a trigger that does not take it is an error of the item', async () => {
	statuses.push(401);
	const { output } = await on.run(node(keepsGoing), [finished()]);
	expect(output).toMatchObject([{ json: { state: 'SUCCESS', error: text('(HTTP 401)') } }]);
});
