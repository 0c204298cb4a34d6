import type { IncomingHttpHeaders } from 'node:http';
import { json } from 'node:stream/consumers';

import {
	callbackToken,
	checkStartAgain,
	START_AGAIN_HEADER,
} from '../../nodes/MediaGeneration/callback/callbackToken';
import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { listen } from '../listen';
import { agentsContext, startWorkflow, type TestNode } from './engine';
import { field, IMAGE_MODEL, keepsGoing, MINUTE, stage, text, threeTries } from './support';
import { passTime } from './time';

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

const node = (startAgain: boolean | string, more: TestNode = {}): TestNode => ({
	...more,
	parameters: {
		resource: 'task',
		operation: 'redeliver',
		taskId: '={{ $json.taskId }}',
		callbackUrl: trigger.url + PATH,
		options: { startAgain },
	},
});
const unfinished = () => {
	const input = { prompt: 'A', simulate: { latencyMs: MINUTE } };
	return { json: { taskId: on.service.createTask(IMAGE_MODEL, input).taskId } };
};
const finished = () => ({ json: { taskId: on.finishedTask() } });

/** Who asked, by the header that came with a request, as the trigger checks it. */
const askerOf = ({ headers, body }: Received) => {
	const subject = { path: PATH, taskId: body.taskId, apiKey: on.service.apiKey };
	return checkStartAgain(headers[START_AGAIN_HEADER], subject);
};

it('finished tasks are sent to the trigger without their record and the API key, and unfinished ones are left alone', async () => {
	const task = finished();
	const { output } = await on.run(node(false), [task, unfinished()]);
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
	const { output } = await on.run(node(false, keepsGoing), [finished()]);
	expect(output).toMatchObject([{ json: { state: 'SUCCESS', error: text('(HTTP 401)') } }]);
});

it('a callback that is redelivered does not ask to start again unless that was chosen, and then is signed for its task and its trigger', async () => {
	await on.run(node(false), [finished()]);
	await on.run(node(true), [finished()]);
	expect(received[0]?.headers).not.toHaveProperty(START_AGAIN_HEADER);
	expect(received.slice(1).map(askerOf)).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);
	// The address is an ordinary one.
	expect(received[1]?.url).toBe(received[0]?.url);
	expect(JSON.stringify(received)).not.toContain(on.service.apiKey);
});

it('to start again can be chosen by an expression that gives a text', async () => {
	await on.run(node('={{ "true" }}'), [finished()]);
	expect(received.map(askerOf)).toEqual([expect.any(String)]);
	const { error } = await on.run(node('={{ "yes" }}'), [finished()]);
	expect(error?.message).toContain("'Start Again' is 'yes'");
});

describe('one run of the node asks under one name', () => {
	afterEach(() => {
		expect(received).toHaveLength(2);
		expect(received.map(askerOf)).not.toContain(undefined);
	});
	const names = () => new Set(received.map(askerOf)).size;

	it('for all its items', async () => {
		await on.run(node(true), [finished(), finished()]);
		expect(names()).toBe(1);
	});

	it('in its next try, after the answer of the trigger was no good', async () => {
		statuses.push(503);
		await on.run(node(true, threeTries), [finished()]);
		expect(names()).toBe(1);
	});

	it('in the retry of its execution', async () => {
		statuses.push(503);
		const workflow = on.workflow(node(true), [finished()]);
		const failed = await passTime(startWorkflow(workflow).result);
		expect(failed.run.status).toBe('error');
		expect((await on.retry(workflow, failed)).run.status).toBe('success');
		expect(names()).toBe(1);
	});

	it('and each round of a loop under its own', async () => {
		const rounds = [[finished()], [finished()]];
		await passTime(startWorkflow({ ...on.workflow(node(true)), rounds }).result);
		expect(names()).toBe(2);
	});

	it("and each call of n8n's Agents, which have no executions, under its own", async () => {
		const call = async () => {
			const workflow = on.workflow({ ...node(true), type: 'mediaGenerationTool' }, [finished()]);
			await passTime(new MediaGeneration().execute.call(agentsContext(workflow)));
		};
		await call();
		await call();
		expect(names()).toBe(2);
	});
});
