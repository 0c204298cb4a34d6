import type { IDataObject } from 'n8n-workflow';

import { until } from '../../n8n/client';
import { WHOLE_MINUTE } from '../../n8n/settings';
import { deliver, inARow, ONE_REQUEST, prompts, webhook } from '../nodes';
import { itemsOf, promptOf, Run, succeeded } from '../run';
import { openScene } from '../scene';

/** How long a run is awake, and what it orders where n8n runs old copies of it: minutes are those on the clock. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** How late a picture may be that takes less than *Sleep After*. */
const LATE_MS = 5 * SECOND;

describe('on an n8n that has run nothing before, and on the same n8n after that', () => {
	const scene = openScene({ env: WHOLE_MINUTE, clears: false });

	const lateMs = async (name: string, seconds: number): Promise<number> => {
		const switches = [{ latencyMs: seconds * SECOND }];
		const run = await scene.startImages(switches, { name, byWebhook: true });
		const { stoppedAt } = await run.end(20 * MINUTE);
		const [task] = run.tasks;
		return new Date(stoppedAt ?? NaN).getTime() - (task?.createdAt ?? NaN) - seconds * SECOND;
	};

	it.each(['first', 'later'])(
		'pictures of up to 280 s are at most five seconds late, and a picture of 400 s by a quarter of its time (%s)',
		async (when) => {
			const young = [20, 45, 90, 150, 280];
			const [old = NaN, ...late] = await Promise.all(
				[400, ...young].map(async (seconds) => await lateMs(`${when} ${seconds}`, seconds)),
			);
			console.log(
				`${when}: ${young.map((s, i) => `${s} s + ${late[i]} ms`).join(', ')}, 400 s + ${old} ms`,
			);
			expect(Math.max(...late)).toBeLessThanOrEqual(LATE_MS);
			// A sleep is longer by up to a tenth, by chance.
			expect(old).toBeLessThanOrEqual((1.1 * 400 * SECOND) / 4);
		},
		20 * MINUTE,
	);
});

