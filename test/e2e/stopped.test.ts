import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { until } from '../n8n/client';
import { needing } from './needs';
import { call, called, inARow } from './nodes';
import { itemsOf, succeeded } from './run';
import { openScene } from './scene';

/** An execution that ends while its tasks go on. */

const scene = openScene();

test('a held run that is stopped reads no more, and leaves its task in the log and in the list of executions', async () => {
	const run = await scene.startImages([{ latencyMs: 3_600_000 }]);
	await until('the task', 30_000, () => scene.tasks.length > 0);
	await run.stop();
	expect((await run.end(30_000)).status).toBe('canceled');
	// n8n keeps nothing of what a stopped node says.
	await scene.logged(`without paying again: ${scene.taskIds[0]}`);
	await until('the record', 30_000, async () => (await run.others()).length > 0);
	const [record] = await run.others();
	const left = await scene.client.waitForExecution(record?.id ?? '');
	const prompt = expect.objectContaining({ prompt: 'Prompt 0' }) as object;
	expect(itemsOf(left, 'Tasks of the stopped run')).toMatchObject([
		{ taskId: scene.taskIds[0], state: 'PENDING', input: prompt },
	]);
	const before = scene.service.requests.length;
	await sleep(5000);
	expect(scene.service.requests).toHaveLength(before);
});

test('a run that is near its time limit is held, and its items leave before n8n cancels it', async () => {
	const settings = { executionTimeout: 10 };
	const node = { onError: 'continueRegularOutput' as const };
	const execution = await scene.runImages([{ latencyMs: 3_600_000 }], { settings, node });
	const [taskId] = scene.taskIds;
	expect(itemsOf(succeeded(execution))).toMatchObject([{ taskId, timedOut: true }]);
});

needing('storedStops', 'The stop of a caller').test(
	'an execution whose caller is stopped, of which n8n does not tell a sub-workflow, creates nothing more',
	async () => {
		const { client } = scene;
		const { id } = await client.createWorkflow({
			name: 'Called',
			...inARow(called(), ...scene.oneByOne()),
		});
		await client.publish(id, []);
		const { workflowId } = await scene.start('Caller', call(id));
		await scene.expectStopHeard(workflowId);
	},
);

test('an execution that is stopped while creates are under way names what was sent without an answer, and the task when the answer comes after all', async () => {
	const before = scene.log.length;
	const log = () => scene.log.slice(before);
	scene.service.configure({ createDelayMs: 30_000 });
	const started = await scene.startImages(Array<IDataObject>(8).fill({ latencyMs: 60_000 }));
	await until('the first create', 30_000, () => scene.creates.length > 0);
	await sleep(500);
	await started.stop();
	expect((await started.end()).status).toBe('canceled');
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
