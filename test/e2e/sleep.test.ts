import type { IDataObject } from 'n8n-workflow';

import { until } from '../n8n/client';
import { itemsOf, promptOf, type Run, statesOf, succeeded } from './run';
import { openScene } from './scene';

/** A run that sleeps, and what n8n keeps of it if it is killed or stopped. */

const scene = openScene();

const MINUTE = 60_000;

/** The first turn creates some of the tasks, and later ones the others. */
const TURNS = { suspendAfter: 0.05, maxInFlight: 2 };

const COUNT = 40;

const start = async (name: string, count: number, options: IDataObject = TURNS) =>
	await scene.startImages(Array<IDataObject>(count).fill({ latencyMs: 2_500 }), { name, options });

const prompts = (name: string, count: number) =>
	Array.from({ length: count }, (_, index) => `${name} ${index}`);

const sleeps = ({ id }: Run) =>
	scene.log.split(`asleep until`).filter((line) => line.includes(`(execution ${id},`)).length;

const asleep = async (run: Run) => await until('its sleep', MINUTE, () => sleeps(run) > 0);

/** In a turn that creates, and that has created a task. */
async function inALaterTurn(name: string): Promise<Run> {
	const run = await start(name, COUNT);
	await asleep(run);
	const before = run.tasks.length;
	await until('a later turn', MINUTE, () => run.tasks.length > before + 1);
	return run;
}

/** What came of the items of a run that a retry went on with. */
function expectOnce(run: Run, items: IDataObject[], name: string): void {
	expect(items.map(promptOf)).toEqual(prompts(name, COUNT));
	const paid = run.tasks.map(({ record }) => promptOf(record));
	expect(new Set(paid).size).toBe(paid.length);
	const doubtful = items.filter(({ error }) => String(error).startsWith('It is not known'));
	expect(doubtful.length).toBeGreaterThan(0);
	expect(doubtful.length).toBeLessThanOrEqual(25);
	const rest = items.filter((item) => !doubtful.includes(item));
	expect(new Set(rest.map(({ state }) => state))).toEqual(new Set(['SUCCESS']));
}

test('a batch is created turn by turn, in the order of the items, in one execution', async () => {
	const run = await start('Turns', 12);
	await asleep(run);
	expect(run.tasks.length).toBeLessThan(12);
	const execution = succeeded(await run.end());
	expect(itemsOf(execution).map(promptOf)).toEqual(prompts('Turns', 12));
	expect(statesOf(execution)).toEqual(Array(12).fill('SUCCESS'));
	expect(run.tasks.map(({ record }) => promptOf(record))).toEqual(prompts('Turns', 12));
	expect(await run.others()).toEqual([]);
}, 300_000);

test('the retry of a run that was killed in a turn pays for nothing twice, and names what is in doubt', async () => {
	const run = await inALaterTurn('Killed');
	await scene.stage.killAndRestart();
	await until('n8n to notice', 3 * MINUTE, async () => (await run.now()).status === 'crashed');
	expectOnce(run, itemsOf(succeeded(await run.retry())), 'Killed');
}, 600_000);

test('the retry of a run that was stopped in a turn does so, too; its tasks stand in an execution of their own', async () => {
	const run = await inALaterTurn('Stopped');
	await run.stop();
	await until('the record', MINUTE, async () => (await run.others()).length > 0);
	const [record] = await run.others();
	const left = await scene.client.getExecution(record?.id ?? '');
	const ids = itemsOf(left, 'Tasks of the stopped run').map(({ taskId }) => taskId);
	expect(ids).toEqual(run.taskIds);
	expectOnce(run, itemsOf(succeeded(await run.retry())), 'Stopped');
}, 600_000);

test('a run that is stopped asleep goes on with its retry, and nothing is in doubt', async () => {
	const run = await (await start('Asleep', 12, { ...TURNS, checkInterval: 10 })).suspended();
	await run.stop();
	const items = itemsOf(succeeded(await run.retry()));
	expect(items.map(({ state }) => state)).toEqual(Array(12).fill('SUCCESS'));
	expect(run.tasks).toHaveLength(12);
}, 600_000);
