import type { IDataObject } from 'n8n-workflow';

import { describe as tell, outputItems } from '../n8n/client';
import { chooseN8nVersion, DEFAULT_VERSION } from '../n8n/version';
import { AT_ONCE } from './atOnce';
import { missingForQueueMode } from './cluster';
import { ifAsked, unless } from './needs';
import { lanes, manualTrigger, prompts } from './nodes';
import { itemsOf, statesOf, succeeded } from './run';
import { openScene } from './scene';
import { Stage } from './stage';

/**
 * What `N8N_SETTINGS=n8n3` gives all of these tests is what it says, and the ways of this package go there. It runs once a
 * week, as all tests do with that setting: `LONG_TESTS=1 npm run test:e2e -- n8n3`.
 */

const { version } = chooseN8nVersion();
const missing =
	version === DEFAULT_VERSION ? missingForQueueMode() : `n8n ${version} is not ${DEFAULT_VERSION}`;
const WHAT = 'The defaults of n8n 3';

(missing === undefined ? ifAsked(WHAT) : unless(missing, WHAT)).describe(
	'with what n8n 3 will set',
	() => {
		const scene = openScene({ open: async () => await Stage.openLikeN8n3() });

		/** Runs images by hand, which is on the worker. @returns the run and the files of its items */
		async function run(switches: IDataObject[], options: IDataObject) {
			const after = [scene.collector.node()];
			const started = await scene.startImages(switches, { options, after });
			const execution = succeeded(await started.end());
			const files = outputItems(execution, 'Media').map(({ binary }) => binary?.data);
			return { id: started.id, execution, files };
		}

		test('a batch that is held is run on the worker, its files are in the file system', async () => {
			const { id, files } = await run([{}, {}], { downloadResults: true });
			expect((await scene.stage.cluster.workerOf(id)).pid).toBeGreaterThan(0);
			const inFileSystem = expect.stringMatching(/^filesystem/) as string;
			expect(files).toMatchObject(Array(2).fill({ mimeType: 'image/png', id: inFileSystem }));
		});

		test('a suspended run is resumed by its callbacks, with its files', async () => {
			const switches = [{ latencyMs: 6000 }, { latencyMs: 5000 }];
			const { execution, files } = await run(switches, { ...AT_ONCE, downloadResults: true });
			expect(statesOf(execution)).toEqual(['SUCCESS', 'SUCCESS']);
			expect(files.every((file) => file?.id?.startsWith('filesystem'))).toBe(true);
			await scene.expectArrived(scene.taskIds);
		}, 180_000);

		test('Notify a Trigger, by hand, finds the trigger of its own workflow once that is published', async () => {
			const { client, collector } = scene;
			const trigger = scene.trigger();
			const orders = [
				manualTrigger(),
				prompts('Prompt', [{}, {}]),
				scene.image({ completion: 'trigger' }),
			];
			const { id } = await client.createWorkflow({
				name: 'Two lanes',
				...lanes(orders, [trigger, collector.node()]),
			});
			const order = async () => await client.waitForExecution(await client.run(id));
			expect(tell(await order())).toContain('No active Media Generation Trigger was found');
			expect(scene.tasks).toEqual([]);

			await client.publish(id, [client.webhookPath(trigger, 'callback')]);
			const taskIds = itemsOf(await order()).map(({ taskId }) => String(taskId));
			expect(taskIds).toHaveLength(2);
			await scene.expectArrived(taskIds);
		});
	},
);
