import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { type ExecutionSummary, outputItems, until } from '../n8n/client';
import { Collector } from './collector';
import { deliver, inARow, itemsNode, manualTrigger, Stage } from './stage';

/**
 * A storm of callbacks in which n8n is killed twice: of tasks that a node of the same workflow has created, and of
 * tasks that were created elsewhere. It takes minutes, so it runs where LONG_TESTS is set:
 * `LONG_TESTS=1 npm run test:e2e -- storm`.
 */
const testStorm = process.env.LONG_TESTS ? test : test.skip;
if (!process.env.LONG_TESTS) console.log('the storm is skipped: LONG_TESTS is not set');

const OWN = 60;
const FOREIGN = 40;
const SENDERS = 12;
const MINUTE = 60_000;

let stage: Stage;
let collector: Collector;
beforeAll(async () => {
	// Of its own: no other test is to find what the storm leaves behind.
	stage = await Stage.open({ N8N_LOG_LEVEL: 'info' });
	collector = await Collector.open();
}, 900_000);
afterAll(async () => {
	collector?.close();
	await stage?.close();
});

/** Delivers the callback of each task twice in a row, as senders do: again until it is answered 200. */
async function storm(address: () => string, tasks: readonly string[]): Promise<void> {
	const deliveries = tasks.flatMap((taskId) => [taskId, taskId]);
	const send = async (taskId: string) => {
		for (const giveUp = Date.now() + 20 * MINUTE; Date.now() < giveUp; await sleep(2000)) {
			const signal = AbortSignal.timeout(15_000);
			const answer = deliver(address(), { taskId }, { signal });
			const status = await answer.then(
				async (response) => (await response.text(), response.status),
				() => 0,
			);
			if (status === 200) return;
		}
		throw new Error(`The callback of task ${taskId} was not taken`);
	};
	const sender = async () => {
		for (let next = deliveries.shift(); next; next = deliveries.shift()) await send(next);
	};
	await Promise.all(Array.from({ length: SENDERS }, sender));
}

/** n8n may not come up in the midst of a storm: it ends then, and is started again, as a container is. */
async function powerCut(): Promise<void> {
	await stage.kill();
	for (let start = 1; ; start++) {
		try {
			return await stage.restart();
		} catch (error) {
			console.log(`n8n did not come up (start ${start})`);
			if (start === 5) throw error;
		}
	}
}

/** The ids of the tasks of which n8n's log says so. */
const logged = (what: RegExp) =>
	new Set(
		[...readFileSync(stage.n8n.logFile, 'utf8').matchAll(what)].map(([, taskId = '']) => taskId),
	);

testStorm(
	'no task starts twice; what had not begun comes back by itself or by its name in the log, and so does what died',
	async () => {
		const { client, service } = stage;
		service.configure({ latencyMs: 3_600_000, callbackLost: true });
		const trigger = stage.mediaNode('mediaGenerationTrigger', 'Finished', {});
		const lanes = [
			inARow(
				manualTrigger(),
				itemsNode(
					'Prompts',
					Array.from({ length: OWN }, (_, index) => ({ prompt: `Prompt ${index}` })),
				),
				stage.mediaNode('mediaGeneration', 'Order', {
					resource: 'image',
					operation: 'generate',
					prompt: '={{ $json.prompt }}',
					completion: 'trigger',
					options: { checkInterval: 1 },
				}),
			),
			inARow(trigger, collector.node()),
		];
		const { id: workflowId } = await client.createWorkflow({
			name: 'Storm',
			nodes: lanes.flatMap(({ nodes }) => nodes),
			connections: Object.assign({}, ...lanes.map(({ connections }) => connections)),
		});
		const path = client.webhookPath(trigger, 'callback');
		await client.publish(workflowId, [path]);
		const run = await client.run(workflowId, { trigger: 'Start', destination: 'Order' });
		await client.waitForExecution(run, 4 * MINUTE);
		const [first] = service.tasks.values();
		const { search } = new URL(first?.webhookUrl ?? '');
		const own = [...service.tasks.keys()];
		expect(own).toHaveLength(OWN);
		for (const taskId of own) service.complete(taskId);
		const foreign = stage.finishedTasks(FOREIGN);

		const ended = storm(() => `${stage.webhookUrl}${path}${search}`, [...own, ...foreign]);
		ended.catch(() => undefined);
		for (const share of [0.25, 0.6]) {
			const enough = share * (OWN + FOREIGN);
			await until('the storm', 6 * MINUTE, async () =>
				Promise.resolve(collector.seen.length >= enough),
			);
			await powerCut();
		}
		await ended;

		const missing = (tasks: readonly string[]) =>
			tasks.filter((taskId) => !collector.seen.includes(taskId));
		const begun = () => logged(/task (\S+) starts the workflow/g);
		const admitted = () => logged(/task (\S+) is to start the workflow/g);
		await sleep(10_000);
		const atOnce = { own: missing(own), foreign: missing(foreign) };
		const list: ExecutionSummary[] = await client.listExecutions({ workflowId });
		const statuses = new Map<string, number>();
		for (const { status } of list) statuses.set(status, (statuses.get(status) ?? 0) + 1);
		console.log(
			`After the storm: ${collector.seen.length} runs of ${OWN + FOREIGN} tasks; missing ${atOnce.own.length} of our own and ${atOnce.foreign.length} of others; executions ${JSON.stringify([...statuses])}`,
		);
		expect(collector.seen).toHaveLength(new Set(collector.seen).size);
		// Every task that is missing was answered 200, and is named.
		const names = admitted();
		expect([...atOnce.own, ...atOnce.foreign].filter((taskId) => !names.has(taskId))).toEqual([]);

		// The checks bring back the tasks of our own node that had not begun.
		await until('the checks', 6 * MINUTE, async () =>
			Promise.resolve(missing(own).every((taskId) => begun().has(taskId))),
		);
		const died = missing([...own, ...foreign]).filter((taskId) => begun().has(taskId));
		const left = missing(foreign).filter((taskId) => !begun().has(taskId));
		console.log(
			`The checks brought ${atOnce.own.length - missing(own).length} back; ${died.length} had begun and died; ${left.length} of others had not begun`,
		);

		const redeliver = async (taskIds: string[], options: IDataObject) => {
			if (taskIds.length === 0) return;
			const workflow = await client.createWorkflow({
				name: 'After a crash',
				...inARow(
					manualTrigger(),
					stage.mediaNode('mediaGeneration', 'Redeliver', {
						resource: 'task',
						operation: 'redeliver',
						taskId: taskIds.join('\n'),
						callbackUrl: stage.webhookUrl + path,
						options,
					}),
				),
			});
			const execution = await client.waitForExecution(await client.run(workflow.id), 2 * MINUTE);
			const output = outputItems(execution, 'Redeliver').map(({ json }) => json.delivered);
			expect(output).toEqual(taskIds.map(() => true));
		};
		// The three steps of the page: whatever the log names is redelivered, and starts nothing where it has begun.
		const before = collector.seen.length;
		await redeliver([...admitted()], {});
		await collector.settle(before + left.length, MINUTE);
		expect(missing([...own, ...foreign]).sort()).toEqual([...died].sort());
		await redeliver(died, { startAgain: true });
		await collector.settle(OWN + FOREIGN, MINUTE);
		expect(missing([...own, ...foreign])).toEqual([]);
		expect(collector.seen).toHaveLength(OWN + FOREIGN);
	},
	1_800_000,
);
