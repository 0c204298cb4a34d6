import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { outputItems, until } from '../n8n/client';
import { Collector } from './collector';
import { needing } from './needs';
import { inARow, itemsNode, manualTrigger, Stage } from './stage';

/**
 * What is made up for by itself where callbacks are lost and the run that notifies a trigger does not simply end, all
 * of it at the same time, on an n8n whose minutes are short.
 */

let stage: Stage;
let collector: Collector;
let callbackUrl: string;

const MINUTE = 60_000;
const LONG = 8 * MINUTE;

beforeAll(async () => {
	stage = await Stage.open();
	collector = await Collector.open();
	stage.service.configure({ callbackLost: true });
	callbackUrl = await stage.publishTrigger('Lane', collector.node());
	for (const [title, run] of scenarios) {
		const outcome = run();
		outcome.catch(() => undefined);
		outcomes.set(title, outcome);
		await sleep(500);
	}
}, 900_000);
afterAll(async () => {
	collector?.close();
	await stage?.close();
});

const scenarios = new Map<string, () => Promise<void>>();
const outcomes = new Map<string, Promise<void>>();

/** Runs a workflow by hand that creates a task for each object of switches, one after the other. */
async function start(name: string, items: Array<{ simulate: IDataObject; timeout?: number }>) {
	const workflow = await stage.client.createWorkflow({
		name,
		...inARow(
			manualTrigger(),
			itemsNode(
				'Prompts',
				items.map(({ simulate, timeout = 86_400 }, index) => ({
					prompt: `${name} ${index}`,
					simulate,
					timeout,
				})),
			),
			stage.mediaNode('mediaGeneration', 'Media', {
				resource: 'image',
				operation: 'generate',
				prompt: '={{ $json.prompt }}',
				completion: 'trigger',
				callbackUrl,
				options: {
					additionalInput: '={{ { simulate: $json.simulate } }}',
					timeout: '={{ $json.timeout }}',
					maxInFlight: 1,
				},
			}),
		),
	});
	return { workflowId: workflow.id, id: await stage.client.run(workflow.id) };
}

const tasksOf = (name: string) =>
	[...stage.service.tasks.values()].filter(({ record }) =>
		String((record.input as IDataObject).prompt).startsWith(`${name} `),
	);

const created = async (name: string, count: number, timeoutMs = MINUTE) =>
	await until(`${count} tasks of ${name}`, timeoutMs, async () =>
		Promise.resolve(tasksOf(name).length >= count),
	);

const arrived = async (taskId: string | undefined, timeoutMs: number) =>
	await until(`task ${taskId} to start the lane`, timeoutMs, async () =>
		Promise.resolve(collector.seen.includes(taskId ?? '')),
	);

const refusedFor = (seconds: number) => ({
	createStatus: { status: 429, times: 1, retryAfter: seconds },
});

scenarios.set('what a run had created when it was stopped', async () => {
	const name = 'Stopped';
	const { id } = await start(name, [
		{ simulate: { latencyMs: 5_000 } },
		{ simulate: refusedFor(600) },
	]);
	await created(name, 1);
	await stage.client.stopExecution(id);
	await arrived(tasksOf(name)[0]?.taskId, 4 * MINUTE);
	expect(tasksOf(name)).toHaveLength(1);
	expect((await stage.client.getExecution(id)).status).toBe('canceled');
});

scenarios.set('the first tasks of a batch, while others are still to be created', async () => {
	const name = 'Long';
	const { id } = await start(name, [
		{ simulate: { latencyMs: 5_000 } },
		{ simulate: { latencyMs: 5_000, ...refusedFor(360) } },
	]);
	await created(name, 1);
	await arrived(tasksOf(name)[0]?.taskId, 5 * MINUTE);
	expect(tasksOf(name)).toHaveLength(1);
	await stage.client.stopExecution(id);
});

scenarios.set(
	'a task that was given up while another one was waited for is named at the end',
	async () => {
		const name = 'Given up';
		const { workflowId, id } = await start(name, [
			{ simulate: { latencyMs: 3_000_000 }, timeout: 5 },
			{ simulate: { latencyMs: 9_000 }, timeout: 600 },
		]);
		await created(name, 2);
		const [givenUp, late] = tasksOf(name);
		await arrived(late?.taskId, 5 * MINUTE);
		const others = async () =>
			(await stage.client.listExecutions({ workflowId })).filter((each) => each.id !== id);
		await until('the looks to end', 2 * MINUTE, async () =>
			(await others()).every(({ status }) => status !== 'waiting' && status !== 'running'),
		);
		const errors = (await others()).filter(({ status }) => status === 'error');
		expect(errors).toHaveLength(1);
		const { data } = await stage.client.getExecution(errors[0]?.id ?? '');
		expect(JSON.stringify(data.resultData.error)).toContain(givenUp?.taskId);
		expect(outputItems(await stage.client.getExecution(id), 'Media')).toHaveLength(2);
	},
);

for (const title of scenarios.keys()) {
	needing('endOfSubExecutions', title).test(title, async () => await outcomes.get(title), LONG);
}
