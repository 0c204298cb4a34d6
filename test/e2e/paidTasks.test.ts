import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject, INode } from 'n8n-workflow';

import { type Execution, until } from '../n8n/client';
import { needing } from './needs';
import { errorOf, itemsOf, statesOf } from './run';
import { openScene } from './scene';

const scene = openScene();

/** What the log of whoever runs executions says from now on. */
function logFromHere(): () => string {
	const before = scene.log.length;
	return () => scene.log.slice(before);
}

/** Generates images, with `additionalInput` as an expression. */
async function run(
	count: number,
	additionalInput: string,
	node: Partial<INode> = {},
	{ options, ...parameters }: IDataObject = {},
): Promise<Execution> {
	const switches = Array<IDataObject>(count).fill({});
	const all = { additionalInput, ...(options as IDataObject) };
	return await scene.runImages(switches, { options: all, node, parameters });
}

describe('an execution that is stopped while creates are under way', () => {
	/** Starts 8 items, and stops the execution a moment after the first creates were sent. */
	async function stopAfter(ms: number): Promise<void> {
		const started = await scene.startImages(Array<IDataObject>(8).fill({ latencyMs: 60_000 }));
		await until('the first create', 30_000, () => scene.creates.length > 0);
		await sleep(ms);
		await started.stop();
		expect((await started.end()).status).toBe('canceled');
	}

	test('every task that the service made is named in the log', async () => {
		const log = logFromHere();
		scene.service.configure({ createDelayMs: 7000 });
		await stopAfter(1200);
		await until('all creates to be answered', 60_000, () =>
			scene.creates.every(({ status }) => status !== undefined),
		);
		await until('the tasks to be named', 60_000, () =>
			scene.taskIds.every((taskId) => log().includes(taskId)),
		);
		expect(scene.taskIds.length).toBeGreaterThan(0);
		expect(log()).not.toMatch(/unhandled/i);
	}, 180_000);

	test('is stopped at once; names what was sent without an answer, and the task when the answer comes after all', async () => {
		const log = logFromHere();
		scene.service.configure({ createDelayMs: 30_000 });
		await stopAfter(500);
		await until('the list', 25_000, () => log().includes('Sent, but the answer was lost: item 1'));
		// Neither the stop nor the list waits for an answer.
		expect(scene.creates.filter(({ status }) => status !== undefined)).toEqual([]);
		for (const taskId of scene.taskIds) expect(log()).not.toContain(taskId);
		await until('the late answers', 60_000, () =>
			scene.taskIds.every((taskId) => log().includes(`created task ${taskId}`)),
		);
		expect(log()).toMatch(
			/created task \S+ \(execution \d+, item 1\), after the execution was stopped/,
		);
		expect(log()).not.toMatch(/unhandled/i);
		// Nothing was created after the stop.
		expect(scene.creates.length).toBeLessThan(8);
	}, 180_000);
});

describe('expressions that give something else each time', () => {
	const changing = '={{ { seed: Math.random() } }}';
	const threeTries = { retryOnFail: true, maxTries: 3, waitBetweenTries: 100 };

	test('pay for no item twice: 3 items, the first answer lost, 3 tries', async () => {
		scene.service.configure({ createLost: { times: 1 } });
		const execution = await run(3, changing, threeTries, { options: { ifSomeFail: 'stop' } });
		expect(execution.status).toBe('error');
		expect(errorOf(execution)?.description).toContain('Sent, but the answer was lost: item 1.');
		// The third may not have been sent when the first was lost, and then it is not.
		expect(scene.creates.length).toBeLessThanOrEqual(3);
	});

	test('pay for no finished item again where the node goes on', async () => {
		scene.service.configure({ createLost: { times: 1 } });
		const execution = await run(2, changing, { ...threeTries, onError: 'continueRegularOutput' });
		expect(statesOf(execution)).toEqual([undefined, 'SUCCESS']);
		expect(scene.creates).toHaveLength(2);
		const [, task] = scene.tasks;
		expect(itemsOf(execution)[1]?.input).toEqual(task?.record.input);
	});
});

test('one unlucky answer ends no wait, and neither does a page of a firewall', async () => {
	const page = {
		status: 403,
		body: '<html><title>Blocked</title></html>',
		contentType: 'text/html',
	};
	const trouble = [
		{ status: 404, times: 1 },
		{ status: 410, times: 2 },
		{ status: 401, times: 1 },
		{ status: 403, times: 2 },
		{ ...page, times: 4 },
	];
	const switches = trouble.map((readStatus) => ({ readStatus }));
	const execution = await scene.runImages(switches);
	expect(statesOf(execution)).toEqual(Array(5).fill('SUCCESS'));
	expect(scene.creates).toHaveLength(5);
}, 120_000);

needing('connectionErrors', 'An address where nobody listens').test.each([
	'http://localhost:1',
	'http://127.0.0.1:1',
	'http://nobody.invalid',
])('%s is known to have got nothing', async (baseUrl) => {
	const { client, service } = scene;
	const { id, name } = await client.createCredential('Nowhere', 'mediaGenerationApi', {
		baseUrl,
		apiKey: service.apiKey,
	});
	const execution = await run(1, '{}', { credentials: { mediaGenerationApi: { id, name } } });
	expect(errorOf(execution)?.message).toContain('n8n could not connect');
});

test('a service that repeats the callback address brings no token into the output', async () => {
	scene.service.configure({ repeatWebhookUrl: true, createShape: 'record', callbackLost: true });
	const callbackUrl = `${scene.stage.webhookUrl}/webhook/x/callback`;
	const execution = await run(1, '{}', {}, { completion: 'trigger', callbackUrl });
	const [sent] = scene.tasks;
	expect(sent?.webhookUrl).toMatch(/token=[0-9a-f]{64}$/);
	const [output] = itemsOf(execution);
	expect(output?.record).toMatchObject({ webhook_url: `${callbackUrl}?token=***` });
	expect(JSON.stringify(execution.data)).not.toMatch(/token=[0-9a-f]{64}/);
});
