import type { IDataObject } from 'n8n-workflow';

import { until } from '../n8n/client';
import { installN8n } from '../n8n/install';
import { installPackage, packPackage } from '../n8n/package';
import { ifAsked } from './needs';
import { prompts } from './nodes';
import { type Run, statesOf, succeeded } from './run';
import { openScene } from './scene';
import { Stage } from './stage';

/**
 * The package is installed anew while executions wait, on one user folder. It takes some minutes, so it runs where
 * LONG_TESTS is set: `LONG_TESTS=1 npm run test:e2e -- test/e2e/update.test.ts`.
 */
const { describe } = ifAsked('Updates');

const COUNT = 20;
const MINUTE = 60_000;

describe('the package is installed anew while executions wait', () => {
	const scene = openScene({ open: async () => await Stage.openOn(await installN8n()) });

	test(
		'nothing is lost, nothing comes twice',
		async () => {
			const { client, collector, service, stage } = scene;
			service.configure({ latencyMs: 3_600_000 });
			const lane = await scene.publish();
			const asleep: Run[] = [];
			for (let count = 0; count < COUNT; count++) {
				const order = { name: `Run${count}`, options: { suspendAfter: 0 } };
				asleep.push(await scene.startImages([{}], { ...order, after: [collector.node()] }));
			}
			// The first sleep comes before the first create.
			for (const run of asleep) await run.asleep(2);
			const many = prompts('Triggered', Array<IDataObject>(COUNT).fill({}));
			const options = { maxInFlight: COUNT };
			const left = { completion: 'trigger', callbackUrl: lane.url, options };
			succeeded(await scene.run('Leaves its tasks to a trigger', many, scene.image(left)));
			const { taskIds } = scene;
			expect(taskIds).toHaveLength(2 * COUNT);
			const triggered = scene.tasks.filter(({ webhookUrl }) => webhookUrl !== undefined);
			expect(triggered).toHaveLength(COUNT);

			await stage.stop();
			await installPackage(stage.userFolder, (await packPackage()).tarball);
			await stage.restart();
			await client.login();
			await client.waitForWebhook(lane.path);
			for (const taskId of taskIds) service.complete(taskId);
			// Senders deliver a callback more than once.
			for (const { taskId } of triggered) await service.deliverCallback(taskId, { copies: 2 });

			await scene.expectArrived(taskIds, 4 * MINUTE);
			for (const run of asleep) {
				expect(statesOf(succeeded(await run.end(3 * MINUTE)))).toEqual(['SUCCESS']);
			}
			await until('the trigger to be done', MINUTE, async () => {
				const list = await client.listExecutions({ workflowId: lane.id });
				return list.every(({ status }) => status === 'success');
			});
			expect(scene.creates).toHaveLength(2 * COUNT);
			console.log(`${COUNT} runs that slept and ${COUNT} triggered tasks came out once`);
		},
		20 * MINUTE,
	);
});
