import { shortMinute } from '../n8n/settings';
import { itemsOf, statesOf, succeeded } from './run';
import { AT_ONCE, openScene } from './scene';

/** An n8n whose minute is a minute, and that has woken a run late: so it knows when it looks for runs to wake. */

const MINUTE = 60_000;
const scene = openScene({ env: shortMinute(MINUTE), clears: false });

test(
	'a picture of 90 s is late by at most ten seconds, and was stored meanwhile',
	async () => {
		const warm = await scene.startImages([{ latencyMs: 500 }], { name: 'Warm', options: AT_ONCE });
		expect(statesOf(succeeded(await warm.end(3 * MINUTE)))).toEqual(['SUCCESS']);
		const from = Date.now();
		const switches = [{ latencyMs: 90_000 }];
		const runs = await Promise.all(
			['One', 'Two'].map(
				async (name) => await scene.startImages(switches, { name, byWebhook: true }),
			),
		);
		const ends = await Promise.all(runs.map(async (run) => await run.end(4 * MINUTE)));
		const tookMs = Date.now() - from;
		console.log(
			`A picture of 90 s took ${tookMs} ms, with ${runs.map(({ sleeps }) => sleeps)} sleeps`,
		);
		for (const execution of ends) expect(itemsOf(succeeded(execution))).toHaveLength(1);
		for (const { sleeps } of runs) expect(sleeps).toBeGreaterThan(0);
		expect(tookMs).toBeLessThan(102_000);
	},
	8 * MINUTE,
);
