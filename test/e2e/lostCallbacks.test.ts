import type { IDataObject } from 'n8n-workflow';

import { hasEnded, until } from '../n8n/client';
import { prompts } from './nodes';
import { atTheSameTime, errorOf, itemsOf, type Run } from './run';
import { openScene } from './scene';

/** What is made up for where callbacks are lost and the run that notifies a trigger does not simply end. */

const scene = openScene({ clears: false });
let callbackUrl: string;
beforeAll(async () => {
	scene.service.configure({ callbackLost: true });
	({ url: callbackUrl } = await scene.publish());
});

const story = atTheSameTime(test, 500);

const MINUTE = 60_000;

/** Starts a run that creates a task for each object of switches, one after the other. */
async function start(name: string, switches: IDataObject[], timeouts: number[] = []) {
	const fields = switches.map((_, index) => ({ timeout: timeouts[index] ?? 86_400 }));
	const options = { timeout: '={{ $json.timeout }}', maxInFlight: 1 };
	const order = scene.image({ completion: 'trigger', callbackUrl, options });
	return await scene.start(name, prompts(name, switches, fields), order);
}

const created = async (run: Run, count: number) =>
	await until(`${count} tasks`, MINUTE, () => run.tasks.length >= count);

const refusedFor = (seconds: number) => ({
	createStatus: { status: 429, times: 1, retryAfter: seconds },
});

story('what a run had created when it was stopped', async () => {
	const run = await start('Stopped', [{ latencyMs: 5_000 }, refusedFor(600)]);
	await created(run, 1);
	await run.stop();
	await scene.arrived(run.taskIds[0]);
	expect(run.tasks).toHaveLength(1);
	expect((await run.now()).status).toBe('canceled');
});

story('the first tasks of a batch, while others are still to be created', async () => {
	const later = { latencyMs: 5_000, ...refusedFor(360) };
	const run = await start('Long', [{ latencyMs: 5_000 }, later]);
	await created(run, 1);
	await scene.arrived(run.taskIds[0]);
	expect(run.tasks).toHaveLength(1);
	await run.stop();
});

story('a task that was given up while another one was waited for is named at the end', async () => {
	const switches = [{ latencyMs: 3_000_000 }, { latencyMs: 9_000 }];
	const run = await start('Given up', switches, [5, 600]);
	await created(run, 2);
	const [givenUp, late] = run.taskIds;
	await scene.arrived(late);
	await until('the looks to end', 2 * MINUTE, async () =>
		(await run.others()).every(({ status }) => hasEnded(status)),
	);
	const errors = (await run.others()).filter(({ status }) => status === 'error');
	expect(errors).toHaveLength(1);
	const look = await scene.client.getExecution(errors[0]?.id ?? '');
	expect(JSON.stringify(errorOf(look))).toContain(givenUp);
	expect(itemsOf(await run.now())).toHaveLength(2);
});
