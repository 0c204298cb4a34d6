import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IDataObject, INode } from 'n8n-workflow';

import { describe as tell, type Execution, outputItems, until } from '../n8n/client';
import { literal } from '../n8n/database';
import { missingInN8n } from '../n8n/differences';
import { freePort, HOST } from '../n8n/ports';
import { missingPostgres, OF_THE_MACHINE, sql } from './cluster';
import { AT_ONCE } from './atOnce';
import { Collector } from './collector';
import { deliver, inARow, itemsNode, manualTrigger, Stage } from './stage';

const missing = missingInN8n('engineV2') ?? missingPostgres();
if (missing !== undefined) console.log(`the engine v2 is skipped: ${missing}`);
const describeEngineV2 = missing === undefined ? describe : describe.skip;

/** n8n's types do not let through what they know. */
const ENGINE_V2: IDataObject = { engineType: 'v2' };

describeEngineV2("n8n's engine v2", () => {
	const database = `media_generation_e2e_${randomBytes(4).toString('hex')}`;
	let stage: Stage;
	let collector: Collector;

	beforeAll(async () => {
		sql(OF_THE_MACHINE, `create database ${database}`);
		const [port, controlPort] = [await freePort(), await freePort()];
		stage = await Stage.open({
			N8N_ENABLED_MODULES: 'engine-v2',
			N8N_ENGINE_DATABASE_URL: `postgres://postgres@${HOST}:${OF_THE_MACHINE.postgresPort}/${database}`,
			N8N_ENGINE_HOST: HOST,
			N8N_ENGINE_PORT: String(port),
			N8N_ENGINE_BASE_URL: `http://${HOST}:${port}`,
			N8N_ENGINE_CONTROL_PLANE_HOST: HOST,
			N8N_ENGINE_CONTROL_PLANE_PORT: String(controlPort),
			N8N_ENGINE_CONTROL_PLANE_BASE_URL: `http://${HOST}:${controlPort}`,
		});
		collector = await Collector.open();
	}, 900_000);
	afterAll(async () => {
		collector?.close();
		await stage?.close();
		sql(OF_THE_MACHINE, `drop database if exists ${database} with (force)`);
	}, 60_000);
	beforeEach(() => {
		stage.reset();
		collector.reset();
	});

	/** Runs nodes in a row by the engine v2, to the end. */
	async function run(...nodes: INode[]): Promise<Execution> {
		const workflow = await stage.client.createWorkflow({
			name: 'Engine v2',
			...inARow(manualTrigger(), ...nodes),
			settings: ENGINE_V2,
		});
		const execution = await stage.client.waitForExecution(await stage.client.run(workflow.id));
		// The engine of today would have counted it.
		expect(execution.id).toMatch(/^[0-9a-f-]{36}$/);
		return execution;
	}

	const prompts = (...switches: IDataObject[]) =>
		itemsNode(
			'Prompts',
			switches.map((simulate, index) => ({ prompt: `Prompt ${index}`, simulate })),
		);

	const images = (completion: string, more: IDataObject = {}, options: IDataObject = {}) =>
		stage.mediaNode('mediaGeneration', 'Media', {
			resource: 'image',
			operation: 'generate',
			prompt: '={{ $json.prompt }}',
			completion,
			options: { additionalInput: '={{ { simulate: $json.simulate } }}', ...options },
			...more,
		});

	const media = (execution: Execution) => outputItems(execution, 'Media').map(({ json }) => json);

	const creates = () =>
		stage.service.requests.filter(({ host, method }) => host === 'api' && method === 'POST').length;

	test('waits, in input order, with downloads', async () => {
		const execution = await run(
			prompts({ latencyMs: 1500 }, { latencyMs: 0, outcome: 'FAILURE' }, { latencyMs: 500 }),
			images('wait', {}, { downloadResults: true }),
		);
		expect(tell(execution)).toBe('success');
		expect(media(execution).map(({ state }) => state)).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS']);
		const [first] = outputItems(execution, 'Media');
		expect(first?.binary?.data).toMatchObject({ mimeType: 'image/png' });
		expect(creates()).toBe(3);
	});

	test('returns at once; Task: Get and Task: Wait fetch the tasks', async () => {
		const created = await run(prompts({ latencyMs: 1000 }), images('return'));
		expect(media(created)).toMatchObject([{ state: 'PENDING' }]);
		const taskId = String(media(created)[0]?.taskId);
		for (const operation of ['wait', 'get']) {
			const fetched = await run(
				stage.mediaNode('mediaGeneration', 'Media', { resource: 'task', operation, taskId }),
			);
			expect(media(fetched)).toMatchObject([{ taskId, state: 'SUCCESS' }]);
		}
	});

	test('reads the credits', async () => {
		const execution = await run(stage.mediaNode('mediaGenerationCredits', 'Media', {}));
		expect(typeof media(execution)[0]?.balance).toBe('number');
	});

	test('Suspend After 0 is refused before a task is created', async () => {
		const execution = await run(prompts({ latencyMs: 1000 }), images('wait', {}, AT_ONCE));
		expect(tell(execution)).toContain("n8n's engine v2 resumes no execution");
		expect(creates()).toBe(0);
	});

	test('Notify a Trigger without a Callback URL is refused before a task is created', async () => {
		const execution = await run(prompts({ latencyMs: 1000 }), images('trigger'));
		expect(tell(execution)).toContain('Trigger does not work with the engine v2');
		expect(creates()).toBe(0);
	});

	test('a trigger in another workflow is notified, also of a task whose callback is lost', async () => {
		const callbackUrl = await stage.publishTrigger('Triggered, engine v1', collector.node());
		const execution = await run(
			prompts({ latencyMs: 500 }, { latencyMs: 500, callbackLost: true }),
			images('trigger', { callbackUrl }),
		);
		expect(tell(execution)).toBe('success');
		await collector.settle(2, 150_000);
		const taskIds = media(execution).map(({ taskId }) => taskId);
		expect([...collector.seen].sort()).toEqual(taskIds.sort());
	}, 240_000);

	const trigger = () =>
		stage.mediaNode('mediaGenerationTrigger', 'Trigger', { options: { requireToken: false } });

	test('a trigger is not activated, and n8n says why', async () => {
		const { client, n8n } = stage;
		const own = trigger();
		const { id } = await client.createWorkflow({
			name: 'Triggered',
			...inARow(own, collector.node()),
			settings: ENGINE_V2,
		});
		// n8n activates after it has answered.
		await client.publish(id);
		await until('n8n to say why', 30_000, async () =>
			readFileSync(n8n.logFile, 'utf8').includes(
				'does not work with the engine v2 of this workflow',
			),
		);
		const [taskId = ''] = stage.finishedTasks(1);
		const answer = await deliver(stage.webhookUrl + client.webhookPath(own, 'callback'), {
			taskId,
		});
		expect(answer.status).toBe(404);
		expect(collector.seen).toEqual([]);
		await client.unpublish(id);
	});

	test('a trigger whose workflow is changed to it takes no callback', async () => {
		const { client } = stage;
		const own = trigger();
		const path = client.webhookPath(own, 'callback');
		const { id } = await client.createWorkflow({
			name: 'Triggered',
			...inARow(own, collector.node()),
		});
		await client.publish(id, [path]);
		// As an import of the settings does: nothing is activated anew.
		const settings = literal(JSON.stringify(ENGINE_V2));
		await stage.database.execute(
			`update workflow_entity set settings = ${settings} where id = '${id}'`,
		);
		const [taskId = ''] = stage.finishedTasks(1);
		const answer = await deliver(stage.webhookUrl + path, { taskId });
		expect([answer.status, await answer.text()]).toEqual([
			503,
			expect.stringContaining("does not work with n8n's engine v2"),
		]);
		await collector.settle(0);
		expect(collector.seen).toEqual([]);
	});
});
