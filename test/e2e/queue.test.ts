import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackUrl';
import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import {
	describe as describeExecution,
	type Execution,
	N8nClient,
	outputItems,
} from '../n8n/client';
import { missingInN8n } from '../n8n/differences';
import { missingForQueueMode } from './cluster';
import { AT_ONCE } from './atOnce';
import { Collector } from './collector';
import { Lane } from './lane';
import { needing } from './needs';
import { deliver, inARow, itemsNode, manualTrigger, node, Stage } from './stage';

const missing = missingForQueueMode();
if (missing !== undefined) console.log(`queue mode is skipped: ${missing}`);
const describeQueueMode = missing === undefined ? describe : describe.skip;

describeQueueMode('queue mode: one main, two webhook processors, two workers', () => {
	let stage: Stage;
	let collector: Collector;

	beforeAll(async () => {
		stage = await Stage.openInQueueMode({ workers: 2, webhooks: 2 });
		collector = await Collector.open();
	}, 900_000);
	afterAll(async () => {
		collector?.close();
		await stage?.close();
	}, 60_000);
	beforeEach(() => {
		stage.reset();
		collector.reset();
	});

	/** How many creates the service has received. */
	const creates = () =>
		stage.service.requests.filter(({ host, method }) => host === 'api' && method === 'POST').length;

	const states = (execution: Execution, node: string) =>
		outputItems(execution, node).map(({ json }) => json.state);

	/** Runs an operation on tasks that exist, and returns the items that leave it. */
	async function onTasks(taskIds: string[], parameters: IDataObject) {
		const workflow = await stage.client.createWorkflow({
			name: `Task: ${String(parameters.operation)}`,
			...inARow(
				manualTrigger(),
				itemsNode(
					'Tasks',
					taskIds.map((taskId) => ({ taskId })),
				),
				stage.mediaNode('mediaGeneration', 'Media', {
					resource: 'task',
					taskId: '={{ $json.taskId }}',
					...parameters,
				}),
			),
		});
		const execution = await stage.client.waitForExecution(await stage.client.run(workflow.id));
		if (execution.status !== 'success') throw new Error(describeExecution(execution));
		return outputItems(execution, 'Media').map(({ json }) => json);
	}

	/** Tasks that are under way, and that the service calls back for. */
	const createTasks = (count: number, webhookUrl: string, input: IDataObject = {}) =>
		Array.from(
			{ length: count },
			() =>
				stage.service.createTask(IMAGE_MODEL, { prompt: 'A task', ...input }, webhookUrl).taskId,
		);

	/** Starts an execution ten times at once, and waits until all have succeeded. */
	async function tenAtOnce(start: () => Promise<string>) {
		const ids = await Promise.all(Array.from({ length: 10 }, start));
		const executions = await Promise.all(
			ids.map(async (id) => await stage.client.waitForExecution(id, 90_000)),
		);
		expect(executions.map(({ status }) => status)).toEqual(Array(10).fill('success'));
		return executions;
	}

	describe('the action node', () => {
		const canSuspend = missingInN8n('suspending') === undefined;
		test.each([['held', {}], ...(canSuspend ? [['suspended', AT_ONCE] as const] : [])] as const)(
			'%s: ten executions of two tasks come back from the workers, each once',
			async (_, options) => {
				const switches = Array<IDataObject>(2).fill({ latencyMs: [4000, 7000], callbackCopies: 2 });
				const after = [collector.node()];
				const executions = await tenAtOnce(
					async () => await stage.startImages(switches, options, { after }),
				);
				expect(executions.flatMap((execution) => states(execution, 'Media'))).toEqual(
					Array(20).fill('SUCCESS'),
				);
				await collector.settle(20);
				expect([...collector.seen].sort()).toEqual([...stage.service.tasks.keys()].sort());
				expect(creates()).toBe(20);
			},
		);

		test('trigger: of ten executions of two tasks each task starts the lane of the trigger once', async () => {
			const lane = await Lane.publish(stage, collector);
			const switches = Array<IDataObject>(2).fill({ latencyMs: [200, 1000], callbackCopies: 2 });
			const { client, n8n } = stage;
			const callbackUrl = stage.webhookUrl + lane.path;
			expect(callbackUrl).not.toContain(n8n.url);
			const workflow = await client.createWorkflow({
				name: 'Orders',
				...inARow(
					manualTrigger(),
					itemsNode(
						'Prompts',
						switches.map((simulate, index) => ({ prompt: `Prompt ${index}`, simulate })),
					),
					stage.mediaNode('mediaGeneration', 'Media', {
						resource: 'image',
						operation: 'generate',
						prompt: '={{ $json.prompt }}',
						completion: 'trigger',
						callbackUrl,
						options: { additionalInput: '={{ { simulate: $json.simulate } }}' },
					}),
				),
			});
			const executions = await tenAtOnce(async () => await client.run(workflow.id));
			const ordered = executions.flatMap((execution) =>
				outputItems(execution, 'Media').map(({ json }) => json.taskId),
			);
			await collector.settle(20);
			expect([...collector.seen].sort()).toEqual([...ordered].sort());
			expect(creates()).toBe(20);
		});

		test('trigger: an execution that a webhook has started finds the trigger of its own workflow', async () => {
			const { client } = stage;
			const path = crypto.randomUUID();
			const start = {
				...node('n8n-nodes-base.webhook', 'Start', { httpMethod: 'POST', path, options: {} }, 2),
				webhookId: path,
			};
			const orders = inARow(
				start,
				stage.mediaNode('mediaGeneration', 'Media', {
					resource: 'image',
					operation: 'generate',
					prompt: 'A lighthouse',
					completion: 'trigger',
				}),
			);
			const results = inARow(
				stage.mediaNode('mediaGenerationTrigger', 'Finished', {}),
				collector.node(),
			);
			const workflow = await client.createWorkflow({
				name: 'Orders and results',
				nodes: [...orders.nodes, ...results.nodes],
				connections: { ...orders.connections, ...results.connections },
			});
			await client.publish(workflow.id);
			const url = stage.webhookUrl;
			await new N8nClient(url).waitForWebhook(`/webhook/${path}`);
			expect((await deliver(`${url}/webhook/${path}`, {})).status).toBe(200);
			await collector.settle(1);
			expect(collector.seen).toEqual([...stage.service.tasks.keys()]);
			expect(collector.seen).toHaveLength(1);
		});
	});

	describe('callbacks', () => {
		test('delivered to both processors at the same moment', async () => {
			const lane = await Lane.publish(stage, collector);
			await Promise.all(
				lane
					.finishedTasks(40)
					.flatMap((taskId) =>
						lane.addresses.map(async (address) => await lane.deliver(taskId, [address])),
					),
			);
			const account = await lane.settle('To both processors at once');
			expect(account).toMatchObject({ runs: 40, duplicates: 0, losses: 0 });
		});

		test('delivered to one processor, then to the other', async () => {
			const lane = await Lane.publish(stage, collector);
			const tasks = lane.finishedTasks(20);
			for (const address of lane.addresses) {
				await Promise.all(tasks.map(async (taskId) => await lane.deliver(taskId, [address])));
			}
			const account = await lane.settle('To one processor, then to the other');
			expect(account).toMatchObject({ runs: 20, duplicates: 0, losses: 0 });
		});

		test('a webhook processor is killed while it answers: the sender delivers to the other', async () => {
			const lane = await Lane.publish(stage, collector);
			const [first] = stage.cluster.webhooks;
			if (first === undefined) throw new Error('There is no webhook processor');
			let answered = 0;
			let killing: Promise<void> | undefined;
			await Promise.all(
				lane.finishedTasks(40).map(async (taskId) => {
					await lane.deliver(taskId, lane.addresses);
					if (++answered === 5) killing = stage.cluster.kill(first);
				}),
			);
			await killing;
			await stage.cluster.restartWebhook(0);
			let account = await lane.settle('A webhook processor is killed while it answers');
			expect(account.deliveries).toBeGreaterThan(40);
			if (missingInN8n('answersAfterStoring')) {
				for (const taskId of lane.missing()) await lane.deliver(taskId, lane.addresses);
				account = await lane.settle('… and what it had answered is delivered again');
			}
			expect(account).toMatchObject({ runs: 40, duplicates: 0, losses: 0 });
		});
	});

	needing('oneRunOfStalledJobs', 'A killed worker').test(
		'a worker is killed: nothing is created twice, and its log names every task that has to be fetched',
		async () => {
			const { client, service } = stage;
			const lane = await Lane.publish(stage, collector, { held: true });
			const held = await stage.startImages(Array<IDataObject>(5).fill({ latencyMs: 600_000 }));
			const victim = await stage.cluster.workerOf(held);
			while (creates() < 5) await sleep(100);
			const paidFor = [...service.tasks.keys()];
			const [address = ''] = lane.addresses;
			await Promise.all(
				lane.finishedTasks(24).map(async (taskId) => await lane.deliver(taskId, [address])),
			);
			// Ten at once on each worker, the held one among them.
			await collector.untilHeld(19);
			await stage.cluster.kill(victim);
			collector.openBarrier();
			for (const taskId of paidFor) service.complete(taskId);

			// n8n runs none of the killed executions again, and of their data it keeps nothing.
			const account = await lane.settle('A worker is killed that runs 9 of them');
			expect(account).toMatchObject({
				executions: { error: 9 },
				runs: 15,
				duplicates: 0,
				losses: 9,
			});
			const { status } = await client.waitForExecution(held);
			expect(status).toBe('error');
			expect(creates()).toBe(5);

			const log = readFileSync(victim.logFile, 'utf8');
			const named = (pattern: RegExp, executions: string[]) =>
				[...log.matchAll(pattern)]
					.filter(([, , execution = '']) => executions.includes(execution))
					.map(([, taskId = '']) => taskId);
			const created = named(/created task (\S+) \(execution (\d+)/g, [held]);
			expect(created.sort()).toEqual(paidFor.sort());
			const ended = stage.cluster.executionIds(lane.workflowId, 'error');
			const cutOff = named(/task (\S+) starts the workflow \(execution (\d+)/g, ended);
			expect(cutOff.sort()).toEqual(lane.missing().sort());
			const fetched = await onTasks([...created, ...cutOff], { operation: 'wait' });
			expect(fetched.map(({ state }) => state)).toEqual(Array(14).fill('SUCCESS'));

			// From the ids in the log, one run of the node starts them again.
			const [callbackUrl] = address.split('?', 1);
			const again = await onTasks(cutOff, {
				operation: 'redeliver',
				callbackUrl,
				options: { startAgain: true },
			});
			expect(again.map(({ delivery }) => delivery)).toEqual(Array(9).fill('accepted'));
			await collector.settle(24);
			await Promise.all(
				lane.tasks.flatMap((taskId) =>
					lane.addresses.map(async (to) => await lane.deliver(taskId, [to])),
				),
			);
			const mended = await lane.settle(
				'The 9 are started again, and all callbacks come twice more',
			);
			expect(mended).toMatchObject({ runs: 24, duplicates: 0, losses: 0 });
			await stage.cluster.addWorker();
		},
		300_000,
	);

	test('two installs with one account: a task goes to the trigger it was created for, and starts each once', async () => {
		const other = await Stage.open({}, stage.service);
		const otherCollector = await Collector.open();
		try {
			const { service } = stage;
			const lane = await Lane.publish(stage, collector);
			const otherUrl = await other.publishTrigger(
				'Lane of the other install',
				otherCollector.node(),
			);
			const otherAddress = callbackAddress(otherUrl, service.apiKey);
			const [address = ''] = lane.addresses;
			const own = createTasks(10, address);
			const others = createTasks(10, otherAddress);
			await collector.settle(10);
			await otherCollector.settle(10);
			expect([...collector.seen].sort()).toEqual([...own].sort());
			expect([...otherCollector.seen].sort()).toEqual([...others].sort());

			const both = lane.finishedTasks(10);
			for (let round = 0; round < 2; round++) {
				await Promise.all(
					both.flatMap((taskId) =>
						[address, otherAddress].map(async (to) => await lane.deliver(taskId, [to])),
					),
				);
			}
			const account = await lane.settle(
				'Two installs, ten tasks to both of them twice (the first)',
			);
			expect(account).toMatchObject({ runs: 10, duplicates: 0, losses: 0 });
			await otherCollector.settle(20);
			expect([...otherCollector.seen].sort()).toEqual([...others, ...both].sort());
		} finally {
			otherCollector.close();
			await other.close();
		}
	});

	test('the API key is rotated while tasks are under way: nothing is lost, nothing is created twice', async () => {
		const { client, credential, credentialKey, service } = stage;
		const enterKey = async (apiKey: string) =>
			await client.updateCredential(
				{ ...credential, type: 'mediaGenerationApi' },
				{
					baseUrl: service.url,
					apiKey,
				},
			);
		const lane = await Lane.publish(stage, collector);
		const [address = ''] = lane.addresses;
		const called = lane.finishedTasks(6);
		const held = await stage.startImages(Array<IDataObject>(2).fill({ latencyMs: 600_000 }));
		while (creates() < 2) await sleep(100);
		const polled = [...service.tasks.keys()].filter((taskId) => !called.includes(taskId));

		try {
			service.rotateApiKey('sk-live-second-key');
			// Until the new key is in the credential, polling ends, and callbacks are to come again.
			const ended = await client.waitForExecution(held);
			expect(ended.status).toBe('error');
			for (const taskId of polled) expect(JSON.stringify(ended.data)).toContain(taskId);
			expect(await lane.attempt(called[0] ?? '', address)).toBe('503');

			// From then on, a retry takes up the tasks that were polled.
			await enterKey('sk-live-second-key');
			for (const taskId of polled) service.complete(taskId);
			const retried = await client.waitForExecution(await client.retryExecution(held));
			expect(states(retried, 'Media')).toEqual(['SUCCESS', 'SUCCESS']);
			expect(creates()).toBe(2);

			// An address that was made with the former key is refused, at the latest a minute later; Redeliver makes a
			// new one, and may do so for tasks whose callback was taken after all.
			await Promise.all(
				called.slice(0, 3).map(async (taskId) => await lane.attempt(taskId, address)),
			);
			const [callbackUrl] = address.split('?', 1);
			const sent = await onTasks(called, { operation: 'redeliver', callbackUrl });
			expect(sent.map(({ delivered }) => delivered)).toEqual(Array(6).fill(true));
			const account = await lane.settle('The API key is rotated');
			expect(account).toMatchObject({ runs: 6, duplicates: 0, losses: 0 });
		} finally {
			service.rotateApiKey(credentialKey);
			await enterKey(credentialKey);
		}
	});
});
