import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { INodeExecutionData } from 'n8n-workflow';

import {
	checkStartAgain,
	START_AGAIN_HEADER,
} from '../../nodes/MediaGeneration/callback/startAgainHeader';
import { retryExecution, startWorkflow, type TestNode } from './engine';
import { IMAGE_MODEL, stage } from './support';
import { passTime } from './time';

const PATH = '/webhook/x/callback';
const on = stage();

interface Received {
	url: string;
	header: unknown;
	taskId: string;
}
const received: Received[] = [];
/** What the trigger answers, in turn; then 200. */
const statuses: number[] = [];
const trigger = http.createServer((request, response) => {
	void text(request).then((body) => {
		const { url = '', headers } = request;
		const { taskId } = JSON.parse(body) as { taskId: string };
		received.push({ url, header: headers[START_AGAIN_HEADER], taskId });
		response.writeHead(statuses.shift() ?? 200).end('{ "accepted": true }');
	});
});
beforeAll(async () => {
	trigger.listen(0, '127.0.0.1');
	await once(trigger, 'listening');
});
beforeEach(() => received.splice(0));
afterAll(() => {
	trigger.closeAllConnections();
	trigger.close();
});

const node = (startAgain: boolean, more: TestNode = {}): TestNode => ({
	...more,
	parameters: {
		resource: 'task',
		operation: 'redeliver',
		taskId: '={{ $json.taskId }}',
		callbackUrl: `http://127.0.0.1:${(trigger.address() as AddressInfo).port}${PATH}`,
		options: { startAgain },
	},
});
const finished = (): INodeExecutionData => {
	const { taskId } = on.service.createTask(IMAGE_MODEL, { prompt: 'A' });
	on.service.complete(taskId);
	return { json: { taskId } };
};

/** Who asked, by the header that came with a request, as the trigger checks it. */
const askerOf = ({ header, taskId }: Received) =>
	checkStartAgain(header, { path: PATH, taskId, apiKey: on.service.apiKey });

it('a callback that is redelivered does not ask to start again unless that was chosen, and then is signed for its task and its trigger', async () => {
	await on.run(node(false), [finished()]);
	const { output } = await on.run(node(true), [finished()]);
	expect(received.map(({ header }) => header)).toEqual([undefined, expect.any(String)]);
	expect(received.slice(1).map(askerOf)).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);
	expect(output[0]?.json).toMatchObject({ delivered: true, delivery: 'accepted' });
	// The address is an ordinary one.
	expect(received[1]?.url).toBe(received[0]?.url);
	expect(JSON.stringify(received)).not.toContain(on.service.apiKey);
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
		const tries = { retryOnFail: true, maxTries: 2, waitBetweenTries: 0 };
		await on.run(node(true, tries), [finished()]);
		expect(names()).toBe(1);
	});

	it('in the retry of its execution', async () => {
		statuses.push(503);
		const workflow = on.workflow(node(true), [finished()]);
		const failed = await passTime(startWorkflow(workflow).result);
		expect(failed.run.status).toBe('error');
		expect((await passTime(retryExecution(workflow, failed))).run.status).toBe('success');
		expect(names()).toBe(1);
	});

	it('and each round of a loop under its own', async () => {
		const rounds = [[finished()], [finished()]];
		await passTime(startWorkflow({ ...on.workflow(node(true)), rounds }).result);
		expect(names()).toBe(2);
	});
});