describe('with a concurrency limit of 1', () => {
	const scene = openScene({
		env: { ...WHOLE_MINUTE, N8N_CONCURRENCY_PRODUCTION_LIMIT: '1' },
		clears: false,
	});

	/** Keeps the only place, by a run that is held since its caller waits for the answer. */
	async function occupy(seconds: number): Promise<void> {
		const name = `Occupies ${seconds}`;
		const switches = [{ latencyMs: seconds * SECOND }];
		const start = webhook('Start', { responseMode: 'lastNode' });
		const nodes = inARow(start, prompts(name, switches), scene.image());
		const answer = scene.stage.callWebhook({ name, ...nodes });
		void answer.then(async ({ response }) => await response.arrayBuffer());
		await until('the place to be taken', 5 * MINUTE, () =>
			scene.tasks.some(({ record }) => promptOf(record) === `${name} 0`),
		);
	}

	/** Pictures, and a video of each behind them. @returns the nodes of a workflow that a webhook starts */
	function picturesThenVideos(name: string, count: number, seconds: number) {
		const switches = Array<IDataObject>(count).fill({ latencyMs: seconds * SECOND });
		const options = { suspendAfter: 0, additionalInput: '={{ { simulate: $json.simulate } }}' };
		const picture = scene.image({ options: { suspendAfter: 0 }, includeInput: true });
		const prompt = '={{ $json.prompt }} moves';
		const video = scene.media(
			{
				resource: 'video',
				operation: 'generate',
				prompt,
				imageSource: 'none',
				options,
				downloadResults: false,
			},
			{ name: 'Video' },
		);
		return { name, ...inARow(webhook('Start'), prompts(name, switches), picture, video) };
	}

	const orderedOf = (name: string) =>
		scene.tasks.map(({ record }) => promptOf(record)).filter((prompt) => prompt.startsWith(name));

	async function runOf(workflowId: string, name: string): Promise<Run[]> {
		const all = await scene.client.listExecutions({ workflowId });
		return all.map(({ id }) => new Run(scene, id, workflowId, name));
	}

	it(
		'three pictures then three videos are three and three, though the place is taken for 150 s',
		async () => {
			const definition = picturesThenVideos('Three', 3, 20);
			const { id } = await scene.stage.callWebhook(definition);
			const [run] = await runOf(id, 'Three');
			await run?.asleep();
			await occupy(150);
			const ended = succeeded(await run!.end(20 * MINUTE));
			const states = itemsOf(ended, 'Video').map(({ state }) => state);
			console.log(`Three: ${orderedOf('Three').length} orders, states ${states.join()}`);
			expect(states).toEqual(Array(3).fill('SUCCESS'));
			expect(orderedOf('Three')).toHaveLength(6);
		},
		25 * MINUTE,
	);

	it(
		'four webhooks of a picture and a video each order four and four',
		async () => {
			const from = Date.now();
			const definition = picturesThenVideos('Four', 1, 30);
			const start = definition.nodes[0];
			const { id } = await scene.stage.callWebhook(definition);
			const url = `${scene.stage.webhookUrl}/webhook/${start?.webhookId}`;
			await Promise.all(
				[1, 2, 3].map(async () => await (await fetch(url, { method: 'POST' })).arrayBuffer()),
			);
			const runs = await runOf(id, 'Four');
			expect(runs).toHaveLength(4);
			for (const run of runs) succeeded(await run.end(20 * MINUTE));
			console.log(`Four: ${orderedOf('Four').length} orders, ${(Date.now() - from) / SECOND} s`);
			expect(orderedOf('Four')).toHaveLength(8);
		},
		25 * MINUTE,
	);

	it(
		'a batch of 24 comes out whole, with nothing in doubt, beside runs that take the place',
		async () => {
			const from = Date.now();
			const switches = Array<IDataObject>(24).fill({ latencyMs: 20 * SECOND });
			const options = { suspendAfter: 0.5, maxInFlight: 4 };
			const run = await scene.startImages(switches, { name: 'Batch', options, byWebhook: true });
			await run.asleep();
			await occupy(100);
			await run.asleep(run.sleeps + 1);
			await occupy(130);
			const items = itemsOf(succeeded(await run.end(25 * MINUTE)));
			console.log(
				`Batch: ${run.tasks.length} orders, ${items.filter(({ error }) => error).length} errors, ${(Date.now() - from) / SECOND} s`,
			);
			expect(items.map(({ state }) => state)).toEqual(Array(24).fill('SUCCESS'));
			expect(run.tasks).toHaveLength(24);
		},
		30 * MINUTE,
	);

	it(
		'50 copies of a callback at once are one execution; where it dies, the check starts the workflow, once',
		async () => {
			const { client, collector, stage } = scene;
			const lost = [{ latencyMs: SECOND, callbackLost: true }];
			const order = scene.image({ completion: 'trigger' });
			const more = { orders: [prompts('Copies', lost), order] };
			const { id: workflowId, address } = await scene.publish(scene.trigger(), more);
			const copies = async (taskId: string) => {
				const sent = Array.from({ length: 50 }, async () => {
					const answer = await deliver(address, { taskId }, ONE_REQUEST);
					return ((await answer.json()) as IDataObject).accepted;
				});
				return (await Promise.all(sent)).filter((accepted) => accepted === true).length;
			};
			const executions = async () => await client.listExecutions({ workflowId });
			const [taskId = ''] = stage.finishedTasks(1);
			expect(await copies(taskId)).toBe(1);
			await collector.settle(1);
			expect(collector.seen).toEqual([taskId]);
			expect(await executions()).toHaveLength(1);

			await client.waitForExecution(await client.run(workflowId));
			const { taskId: other = '' } = scene.tasks.at(-1) ?? {};
			const isFinished = () => scene.tasks.at(-1)?.record.state === 'SUCCESS';
			await until('the task to be finished', MINUTE, isFinished);
			const when = `new."workflowId" = '${workflowId}'`;
			const { database } = stage;
			await database.refuse('no_rows', 'before insert on processed_data', when, 'The disk is full');
			expect(await copies(other)).toBe(1);
			const hasDied = async () => (await executions()).some(({ status }) => status === 'error');
			await until('the execution to die', MINUTE, hasDied);
			await database.forget('no_rows');
			await scene.expectArrived([taskId, other], 10 * MINUTE);
			const statuses = (await executions()).map(({ mode, status }) => `${mode} ${status}`);
			console.log(`Copies: 2 of 100 accepted; ${statuses.join(', ')}`);
			const ofTheTrigger = statuses.filter((status) => status.startsWith('webhook'));
			expect(ofTheTrigger.sort()).toEqual(['webhook error', 'webhook success', 'webhook success']);
		},
		15 * MINUTE,
	);
});
