import { readFileSync } from 'node:fs';
import type { IDataObject } from 'n8n-workflow';

import { outputItems, until } from '../n8n/client';
import { isLikeN8n3 } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { Collector } from './collector';
import { needing } from './needs';
import { Stage } from './stage';

/**
 * n8n dies in the few milliseconds in which a wait has ended and its run does not go on yet. A rule in the database
 * holds n8n up there: it refuses what n8n writes.
 */

let stage: Stage;
let collector: Collector;

const MINUTE = 60_000;

beforeAll(async () => {
	stage = await Stage.open();
	collector = await Collector.open();
}, 900_000);
afterAll(async () => {
	collector?.close();
	await stage?.close();
});

/** A suspended run of two tasks without a callback, with the executions that wait for it. */
async function suspendedRun() {
	const silent: IDataObject = { latencyMs: 2_000, callbackLost: true };
	const run = await stage.startImages([silent, silent], AT_ONCE, { after: [collector.node()] });
	const { workflowId } = await stage.client.waitForSuspension(run);
	const all = await stage.client.listExecutions({ workflowId });
	const [checker = '', supervisor = ''] = all.map(({ id }) => id).filter((id) => id !== run);
	return { run, checker, supervisor };
}

const statusOf = async (id: string) =>
	(await stage.database.rows(`select status from execution_entity where id = ${id}`))[0]?.status;

/** From now on n8n cannot write something. */
const refuse = async (name: string, table: string, when: string) =>
	await stage.database.refuse(name, `before update on ${table}`, when, 'refused');

needing('endOfSubExecutions', 'The supervisor').test(
	'n8n dies between the end of a wait and the run that it belongs to, or while the supervisor works',
	async () => {
		const between = await suspendedRun();
		const working = await suspendedRun();
		// Neither run goes on, and the second supervisor does not come to its end.
		await refuse('runs', 'execution_data', `old."executionId" in (${between.run}, ${working.run})`);
		await refuse(
			'supervisors',
			'execution_entity',
			`old.id = ${working.supervisor} and old.status = 'running' and new.status <> 'running'`,
		);
		await until('the waits to end', 3 * MINUTE, async () => {
			const states = await Promise.all(
				[between.supervisor, working.checker, working.supervisor].map(statusOf),
			);
			return states.join() === 'success,success,running';
		});
		await stage.kill();
		await stage.database.forget('runs', 'supervisors');
		await stage.restart();

		// n8n looks once a minute for runs whose wait has ended, so the first comes out complete.
		const first = await stage.client.waitForExecution(between.run, 3 * MINUTE);
		expect(first.status).toBe('success');
		const states = outputItems(first, 'Media').map(({ json }) => json.state);
		expect(states).toEqual(['SUCCESS', 'SUCCESS']);

		const second = await stage.client.waitForExecution(working.run, 3 * MINUTE);
		expect(second.status).toBe('success');
		const items = outputItems(second, 'Media').map(({ json }) => json);
		// In queue mode n8n may put an item of its own there; then the tasks are named in the log alone.
		const isArtificial = isLikeN8n3() && items[0]?.isArtificialRecoveredEventItem === true;
		// Else it knows what the supervisor last put out: the tasks, and that they were not waited for.
		expect(items.map(({ state, timedOut }) => [state, timedOut])).toEqual(
			isArtificial
				? [[undefined, undefined]]
				: [
						['PENDING', true],
						['PENDING', true],
					],
		);
		const log = readFileSync(stage.runner.logFile, 'utf8');
		const created = new RegExp(`created task (\\S+) \\(execution ${working.run}\\b`, 'g');
		const named = isArtificial
			? [...log.matchAll(created)].map(([, taskId = '']) => taskId)
			: items.map(({ taskId }) => String(taskId));
		expect(named.every((taskId) => stage.service.tasks.has(taskId))).toBe(true);
		expect(new Set(named).size).toBe(2);
		expect(stage.service.tasks.size).toBe(4);
	},
	900_000,
);
