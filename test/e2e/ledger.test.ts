import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { INode } from 'n8n-workflow';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackUrl';
import { Collector } from './collector';
import { SqliteDatabase } from './database';
import { deliver, inARow, Stage } from './stage';

/** What becomes of the trigger's memory when a workflow is retried, changed, copied, switched off or deleted. */

let stage: Stage;
let collector: Collector;
beforeAll(async () => {
	stage = await Stage.open();
	collector = await Collector.open();
}, 900_000);
afterAll(async () => {
	collector?.close();
	await stage?.close();
});
beforeEach(() => {
	// The tasks stay: their callbacks come again at the end.
	stage.service.resetSettings();
	collector.reset();
});

/** A published workflow of a trigger and the collector behind it. */
async function publish(trigger: INode, id?: string) {
	const { client } = stage;
	const nodes = inARow(trigger, collector.node());
	const workflow = id
		? await client.updateWorkflow(id, nodes)
		: await client.createWorkflow({ name: trigger.name, ...nodes });
	const path = client.webhookPath(trigger, 'callback');
	await client.publish(workflow.id, [path]);
	return {
		id: workflow.id,
		path,
		address: callbackAddress(stage.webhookUrl + path, stage.service.apiKey),
	};
}

const newTrigger = (parameters = {}, more: Partial<INode> = {}) =>
	stage.mediaNode('mediaGenerationTrigger', 'Finished', parameters, more);

type Target = Awaited<ReturnType<typeof publish>>;

/** What was delivered so far. */
const delivered: Array<{ target: Target; taskId: string }> = [];

/** Delivers the callback of each task, one after the other, and waits until n8n is through with them. */
async function deliverAll(target: Target, tasks: string[]) {
	for (const taskId of tasks) {
		expect(await deliverUntilTaken(target.address, taskId)).toBe(200);
		delivered.push({ target, taskId });
	}
	const { executions } = await latest(target);
	for (const { id } of executions) await stage.client.waitForExecution(id);
}

/** As real senders do: while n8n takes a changed workflow into production it answers 404, or 500. */
async function deliverUntilTaken(address: string, taskId: string): Promise<number> {
	const giveUp = Date.now() + 30_000;
	for (;;) {
		const { status } = await deliver(address, { taskId });
		if (status === 200 || Date.now() > giveUp) return status;
		await sleep(250);
	}
}

/** The executions of a workflow, the latest first. */
async function latest({ id: workflowId }: Target) {
	const executions = await stage.client.listExecutions({ workflowId });
	return { executions, id: executions[0]?.id ?? '' };
}

async function retryLatest(target: Target) {
	const { client } = stage;
	const { id } = await latest(target);
	expect((await client.waitForExecution(id)).status).toBe('error');
	return await client.waitForExecution(await client.retryExecution(id));
}

const rowsOf = async (workflowId: string) =>
	await stage.database.rows(
		`select context, value from processed_data where "workflowId" = '${workflowId}'`,
	);

test('a workflow that failed behind the trigger runs again when it is retried, and the callback starts nothing more', async () => {
	const target = await publish(newTrigger());
	const [taskId = ''] = stage.finishedTasks(1);
	collector.failures = 1;
	await deliverAll(target, [taskId]);
	expect(collector.seen).toEqual([]);

	expect((await retryLatest(target)).status).toBe('success');
	expect(collector.seen).toEqual([taskId]);
	await deliverAll(target, [taskId]);
	expect(collector.seen).toEqual([taskId]);
});

test('a trigger that could not download the results runs again when it is retried', async () => {
	const target = await publish(newTrigger({ options: { downloadResults: true } }));
	const [taskId = ''] = stage.finishedTasks(1);
	stage.service.configure({ mediaStatus: 404 });
	await deliverAll(target, [taskId]);
	expect(collector.seen).toEqual([]);

	stage.service.resetSettings();
	expect((await retryLatest(target)).status).toBe('success');
	expect(collector.seen).toEqual([taskId]);
});

test('a trigger that is renamed and moved on the canvas remembers its tasks', async () => {
	const trigger = newTrigger();
	const target = await publish(trigger);
	const [before = '', after = ''] = stage.finishedTasks(2);
	await deliverAll(target, [before]);

	const moved: INode = { ...trigger, name: 'Task is done', position: [400, 200] };
	expect(await publish(moved, target.id)).toEqual(target);
	await deliverAll(target, [before, after]);
	expect(collector.seen).toEqual([before, after]);
});

test('a workflow that is switched off answers 404, and remembers its tasks when it is on again', async () => {
	const { client } = stage;
	const target = await publish(newTrigger());
	const [before = '', meanwhile = ''] = stage.finishedTasks(2);
	await deliverAll(target, [before]);

	await client.unpublish(target.id);
	// n8n takes it out of production some time after it has answered.
	const giveUp = Date.now() + 30_000;
	while ((await deliver(target.address, { taskId: before })).status !== 404) {
		expect(Date.now()).toBeLessThan(giveUp);
		await sleep(250);
	}
	// The sender of a callback that is answered so delivers it again.
	expect((await deliver(target.address, { taskId: meanwhile })).status).toBe(404);
	await client.publish(target.id, [target.path]);
	await deliverAll(target, [before, meanwhile]);
	expect(collector.seen).toEqual([before, meanwhile]);
});

test('a copy of a workflow has an address and a memory of its own', async () => {
	const trigger = newTrigger();
	const original = await publish(trigger);
	// A workflow that is imported from a file keeps the ids of its nodes.
	const copy = await publish({ ...trigger, webhookId: crypto.randomUUID() });
	const [taskId = ''] = stage.finishedTasks(1);
	for (const target of [original, copy, original, copy]) await deliverAll(target, [taskId]);
	expect(collector.seen).toEqual([taskId, taskId]);
});

test('whatever was delivered before a power cut starts nothing after it', async () => {
	await stage.killAndRestart();
	for (const { target, taskId } of [...delivered]) {
		await stage.client.waitForWebhook(target.path);
		await deliverAll(target, [taskId]);
	}
	expect(collector.seen).toEqual([]);
});

test('the documented statement clears the rows of old tasks alone', async () => {
	const guide = readFileSync(join(__dirname, '../../docs/modes.md'), 'utf8');
	const [onPostgres = '', onSqlite = ''] = guide.match(/^DELETE FROM processed_data .*;$/gm) ?? [];
	const target = await publish(newTrigger());
	await deliverAll(target, stage.finishedTasks(3));
	const [old] = await rowsOf(target.id);
	const { database } = stage;
	const longAgo = new Date(Date.now() - 31 * 24 * 3_600_000).toISOString();
	await database.execute(
		`update processed_data set "createdAt" = '${longAgo}' where context = '${old?.context}'`,
	);
	await database.execute(database instanceof SqliteDatabase ? onSqlite : onPostgres);
	const contexts = (await rowsOf(target.id)).map(({ context }) => context);
	expect(contexts).toHaveLength(2);
	expect(contexts).not.toContain(old?.context);
});

test('each task is one row, which goes when the workflow is deleted', async () => {
	const trigger = newTrigger();
	const target = await publish(trigger);
	const tasks = stage.finishedTasks(3);
	await deliverAll(target, [...tasks, ...tasks]);
	const rows = await rowsOf(target.id);
	expect(rows.map(({ context }) => context)).toEqual(
		tasks.map(() => expect.stringMatching(new RegExp(`^n:${trigger.id}:[0-9a-f]{32}$`))),
	);
	await stage.client.deleteWorkflow(target.id);
	expect(await rowsOf(target.id)).toEqual([]);
});
