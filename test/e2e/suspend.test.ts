import type { IDataObject } from 'n8n-workflow';

import { type Execution, outputItems } from '../n8n/client';
import { Collector } from './collector';
import { needing } from './needs';
import { Stage } from './stage';

let stage: Stage;
let collector: Collector;
beforeAll(async () => {
	stage = await Stage.open();
	collector = await Collector.open();
}, 900_000);
afterAll(async () => {
	collector?.close();
	await stage?.close();
});
beforeEach(() => {
	stage.reset();
	collector.reset();
});

/** Starts a workflow that suspends itself for some tasks, one for each object of switches. */
const start = async (switches: IDataObject[], options: IDataObject = {}) =>
	await stage.startImages(switches, options, {
		completion: 'suspend',
		after: [collector.node()],
	});

const { test: testSuspended } = needing('suspending', 'Suspended executions');

const media = (execution: Execution) => outputItems(execution, 'Media');
const reads = () =>
	stage.service.requests.filter(({ method, host }) => method === 'GET' && host === 'api');

testSuspended(
	'an execution is suspended, and resumed once when all its tasks are finished, in input order',
	async () => {
		const { client } = stage;
		const id = await start([
			{ latencyMs: 3000 },
			{ latencyMs: 1500, outcome: 'FAILURE', failureMessage: 'no such colour' },
			{ latencyMs: 2000 },
			{ latencyMs: 0 },
		]);
		await client.waitForSuspension(id);
		const execution = await client.waitForExecution(id);
		expect(execution.status).toBe('success');
		const items = media(execution);
		expect(items.map(({ json }) => [(json.input as IDataObject).prompt, json.state])).toEqual([
			['Prompt 0', 'SUCCESS'],
			['Prompt 1', 'FAILURE'],
			['Prompt 2', 'SUCCESS'],
			['Prompt 3', 'SUCCESS'],
		]);
		expect(items[1]?.json.error).toContain('no such colour');
		expect(items.some(({ json }) => 'timedOut' in json)).toBe(false);
		expect(items.map(({ pairedItem }) => pairedItem)).toEqual(
			[0, 1, 2, 3].map((item) => ({ item })),
		);
		await collector.settle(4);
		expect(collector.seen).toEqual([...stage.service.tasks.keys()]);
	},
);

testSuspended(
	'callbacks that are lost, come twice or together: the last one that comes resumes the execution',
	async () => {
		const { client } = stage;
		const id = await start([
			{ latencyMs: 1500, callbackLost: true },
			{ latencyMs: 2000, callbackCopies: 3 },
			{ latencyMs: 1000, callbackLost: true },
			{ latencyMs: 4000, callbackCopies: 5 },
		]);
		const execution = await client.waitForExecution(id);
		expect(media(execution).map(({ json }) => json.state)).toEqual(Array(4).fill('SUCCESS'));
		await collector.settle(4);
		expect(collector.seen).toHaveLength(4);
	},
);

testSuspended('Retry On Fail does not run a suspended node again', async () => {
	const { client, service } = stage;
	const id = await stage.startImages(
		[{ latencyMs: 0, outcome: 'FAILURE' }, { latencyMs: 2000 }],
		{},
		{ completion: 'suspend', node: { retryOnFail: true, maxTries: 3, waitBetweenTries: 100 } },
	);
	const execution = await client.waitForExecution(id);
	expect(media(execution).map(({ json }) => json.state)).toEqual(['FAILURE', 'SUCCESS']);
	expect(service.tasks.size).toBe(2);
});

testSuspended('a callback without its token resumes nothing', async () => {
	const { client, service } = stage;
	const id = await start([{ latencyMs: 60_000 }]);
	await client.waitForSuspension(id);
	const [task] = service.tasks.values();
	const address = new URL(task?.webhookUrl ?? '');
	service.complete(task?.taskId ?? '');
	service.clear();
	address.searchParams.set('token', '0'.repeat(64));
	const response = await fetch(address, { method: 'POST', body: '{}' });
	expect(response.status).toBe(401);
	await client.stopExecution(id);
});

testSuspended(
	'where all tasks are finished at once, the execution is not suspended at all',
	async () => {
		stage.service.configure({ latencyMs: 0 });
		const execution = await stage.client.waitForExecution(await start([{}, {}]));
		expect(media(execution).map(({ json }) => json.state)).toEqual(['SUCCESS', 'SUCCESS']);
	},
);

testSuspended(
	'50 tasks in 5 suspended executions survive a power cut',
	async () => {
		const { client, service } = stage;
		const ids: string[] = [];
		for (let index = 0; index < 5; index++) {
			// None ends before the power is cut: what is killed while it is taken up is a story of supervisor.test.
			ids.push(await start(Array<IDataObject>(10).fill({ latencyMs: [40_000, 50_000] })));
		}
		for (const id of ids) await client.waitForSuspension(id);
		await stage.killAndRestart();
		for (const id of ids) {
			const execution = await client.waitForExecution(id, 150_000);
			expect(media(execution).map(({ json }) => json.state)).toEqual(Array(10).fill('SUCCESS'));
		}
		await collector.settle(50);
		expect([...collector.seen].sort()).toEqual([...service.tasks.keys()].sort());
		console.log(`5 executions, 50 tasks, power cut: ${collector.seen.length} reached the workflow`);
	},
	240_000,
);

testSuspended(
	'500 tasks in one suspended execution: few reads of the service',
	async () => {
		const { client, service } = stage;
		const id = await start(Array<IDataObject>(500).fill({ latencyMs: [10_000, 60_000] }));
		const execution = await client.waitForExecution(id, 200_000);
		expect(media(execution).map(({ json }) => json.state)).toEqual(Array(500).fill('SUCCESS'));
		expect(service.tasks.size).toBe(500);
		console.log(`500 suspended tasks: ${reads().length} reads in all`);
		expect(reads().length).toBeLessThan(1500);
	},
	300_000,
);

testSuspended('past the timeout the items leave with what is known of them', async () => {
	const { client } = stage;
	const id = await start([{ latencyMs: 600_000 }, { latencyMs: 0 }], { timeout: 5 });
	const execution = await client.waitForExecution(id, 110_000);
	expect(media(execution).map(({ json }) => [json.state, json.timedOut])).toEqual([
		['PENDING', true],
		['SUCCESS', undefined],
	]);
});

testSuspended(
	'a batch that was too slow for polling is suspended by a retry with the changed workflow, and is paid for once',
	async () => {
		const { client, service } = stage;
		const polled = await client.waitForExecution(
			await stage.startImages(Array<IDataObject>(3).fill({ latencyMs: 15_000 }), { timeout: 4 }),
		);
		expect(polled.status).toBe('error');
		const { nodes } = await client.getWorkflow(polled.workflowId);
		for (const { name, parameters } of nodes) {
			if (name !== 'Media') continue;
			parameters.completion = 'suspend';
			parameters.options = { ...(parameters.options as IDataObject), timeout: 600 };
		}
		await client.updateWorkflow(polled.workflowId, { nodes });
		const retried = await client.waitForExecution(
			await client.retryExecution(polled.id, true),
			150_000,
		);
		expect(media(retried).map(({ json }) => [json.taskId, json.state])).toEqual(
			[...service.tasks.keys()].map((taskId) => [taskId, 'SUCCESS']),
		);
		expect(service.tasks.size).toBe(3);
	},
	200_000,
);
