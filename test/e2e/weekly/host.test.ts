import { type IDataObject, type INode } from 'n8n-workflow';
import { randomBytes } from 'node:crypto';

import { describe as tell, type Execution, outputItems, until } from '../../n8n/client';
import { freePort, HOST } from '../../n8n/ports';
import { LEAN } from '../../n8n/settings';
import { missingPostgres, OF_THE_MACHINE, sql } from '../cluster';
import { missingLikeN8n3, needing, unless } from '../needs';
import { inARow, manualTrigger, prompts, type Steps, webhook } from '../nodes';
import { itemsOf, statesOf } from '../run';
import { AT_ONCE, openScene, type Order } from '../scene';
import { Stage } from '../stage';

/** What n8n may be set to. */

describe('an n8n with limits of time and concurrency, and a wrong public address', () => {
	/** Nobody is there. */
	const DEAD = 'http://127.0.0.1:9';

	const scene = openScene({
		env: {
			WEBHOOK_URL: `${DEAD}/`,
			N8N_CONCURRENCY_PRODUCTION_LIMIT: '2',
			EXECUTIONS_TIMEOUT: '900',
		},
	});

	test('executions of a trigger whose media host is in trouble hold no place of the concurrency limit while they sleep', async () => {
		const { client, service, stage } = scene;
		const taskId = '={{ $json.taskId }}';
		const options = { suspendAfter: 0 };
		const wait = scene.media({ resource: 'task', operation: 'wait', taskId, options });
		const target = await scene.publish(scene.trigger(), { before: [wait] });
		const tasks = stage.finishedTasks(2);
		service.configure({ mediaStatus: 503 });
		const asked = webhook('Asked', { responseMode: 'lastNode' });
		const definition = { name: 'Another workflow', ...inARow(asked, scene.collector.node()) };
		const { id } = await client.createWorkflow(definition);
		await client.publish(id, [`/webhook/${asked.webhookId}`]);
		const ask = async () =>
			(await fetch(`${stage.webhookUrl}/webhook/${asked.webhookId}`, { method: 'POST' })).status;

		for (const taskId of tasks) expect(await scene.deliver(target.address, taskId)).toBe(200);
		await until('both executions to sleep', 120_000, async () => {
			const asleep = await client.listExecutions({ workflowId: target.id, status: ['waiting'] });
			return asleep.length === 2;
		});

		expect(await ask()).toBe(200);
		expect(scene.collector.seen).toHaveLength(1);

		service.resetSettings();
		scene.collector.reset();
		// A file is tried again a minute after it failed.
		await scene.expectArrived(tasks, 180_000);
		// Each task has one execution, which slept and went on.
		expect(await client.listExecutions({ workflowId: target.id })).toHaveLength(2);
	}, 400_000);

	const reached = needing('deadAddress', 'An address that cannot be reached');
	const LOST = { callbackLost: true, latencyMs: 5_000 };

	const publish = async () =>
		await scene.publish(scene.trigger(), {
			orders: [prompts('Prompt', [LOST]), scene.image({ completion: 'trigger' })],
		});

	/** Orders a picture. @returns the task, and where its callback is to go */
	async function order(workflowId: string) {
		const { client } = scene;
		const run = await client.run(workflowId, { trigger: 'Start', destination: 'Media' });
		await client.waitForExecution(run);
		const { taskId = '', webhookUrl = '' } = scene.tasks.at(-1) ?? {};
		const { origin, pathname, search } = new URL(webhookUrl);
		return { run, taskId, url: origin + pathname, search };
	}

	reached.test(
		'an n8n that cannot reach its own public address knows which callbacks have come',
		async () => {
			const { client, collector } = scene;
			const { id, url } = await publish();
			const { run, taskId, search } = await order(id);
			await until('the task to end', 60_000, () => scene.tasks.at(-1)?.record.state === 'SUCCESS');
			await scene.deliver(url + search, taskId);
			await scene.arrived(taskId, 30_000);
			const others = async () =>
				(await client.listExecutions({ workflowId: id })).filter((each) => each.id !== run);
			await until('the looks to end', 240_000, async () =>
				(await others()).every(({ status }) => status === 'success'),
			);
			// The one of the callback. The one that looked delivers nothing that has started, and leaves the list.
			expect(await others()).toHaveLength(1);
			expect(collector.seen).toEqual([taskId]);
		},
		400_000,
	);

	reached.test(
		'a new public address holds after a restart of n8n, also for tasks that were created before',
		async () => {
			const { client, stage } = scene;
			const { id, path } = await publish();
			const before = await order(id);
			expect(before.url).toBe(DEAD + path);

			await stage.stop();
			await stage.restart({ WEBHOOK_URL: `${stage.webhookUrl}/` });
			await client.login();
			await client.waitForWebhook(path);
			const after = await order(id);
			expect(after.url).toBe(stage.webhookUrl + path);
			for (const { taskId } of [before, after]) await scene.arrived(taskId);
		},
		600_000,
	);
});

/**
 * n8n's protection against requests to private addresses, with nothing allowed but one name: what the user reads where
 * the service, the host of a result, or n8n's own address is refused.
 */

