import { until } from '../n8n/client';
import { needing } from './needs';
import { prompts } from './nodes';
import { openScene } from './scene';

/** Nobody is there. */
const DEAD = 'http://127.0.0.1:9';

const scene = openScene({ env: { WEBHOOK_URL: `${DEAD}/` }, clears: false });
const { test } = needing('deadAddress', 'An address that cannot be reached');

beforeAll(() => scene.service.configure({ callbackLost: true, latencyMs: 5_000 }));

const publish = async () =>
	await scene.publish(scene.trigger(), {
		orders: [prompts('Prompt', [{}]), scene.image({ completion: 'trigger' })],
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

test('an n8n that cannot reach its own public address knows which callbacks have come', async () => {
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
	// The one of the callback, and the one that looked, which delivers nothing that has started.
	expect(await others()).toHaveLength(2);
	expect(collector.seen).toEqual([taskId]);
}, 400_000);

test('a new public address holds after a restart of n8n, also for tasks that were created before', async () => {
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
}, 600_000);
