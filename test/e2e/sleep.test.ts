import type { IDataObject } from 'n8n-workflow';

import { until } from '../n8n/client';
import { itemsOf, promptOf, Run, statesOf, succeeded } from './run';
import { openScene } from './scene';

/** A run that sleeps, and what n8n keeps of it if it is killed or stopped. */

const scene = openScene();

const MINUTE = 60_000;

/** The first turn creates some of the tasks, and a later one the others. */
const TURNS = { suspendAfter: 0.05, maxInFlight: 2 };

const start = async (name: string, count: number, options: IDataObject = TURNS) =>
	await scene.startImages(Array<IDataObject>(count).fill({ latencyMs: 2_500 }), { name, options });

const prompts = (name: string, count: number) =>
	Array.from({ length: count }, (_, index) => `${name} ${index}`);

async function killInATurn(name: string, count: number): Promise<Run> {
	const run = await (await start(name, count)).suspended();
	const before = run.tasks.length;
	await until('a later turn', MINUTE, () => run.tasks.length > before + 1);
	await scene.stage.killAndRestart();
	await until('n8n to notice', MINUTE, async () => (await run.now()).status === 'crashed');
	return run;
}

test('a batch is created turn by turn, in the order of the items, in one execution', async () => {
	const run = await start('Turns', 12);
	await run.suspended();
	expect(run.tasks.length).toBeLessThan(12);
	const execution = succeeded(await run.end());
	expect(itemsOf(execution).map(promptOf)).toEqual(prompts('Turns', 12));
	expect(statesOf(execution)).toEqual(Array(12).fill('SUCCESS'));
	expect(run.tasks.map(({ record }) => promptOf(record))).toEqual(prompts('Turns', 12));
	expect(await run.others()).toEqual([]);
}, 300_000);

test('the retry of a run that was killed in a turn pays for nothing twice, and names what is in doubt', async () => {
	const run = await killInATurn('Killed', 40);
	const created = run.tasks.length;
	const execution = await run.retry();
	console.log(created, run.tasks.length, JSON.stringify(itemsOf(execution).map(({ state, error }) => [state, String(error).slice(0, 60)])));
	const items = itemsOf(execution);
	const seen = new Set<string>();
	for (const { record } of run.tasks) {
		expect(seen).not.toContain(promptOf(record));
		seen.add(promptOf(record));
	}
	expect(items.map(promptOf)).toEqual(prompts('Killed', 40));
}, 600_000);

test('a run that is stopped asleep goes on with its retry', async () => {
	const run = await (await start('Asleep', 12)).suspended();
	await run.stop();
	const stopped = await run.now();
	console.log('stopped asleep', stopped.status, JSON.stringify(stopped.data.waitTill), JSON.stringify(stopped.data.resultData.error), stopped.data.executionData?.nodeExecutionStack.length, JSON.stringify(stopped.data.executionData?.contextData)?.slice(0, 600));
	const execution = await run.retry();
	console.log(JSON.stringify(itemsOf(execution).map(({ state, error }) => [state, String(error).slice(0, 60)])));
}, 600_000);

test('a run that is stopped in a later turn', async () => {
	const run = await (await start('InTurn', 40)).suspended();
	const before = run.tasks.length;
	await until('a later turn', MINUTE, () => run.tasks.length > before + 1);
	await run.stop();
	await until('the end', MINUTE, async () => (await run.now()).status === 'canceled');
	const stopped = await run.now();
	console.log('stopped in turn', stopped.status, JSON.stringify(stopped.data.waitTill), JSON.stringify(stopped.data.resultData.error), stopped.data.executionData?.nodeExecutionStack.length, JSON.stringify(stopped.data.executionData?.contextData)?.slice(0, 300));
	await new Promise((resolve) => setTimeout(resolve, 14_000));
	const again = await run.now();
	console.log('later', again.status, JSON.stringify(again.data.executionData?.contextData)?.slice(0, 300));
	console.log(JSON.stringify((await run.executions()).map(({ id, status }) => [id, status])));
}, 600_000);
