import type { IDataObject } from 'n8n-workflow';

import { until } from '../n8n/client';
import { isLikeN8n3 } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { itemsOf, statesOf, succeeded } from './run';
import { openScene } from './scene';

/**
 * n8n dies in the few milliseconds in which a wait has ended and its run does not go on yet. A rule in the database
 * holds n8n up there: it refuses what n8n writes.
 */

const scene = openScene();

const MINUTE = 60_000;

/** A suspended run of two tasks without a callback, with the executions that wait for it. */
async function suspendedRun() {
	const silent: IDataObject = { latencyMs: 2_000, callbackLost: true };
	const after = [scene.collector.node()];
	const run = await scene.startImages([silent, silent], { options: AT_ONCE, after });
	const [checker, supervisor] = await (await run.suspended()).others();
	return { run, checker: checker?.id ?? '', supervisor: supervisor?.id ?? '' };
}

async function statusOf(id: string) {
	const { database } = scene.stage;
	const [row] = await database.rows(`select status from execution_entity where id = ${id}`);
	return row?.status;
}

/** From now on n8n cannot write something. */
const refuse = async (name: string, table: string, when: string) =>
	await scene.stage.database.refuse(name, `before update on ${table}`, when, 'refused');

test('n8n dies between the end of a wait and the run that it belongs to, or while the supervisor works', async () => {
	const { service, stage } = scene;
	const between = await suspendedRun();
	const working = await suspendedRun();
	// Neither run goes on, and the second supervisor does not come to its end.
	const ids = `${between.run.id}, ${working.run.id}`;
	await refuse('runs', 'execution_data', `old."executionId" in (${ids})`);
	await refuse(
		'supervisors',
		'execution_entity',
		`old.id = ${working.supervisor} and old.status = 'running' and new.status <> 'running'`,
	);
	await until('the waits to end', 3 * MINUTE, async () => {
		const waits = [between.supervisor, working.checker, working.supervisor];
		return (await Promise.all(waits.map(statusOf))).join() === 'success,success,running';
	});
	await stage.kill();
	await stage.database.forget('runs', 'supervisors');
	await stage.restart();

	// n8n looks once a minute for runs whose wait has ended, so the first comes out complete.
	expect(statesOf(succeeded(await between.run.end()))).toEqual(['SUCCESS', 'SUCCESS']);

	const items = itemsOf(succeeded(await working.run.end()));
	// In queue mode n8n may put an item of its own there; then the tasks are named in the log alone.
	const isArtificial = isLikeN8n3() && items[0]?.isArtificialRecoveredEventItem === true;
	// Else it knows what the supervisor last put out: the tasks, and that they were not waited for.
	expect(items.map(({ state, timedOut }) => [state, timedOut])).toEqual(
		isArtificial ? [[undefined, undefined]] : Array(2).fill(['PENDING', true]),
	);
	const named = isArtificial
		? scene.createdByLog(working.run.id)
		: items.map(({ taskId }) => String(taskId));
	expect(named.every((taskId) => service.tasks.has(taskId))).toBe(true);
	expect(new Set(named).size).toBe(2);
	expect(scene.tasks).toHaveLength(4);
}, 900_000);
