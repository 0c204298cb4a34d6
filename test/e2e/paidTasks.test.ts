import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject, INode } from 'n8n-workflow';

import { type Execution, outputItems, until } from '../n8n/client';
import { needing } from './needs';
import { inARow, manualTrigger, itemsNode, Stage } from './stage';

let stage: Stage;
beforeAll(async () => {
	stage = await Stage.open();
}, 900_000);
afterAll(async () => await stage?.close());
beforeEach(() => stage.reset());

const creates = () => stage.service.requests.filter(({ method }) => method === 'POST');
const taskIds = () => [...stage.service.tasks.keys()];

/** What the log of whoever runs executions says from now on. */
function logFromHere(): () => string {
	const read = () => readFileSync(stage.runner.logFile, 'utf8');
	const before = read().length;
	return () => read().slice(before);
}

/** Generates an image for each item, with `additionalInput` as an expression. */
async function run(
	items: IDataObject[],
	additionalInput: string,
	settings: Partial<INode> = {},
	more: IDataObject = {},
): Promise<Execution> {
	const { client } = stage;
	const workflow = await client.createWorkflow({
		name: 'Paid tasks',
		...inARow(
			manualTrigger(),
			itemsNode('Prompts', items),
			stage.mediaNode(
				'mediaGeneration',
				'Media',
				{
					resource: 'image',
					operation: 'generate',
					prompt: '={{ $json.prompt }}',
					options: { additionalInput },
					...more,
				},
				settings,
			),
		),
	});
	return await client.waitForExecution(await client.run(workflow.id), 110_000);
}

const prompts = (count: number) =>
	Array.from({ length: count }, (_, index) => ({ prompt: `Prompt ${index}` }));
const outputOf = (execution: Execution) => outputItems(execution, 'Media').map(({ json }) => json);

describe('an execution that is stopped while creates are under way', () => {
	/** Starts 8 items, and stops the execution a moment after the first creates were sent. */
	async function stopAfter(ms: number) {
		const id = await stage.startImages(Array(8).fill({ latencyMs: 60_000 }));
		await until('the first create', 30_000, async () => creates().length > 0);
		await sleep(ms);
		const stoppedAt = Date.now();
		await stage.client.stopExecution(id);
		const { status } = await stage.client.waitForExecution(id);
		return { status, ms: Date.now() - stoppedAt };
	}

	test('is stopped at once, and every task that the service made is named in the log', async () => {
		const log = logFromHere();
		stage.service.configure({ createDelayMs: 2500 });
		const stopped = await stopAfter(1200);
		expect(stopped.status).toBe('canceled');
		expect(stopped.ms).toBeLessThan(2000);
		await sleep(6000);
		const named = taskIds().filter((taskId) => log().includes(taskId));
		console.log(
			`stopped in mid-create: ${creates().length} creates, ${taskIds().length} tasks, ${named.length} named in the log`,
		);
		expect(taskIds().length).toBeGreaterThan(0);
		expect(named).toEqual(taskIds());
		expect(log()).not.toMatch(/unhandled/i);
	}, 60_000);

	test('names what was sent without an answer, and the task when the answer comes after all', async () => {
		const log = logFromHere();
		stage.service.configure({ createDelayMs: 14_000 });
		expect((await stopAfter(500)).status).toBe('canceled');
		await until('the list', 20_000, async () =>
			log().includes('Sent, but the answer was lost: item 1'),
		);
		for (const taskId of taskIds()) expect(log()).not.toContain(taskId);
		await until('the late answers', 20_000, async () =>
			taskIds().every((taskId) => log().includes(`created task ${taskId}`)),
		);
		expect(log()).toMatch(
			/created task \S+ \(execution \d+, item 1\), after the execution was stopped/,
		);
		expect(log()).not.toMatch(/unhandled/i);
		// Nothing was created after the stop.
		expect(creates().length).toBeLessThan(8);
	}, 90_000);
});

describe('expressions that give something else each time', () => {
	const changing = '={{ { seed: Math.random() } }}';
	const threeTries = { retryOnFail: true, maxTries: 3, waitBetweenTries: 100 };

	test('pay for no item twice: 3 items, the first answer lost, 3 tries', async () => {
		stage.service.configure({ createLost: { times: 1 } });
		const execution = await run(prompts(3), changing, threeTries, {
			options: { additionalInput: changing, ifSomeFail: 'stop' },
		});
		console.log(`3 items, the first answer lost, 3 tries: ${creates().length} creates`);
		expect(execution.status).toBe('error');
		expect(execution.data.resultData.error?.description).toContain(
			'Sent, but the answer was lost: item 1.',
		);
		// The third may not have been sent when the first was lost, and then it is not.
		expect(creates().length).toBeLessThanOrEqual(3);
	});

	test('pay for no finished item again where the node goes on', async () => {
		stage.service.configure({ createLost: { times: 1 } });
		const execution = await run(prompts(2), changing, {
			...threeTries,
			onError: 'continueRegularOutput',
		});
		console.log(`2 items, the first answer lost, 3 tries: ${creates().length} creates`);
		expect(outputOf(execution).map(({ state }) => state)).toEqual([undefined, 'SUCCESS']);
		expect(creates()).toHaveLength(2);
		const [, task] = [...stage.service.tasks.values()];
		expect(outputOf(execution)[1]?.input).toEqual(task?.record.input);
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
	const execution = await run(
		trouble.map((readStatus, index) => ({ prompt: `Prompt ${index}`, simulate: { readStatus } })),
		'={{ { simulate: $json.simulate } }}',
	);
	expect(outputOf(execution).map(({ state }) => state)).toEqual(Array(5).fill('SUCCESS'));
	expect(creates()).toHaveLength(5);
}, 120_000);

needing('connectionErrors', 'An address where nobody listens').test.each([
	'http://localhost:1',
	'http://127.0.0.1:1',
	'http://nobody.invalid',
])('%s is known to have got nothing', async (baseUrl) => {
	const { client, service } = stage;
	const { id, name } = await client.createCredential('Nowhere', 'mediaGenerationApi', {
		baseUrl,
		apiKey: service.apiKey,
	});
	const execution = await run(prompts(1), '{}', {
		credentials: { mediaGenerationApi: { id, name } },
	});
	expect(execution.data.resultData.error?.message).toContain('n8n could not connect');
});

test('a service that repeats the callback address brings no token into the output', async () => {
	stage.service.configure({ repeatWebhookUrl: true, createShape: 'record', callbackLost: true });
	const execution = await run(
		prompts(1),
		'{}',
		{},
		{
			completion: 'trigger',
			callbackUrl: `${stage.webhookUrl}/webhook/x/callback`,
		},
	);
	const [sent] = [...stage.service.tasks.values()];
	expect(sent?.webhookUrl).toMatch(/token=[0-9a-f]{64}$/);
	const [output] = outputOf(execution);
	expect(output?.record).toMatchObject({
		webhook_url: `${stage.webhookUrl}/webhook/x/callback?token=***`,
	});
	expect(JSON.stringify(execution.data)).not.toMatch(/token=[0-9a-f]{64}/);
});
