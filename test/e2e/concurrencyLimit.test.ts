import { setTimeout as sleep } from 'node:timers/promises';

import { until } from '../n8n/until';
import { inARow, webhook } from './nodes';
import { openScene } from './scene';

const scene = openScene({ env: { N8N_CONCURRENCY_PRODUCTION_LIMIT: '2' } });

test('triggers whose media host is in trouble hold no place of the concurrency limit', async () => {
	const { client, service, stage } = scene;
	const target = await scene.publish(scene.trigger({ options: { downloadResults: true } }));
	const tasks = stage.finishedTasks(2);
	service.configure({ mediaStatus: 503 });
	const asked = webhook('Asked', { responseMode: 'lastNode' });
	const definition = { name: 'Another workflow', ...inARow(asked, scene.collector.node()) };
	const { id } = await client.createWorkflow(definition);
	await client.publish(id, [`/webhook/${asked.webhookId}`]);
	const ask = async () =>
		(await fetch(`${stage.webhookUrl}/webhook/${asked.webhookId}`, { method: 'POST' })).status;

	for (const taskId of tasks) expect(await scene.deliver(target.address, taskId)).toBe(200);
	// While both of them try for the first time, they hold both places.
	const early = ask();
	expect(await Promise.race([early, sleep(3_000, 'no answer')])).toBe('no answer');
	await until('both executions to sleep', 120_000, async () => {
		const asleep = await client.listExecutions({ workflowId: target.id, status: ['waiting'] });
		return asleep.length === 2;
	});
	expect(scene.requests('media', 'GET').length).toBeGreaterThanOrEqual(2);

	expect(await early).toBe(200);
	expect(await ask()).toBe(200);
	expect(scene.collector.seen).toHaveLength(2);

	service.resetSettings();
	scene.collector.reset();
	await scene.expectArrived(tasks);
	// Each task has one execution, which slept and went on.
	expect(await client.listExecutions({ workflowId: target.id })).toHaveLength(2);
}, 400_000);
