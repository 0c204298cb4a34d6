import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { isLikeN8n3, shortMinute } from '../n8n/settings';
import { inARow, manualTrigger, node } from './nodes';
import { itemsOf, succeeded } from './run';
import { openScene } from './scene';

/**
 * What the model of n8n has from n8n itself, where no other test on a real n8n would notice that n8n has changed: see
 * test/workflow/n8n/README.md.
 */

const SECOND = 1_000;
const MINUTE_HERE = 6 * SECOND;

const scene = openScene({
	env: { ...shortMinute(MINUTE_HERE), N8N_CUSTOM_EXTENSIONS: join(__dirname, 'trial') },
});

const trial = (name: string, parameters: IDataObject = {}) =>
	node('CUSTOM.trial', name, parameters);

/** n8n holds in memory what waits for less than 65 s. */
const wait = () => node('n8n-nodes-base.wait', 'Wait', { amount: 2, unit: 'minutes' }, 1.1);

const HOUR_SECONDS = 3_600;

test('a retry that has slept: one process forgets what it retries, a worker does not; both say that the whole time limit is left', async () => {
	const nodes = [trial('First', { failsFirst: true }), wait(), trial('Second')];
	const run = await scene.startWorkflow({
		name: 'Retried',
		...inARow(manualTrigger(), ...nodes),
		settings: { executionTimeout: HOUR_SECONDS },
	});
	expect((await run.end()).status).toBe('error');
	const retry = succeeded(await run.retry());
	const [first] = itemsOf(retry, 'First');
	const [second] = itemsOf(retry, 'Second');
	expect(first).toMatchObject({ retryOf: run.id });
	expect(second).toMatchObject({ retryOf: isLikeN8n3() ? run.id : null });
	expect(Number(second?.now) - Number(first?.now)).toBeGreaterThan(MINUTE_HERE);
	for (const said of [first, second]) {
		expect(Number(said?.timeLeftMs)).toBeGreaterThan(HOUR_SECONDS * SECOND - 2 * SECOND);
	}
});

test('what is due before n8n looks is woken by the look, at one second of the minute', async () => {
	const runs = [];
	for (let nth = 0; nth < 5; nth++) {
		const nodes = [trial('Sleeps', { sleepMs: 500 }), trial('Wakes')];
		runs.push(await scene.start(`Sleeper ${nth}`, ...nodes));
		await sleep(1.3 * SECOND);
	}
	const woken = await Promise.all(
		runs.map(async (run) => Number(itemsOf(succeeded(await run.end()), 'Wakes')[0]?.now)),
	);
	// They were due at moments that are spread over a whole minute. A busy machine may start one of them late.
	const isAtOnce = (one: number, other: number) => {
		const apart = Math.abs(one - other) % MINUTE_HERE;
		return Math.min(apart, MINUTE_HERE - apart) < SECOND;
	};
	const together = woken.map((one) => woken.filter((other) => isAtOnce(one, other)).length);
	expect(Math.max(...together)).toBeGreaterThanOrEqual(woken.length - 1);
});

test('an execution that n8n cannot store when it goes to sleep is running for ever', async () => {
	const { database } = scene.stage;
	const nodes = () => [trial('Sleeps', { holdMs: 2 * SECOND, sleepMs: 500 }), trial('Wakes')];
	const run = await scene.start('Unstored', ...nodes());
	await sleep(500);
	const [event, when] = ['before update on execution_entity', "old.status = 'running'"];
	await database.refuse('no_sleep', event, when, 'database away');
	await sleep(3 * SECOND);
	await database.forget('no_sleep');
	succeeded(await (await scene.start('Later', ...nodes())).end());
	await sleep(2 * MINUTE_HERE);
	expect((await run.now()).status).toBe('running');
});