describe("n8n's protection against requests to private addresses", () => {
	const scene = openScene({
		env: {
			N8N_SSRF_PROTECTION_ENABLED: 'true',
			N8N_SSRF_ALLOWED_HOSTNAMES: 'localhost',
			N8N_SSRF_ALLOWED_IP_RANGES: '',
		},
	});

	/** The service by a name that is allowed; its results are at an address that is not. */
	let allowed: Partial<INode>;
	beforeAll(async () => {
		const { url, apiKey } = scene.service;
		const baseUrl = url.replace('127.0.0.1', 'localhost');
		const data = { baseUrl, apiKey };
		const { id, name } = await scene.client.createCredential('Allowed', 'mediaGenerationApi', data);
		allowed = { credentials: { mediaGenerationApi: { id, name } } };
	});

	/** What becomes of a run for one item. */
	const told = async (order?: Order) => tell(await scene.runImages([{}], order));

	const RANGE =
		"refused '127.0.0.1'. On every process of n8n, add the name to N8N_SSRF_ALLOWED_HOSTNAMES";

	test('the service is refused: nothing is sent, and the message says what to allow', async () => {
		const text = await told();
		expect(text).toContain('error: n8n does not let this node call the service');
		expect(text).toContain(RANGE);
		expect(scene.service.requests).toEqual([]);
	});

	test('the host of a result is refused: the task is named, and what to allow', async () => {
		const text = await told({ options: { downloadResults: true }, node: allowed });
		expect(text).toContain('n8n does not let this node fetch the result: http://127');
		expect(text).toContain(RANGE);
		expect(text).toContain(scene.taskIds[0]);
		// Without the download the same goes.
		expect(await told({ node: allowed })).toBe('success');
	});

	test("n8n's own address is refused to Repeat Callback", async () => {
		const [taskId = ''] = scene.stage.finishedTasks(1);
		const callbackUrl = `${scene.stage.webhookUrl}/webhook/any/callback`;
		const parameters = { resource: 'task', operation: 'redeliver', taskId, callbackUrl };
		const text = await told({ parameters, node: allowed });
		expect(text).toContain('n8n does not let this node call the trigger: http://127');
		expect(text).toContain(RANGE);
	});
});

const onEngineV2 = unless(missingLikeN8n3('engineV2') ?? missingPostgres(), 'The engine v2');

/** n8n's types do not let through what they know. */
const ENGINE_V2: IDataObject = { engineType: 'v2' };

onEngineV2.describe("n8n's engine v2", () => {
	const database = `media_generation_e2e_${randomBytes(4).toString('hex')}`;
	const scene = openScene({
		open: async () => {
			sql(OF_THE_MACHINE, `create database ${database}`);
			const place = async (prefix: string) => {
				const port = await freePort();
				const url = `http://${HOST}:${port}`;
				return {
					[`${prefix}_HOST`]: HOST,
					[`${prefix}_PORT`]: `${port}`,
					[`${prefix}_BASE_URL`]: url,
				};
			};
			const env = {
				...LEAN,
				N8N_ENABLED_MODULES: 'engine-v2',
				N8N_ENGINE_DATABASE_URL: `postgres://postgres@${HOST}:${OF_THE_MACHINE.postgresPort}/${database}`,
				...(await place('N8N_ENGINE')),
				...(await place('N8N_ENGINE_CONTROL_PLANE')),
			};
			return await Stage.open({ env });
		},
	});
	afterAll(() => sql(OF_THE_MACHINE, `drop database if exists ${database} with (force)`));

	/** Runs nodes in a row by the engine v2, to the end. */
	async function run(...nodes: Steps): Promise<Execution> {
		const row = inARow(manualTrigger(), ...nodes);
		const definition = { name: 'Engine v2', ...row, settings: ENGINE_V2 };
		const execution = await (await scene.startWorkflow(definition)).end();
		// The engine of today would have counted it.
		expect(execution.id).toMatch(/^[0-9a-f-]{36}$/);
		return execution;
	}

	const second = prompts('Prompt', [{ latencyMs: 1000 }]);

	test('waits, in input order, with downloads', async () => {
		const failing = { latencyMs: 0, outcome: 'FAILURE' };
		const execution = await run(
			prompts('Prompt', [{ latencyMs: 1500 }, failing, { latencyMs: 500 }]),
			scene.image({ completion: 'wait', options: { downloadResults: true } }),
		);
		expect(tell(execution)).toBe('success');
		expect(statesOf(execution)).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS']);
		const [first] = outputItems(execution, 'Media');
		expect(first?.binary?.data).toMatchObject({ mimeType: 'image/png' });
		expect(scene.creates).toHaveLength(3);
	});

	test.each([
		['Sleep After 0', { options: AT_ONCE }, "n8n's engine v2 wakes no execution"],
		[
			'Notify a Trigger without a Callback URL',
			{ completion: 'trigger' },
			'Trigger does not work with the engine v2',
		],
	])('%s is refused before a task is created', async (_, parameters, reason) => {
		expect(tell(await run(second, scene.image(parameters)))).toContain(reason);
		expect(scene.creates).toEqual([]);
	});

	test('a trigger in another workflow is notified, also of a task whose callback is lost', async () => {
		const { url: callbackUrl } = await scene.publish();
		const lost = { latencyMs: 500, callbackLost: true };
		const execution = await run(
			prompts('Prompt', [{ latencyMs: 500 }, lost]),
			scene.image({ completion: 'trigger', callbackUrl }),
		);
		expect(tell(execution)).toBe('success');
		const taskIds = itemsOf(execution).map(({ taskId }) => String(taskId));
		await scene.expectArrived(taskIds, 150_000);
	}, 240_000);

	test('a trigger is not activated, and n8n says why', async () => {
		const { client, stage } = scene;
		const own = scene.trigger({ options: { requireToken: false } });
		const row = inARow(own, scene.collector.node());
		const { id } = await client.createWorkflow({ name: 'Own', ...row, settings: ENGINE_V2 });
		// n8n activates after it has answered.
		await client.publish(id);
		await scene.logged('does not work with the engine v2 of this workflow');
		const [taskId = ''] = stage.finishedTasks(1);
		const url = stage.webhookUrl + client.webhookPath(own, 'callback');
		expect(await scene.deliver(url, taskId)).toBe(404);
		expect(scene.collector.seen).toEqual([]);
		await client.unpublish(id);
	});
});
