import type { IDataObject } from 'n8n-workflow';

import { until } from '../n8n/client';
import { NO_RUNNER, shortMinute } from '../n8n/settings';
import { inARow, manualTrigger, prompts } from './nodes';
import { inEditor, openEditor } from './editor';
import { itemsOf, statesOf, succeeded } from './run';
import { ifAsked } from './needs';
import { AT_ONCE, openScene } from './scene';
import { Stage } from './stage';

/**
 * An n8n whose minute is a minute, and that has woken a run late. These tests take a quarter of an hour, and run where
 * LONG_TESTS is set: `LONG_TESTS=1 npm run test:e2e -- e2e/warm`.
 */

const MINUTE = 60_000;
const GRACE_SECONDS = 90;
const env = {
	...NO_RUNNER,
	...shortMinute(MINUTE),
	N8N_GRACEFUL_SHUTDOWN_TIMEOUT: String(GRACE_SECONDS),
};
const { describe } = ifAsked('What takes minutes on a warm n8n');

describe('an n8n that knows its look', () => {
	const scene = openScene({ open: async () => await Stage.open({ env }), clears: false });

	beforeAll(async () => {
		const warm = await scene.startImages([{ latencyMs: 500 }], { name: 'Warm', options: AT_ONCE });
		expect(statesOf(succeeded(await warm.end(3 * MINUTE)))).toEqual(['SUCCESS']);
	}, 4 * MINUTE);

	inEditor('The picture in the editor').test(
		'a picture of 90 s that a person makes in the editor: the run stays awake, so the panel shows that the node is at work, and has the picture in time',
		async () => {
			const editor = await openEditor(scene.stage);
			try {
				const { id } = await scene.client.createWorkflow({
					name: 'Watched',
					...inARow(
						manualTrigger(),
						prompts('Watched', [{ latencyMs: 90_000 }]),
						scene.image({ downloadResults: true }),
					),
				});
				await editor.openWorkflow(id);
				await editor.openNode('Media');
				const from = Date.now();
				await editor.execute();
				const seen = new Set<string>();
				await until('the end of the run', 4 * MINUTE, async () => {
					const text = (await editor.output.innerText()).replaceAll(/\s+/g, ' ');
					if (!seen.has(text)) await editor.keep(`watched ${seen.size}`);
					seen.add(text);
					const [last] = await scene.client.listExecutions({ workflowId: id });
					return last?.status === 'success';
				});
				const tookMs = Date.now() - from;
				console.log([...seen, `${tookMs} ms`].join('\n'));
				expect([...seen].filter((text) => /looks again|Waiting for input/.test(text))).toEqual([]);
				expect(tookMs).toBeLessThan(100_000);
				await editor.showOutput('JSON');
				await editor.outputHas('SUCCESS');
				await editor.keep('watched at the end');
			} finally {
				await editor.close();
			}
		},
		8 * MINUTE,
	);

	test(
		'tasks of 45 to 200 s, alone and five at once, are late by at most ten seconds',
		async () => {
			const late = async (seconds: number, count: number) => {
				const switches = Array<IDataObject>(count).fill({ latencyMs: seconds * 1_000 });
				const name = `${count} of ${seconds} s`;
				const run = await scene.startImages(switches, { name, byWebhook: true });
				const { stoppedAt } = succeeded(await run.end(6 * MINUTE));
				const endsAt = run.tasks.map(({ createdAt }) => createdAt + seconds * 1_000);
				const lateMs = Date.parse(String(stoppedAt)) - Math.max(...endsAt);
				return { name, lateMs, sleeps: run.sleeps };
			};
			const all = await Promise.all(
				[45, 60, 90, 120, 200].flatMap((seconds) => [late(seconds, 1), late(seconds, 5)]),
			);
			console.log(all.map((each) => JSON.stringify(each)).join('\n'));
			expect(all.filter(({ lateMs }) => lateMs > 10_000)).toEqual([]);
		},
		8 * MINUTE,
	);

	test(
		'the second of two nodes lets out what it has before the time limit of the workflow, counted from the start',
		async () => {
			const options = { additionalInput: { simulate: { latencyMs: 400_000 } }, suspendAfter: 1 };
			const second = scene.image(
				{ prompt: 'Second 0', options },
				{ name: 'Second', onError: 'continueRegularOutput' },
			);
			const run = await scene.startImages([{ latencyMs: 75_000 }], {
				name: 'First',
				byWebhook: true,
				after: [second],
				settings: { executionTimeout: 240 },
			});
			const from = Date.now();
			const ended = succeeded(await run.end(6 * MINUTE));
			console.log(`Out after ${Date.now() - from} ms, ${run.sleeps} sleeps`);
			expect(run.sleeps).toBeGreaterThan(0);
			expect(itemsOf(ended, 'Second')).toMatchObject([{ timedOut: true }]);
		},
		8 * MINUTE,
	);

	test(
		'n8n is stopped in the middle of a batch with a grace of 90 s: nobody does anything, and nothing is lost',
		async () => {
			const batch = Array<IDataObject>(24).fill({ latencyMs: 20_000 });
			const options = { maxInFlight: 4 };
			const run = await scene.startImages(batch, { name: 'Batch', byWebhook: true, options });
			await until('some tasks', 2 * MINUTE, () => run.tasks.length >= 6);
			const from = Date.now();
			await scene.stage.n8n.stop(2 * GRACE_SECONDS * 1000);
			console.log(`n8n has stopped after ${Date.now() - from} ms, ${run.tasks.length} tasks`);
			await scene.stage.restart();
			const ended = succeeded(await run.end(8 * MINUTE));
			expect(statesOf(ended)).toEqual(Array(24).fill('SUCCESS'));
			expect(run.tasks).toHaveLength(24);
		},
		15 * MINUTE,
	);
});
