import type { IDataObject } from 'n8n-workflow';

import { until } from '../../n8n/client';
import { WHOLE_MINUTE } from '../../n8n/settings';
import { deliver, inARow, ONE_REQUEST, prompts, webhook } from '../nodes';
import { itemsOf, promptOf, Run, succeeded } from '../run';
import { openScene } from '../scene';

/** What a run orders where n8n runs old copies of it: minutes are those on the clock. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

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
