import { randomBytes } from 'node:crypto';
import type { IDataObject } from 'n8n-workflow';

import { describe as tell, type Execution, outputItems } from '../n8n/client';
import { literal } from '../n8n/database';
import { freePort, HOST } from '../n8n/ports';
import { LEAN } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { missingPostgres, OF_THE_MACHINE, sql } from './cluster';
import { missingLikeN8n3, unless } from './needs';
import { deliver, inARow, manualTrigger, prompts, type Steps } from './nodes';
import { itemsOf, statesOf } from './run';
import { openScene } from './scene';
import { Stage } from './stage';

const { describe } = unless(missingLikeN8n3('engineV2') ?? missingPostgres(), 'The engine v2');

/** n8n's types do not let through what they know. */
const ENGINE_V2: IDataObject = { engineType: 'v2' };

describe("n8n's engine v2", () => {
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
			return await Stage.open({
				...LEAN,
				N8N_ENABLED_MODULES: 'engine-v2',
				N8N_ENGINE_DATABASE_URL: `postgres://postgres@${HOST}:${OF_THE_MACHINE.postgresPort}/${database}`,
				...(await place('N8N_ENGINE')),
				...(await place('N8N_ENGINE_CONTROL_PLANE')),
			});
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

	test('returns at once; Task: Get and Task: Wait fetch the tasks; the credits are read', async () => {
		const created = itemsOf(await run(second, scene.image({ completion: 'return' })));
		expect(created).toMatchObject([{ state: 'PENDING' }]);
		const taskId = created[0]?.taskId;
		for (const operation of ['wait', 'get']) {
			const fetched = await run(scene.media({ resource: 'task', operation, taskId }));
			expect(itemsOf(fetched)).toMatchObject([{ taskId, state: 'SUCCESS' }]);
		}
		const credits = await run(scene.stage.mediaNode('mediaGenerationCredits', 'Media', {}));
		expect(typeof itemsOf(credits)[0]?.balance).toBe('number');
	});

	test.each([
		['Survive Restarts After 0', { options: AT_ONCE }, "n8n's engine v2 wakes no execution"],
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

	test('a trigger whose workflow is changed to it takes no callback', async () => {
		const { database: stored } = scene.stage;
		const { id, url } = await scene.publish(scene.trigger({ options: { requireToken: false } }));
		// As an import of the settings does: nothing is activated anew.
		const settings = literal(JSON.stringify(ENGINE_V2));
		await stored.execute(`update workflow_entity set settings = ${settings} where id = '${id}'`);
		const [taskId = ''] = scene.stage.finishedTasks(1);
		const answer = await deliver(url, { taskId });
		expect(answer.status).toBe(503);
		expect(await answer.text()).toContain("does not work with n8n's engine v2");
		await scene.expectArrived([]);
	});
});
