import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { INode } from 'n8n-workflow';

import { until } from '../n8n/client';
import { SqliteDatabase } from './database';
import { openScene, type Published } from './scene';

/** What becomes of the trigger's memory when a workflow is retried, changed, copied, switched off or deleted. */

const scene = openScene({ clears: false });
beforeEach(() => {
	// The tasks stay: their callbacks come again at the end.
	scene.service.resetSettings();
	scene.collector.reset();
});

/** What was delivered so far. */
const delivered: Array<{ target: Published; taskId: string }> = [];

/** Delivers the callback of each task, one after the other, and waits until n8n is through with them. */
async function deliverAll(target: Published, tasks: string[]) {
	for (const taskId of tasks) {
		// As real senders do: while n8n takes a changed workflow into production it answers 404, or 500.
		await untilAnswer(200, target, taskId);
		delivered.push({ target, taskId });
	}
	for (const { id } of await executionsOf(target)) await scene.client.waitForExecution(id);
}

const untilAnswer = async (status: number, { address }: Published, taskId: string) =>
	await until(`the answer ${status}`, 30_000, async () => {
		if ((await scene.deliver(address, taskId)) === status) return true;
		await sleep(100);
		return false;
	});

/** The executions of a workflow, the latest first. */
const executionsOf = async ({ id: workflowId }: Published) =>
	await scene.client.listExecutions({ workflowId });

async function expectRetried(target: Published): Promise<void> {
	const { client } = scene;
	const [{ id = '' } = {}] = await executionsOf(target);
	expect((await client.waitForExecution(id)).status).toBe('error');
	const retried = await client.waitForExecution(await client.retryExecution(id));
	expect(retried.status).toBe('success');
}

const rowsOf = async ({ id }: Published) =>
	await scene.stage.database.rows(
		`select context, value from processed_data where "workflowId" = '${id}'`,
	);

test('a workflow that failed behind the trigger runs again when it is retried, and the callback starts nothing more', async () => {
	const { collector } = scene;
	const target = await scene.publish();
	const [taskId = ''] = scene.stage.finishedTasks(1);
	collector.failures = 1;
	await deliverAll(target, [taskId]);
	expect(collector.seen).toEqual([]);

	await expectRetried(target);
	expect(collector.seen).toEqual([taskId]);
	await deliverAll(target, [taskId]);
	expect(collector.seen).toEqual([taskId]);
});

test('a trigger that could not download the results runs again when it is retried', async () => {
	const { collector, service } = scene;
	const target = await scene.publish(scene.trigger({ options: { downloadResults: true } }));
	const [taskId = ''] = scene.stage.finishedTasks(1);
	service.configure({ mediaStatus: 404 });
	await deliverAll(target, [taskId]);
	expect(collector.seen).toEqual([]);

	service.resetSettings();
	await expectRetried(target);
	expect(collector.seen).toEqual([taskId]);
});

test('a trigger that is renamed and moved on the canvas remembers its tasks', async () => {
	const target = await scene.publish();
	const [before = '', after = ''] = scene.stage.finishedTasks(2);
	await deliverAll(target, [before]);

	const moved: INode = { ...target.trigger, name: 'Task is done', position: [400, 200] };
	const { address } = await scene.publish(moved, { id: target.id });
	expect(address).toBe(target.address);
	await deliverAll(target, [before, after]);
	expect(scene.collector.seen).toEqual([before, after]);
});

test('a workflow that is switched off answers 404, and remembers its tasks when it is on again', async () => {
	const { client } = scene;
	const target = await scene.publish();
	const [before = '', meanwhile = ''] = scene.stage.finishedTasks(2);
	await deliverAll(target, [before]);

	await client.unpublish(target.id);
	// n8n takes it out of production some time after it has answered.
	await untilAnswer(404, target, before);
	// The sender of a callback that is answered so delivers it again.
	expect(await scene.deliver(target.address, meanwhile)).toBe(404);
	await client.publish(target.id, [target.path]);
	await deliverAll(target, [before, meanwhile]);
	expect(scene.collector.seen).toEqual([before, meanwhile]);
});

test('a copy of a workflow has an address and a memory of its own', async () => {
	const original = await scene.publish();
	// A workflow that is imported from a file keeps the ids of its nodes.
	const copy = await scene.publish({ ...original.trigger, webhookId: crypto.randomUUID() });
	const [taskId = ''] = scene.stage.finishedTasks(1);
	for (const target of [original, copy, original, copy]) await deliverAll(target, [taskId]);
	expect(scene.collector.seen).toEqual([taskId, taskId]);
});

test('whatever was delivered before a power cut starts nothing after it', async () => {
	await scene.stage.killAndRestart();
	for (const { target, taskId } of [...delivered]) {
		await scene.client.waitForWebhook(target.path);
		await deliverAll(target, [taskId]);
	}
	expect(scene.collector.seen).toEqual([]);
});

test('the documented statement clears the rows of old tasks alone', async () => {
	const guide = readFileSync(join(__dirname, '../../docs/modes.md'), 'utf8');
	const [onPostgres = '', onSqlite = ''] = guide.match(/^DELETE FROM processed_data .*;$/gm) ?? [];
	const target = await scene.publish();
	await deliverAll(target, scene.stage.finishedTasks(3));
	const [old] = await rowsOf(target);
	const { database } = scene.stage;
	const longAgo = new Date(Date.now() - 31 * 24 * 3_600_000).toISOString();
	await database.execute(
		`update processed_data set "createdAt" = '${longAgo}' where context = '${old?.context}'`,
	);
	await database.execute(database instanceof SqliteDatabase ? onSqlite : onPostgres);
	const contexts = (await rowsOf(target)).map(({ context }) => context);
	expect(contexts).toHaveLength(2);
	expect(contexts).not.toContain(old?.context);
});

test('each task is one row, which goes when the workflow is deleted', async () => {
	const target = await scene.publish();
	const tasks = scene.stage.finishedTasks(3);
	await deliverAll(target, [...tasks, ...tasks]);
	const rows = await rowsOf(target);
	const ofTheTrigger = new RegExp(`^n:${target.trigger.id}:[0-9a-f]{32}$`);
	expect(rows.map(({ context }) => context)).toEqual(
		tasks.map(() => expect.stringMatching(ofTheTrigger)),
	);
	await scene.client.deleteWorkflow(target.id);
	expect(await rowsOf(target)).toEqual([]);
});
