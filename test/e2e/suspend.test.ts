import type { IDataObject } from 'n8n-workflow';

import { type Execution, outputItems } from '../n8n/client';
import { AT_ONCE } from './atOnce';
import { Collector } from './collector';
import { needing } from './needs';
import { shortMinute, WHOLE_MINUTE } from '../n8n/settings';
import { Stage } from './stage';

let stage: Stage;
let collector: Collector;
beforeAll(async () => {
	// No look of n8n's comes before the power cut.
	stage = await Stage.open(WHOLE_MINUTE);
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
	await stage.startImages(switches, { ...AT_ONCE, ...options }, { after: [collector.node()] });

const { test: testSuspended } = needing('suspending', 'Suspended executions');

const media = (execution: Execution) => outputItems(execution, 'Media');
const reads = () =>
	stage.service.requests.filter(({ method, host }) => method === 'GET' && host === 'api');

testSuspended(
	'an execution is suspended, and resumed once when all its tasks are finished, in input order',
	async () => {
		const { client } = stage;
		const id = await start([
			{ latencyMs: 6000 },
			{ latencyMs: 4000, outcome: 'FAILURE', failureMessage: 'no such colour' },
			{ latencyMs: 5000 },
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
			{ latencyMs: 5500, callbackLost: true },
			{ latencyMs: 6000, callbackCopies: 3 },
			{ latencyMs: 5000, callbackLost: true },
			{ latencyMs: 8000, callbackCopies: 5 },
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
		// The task fails after the run was suspended: while the run is held, the node is tried again.
		[{ latencyMs: 10_000, outcome: 'FAILURE' }, { latencyMs: 12_000 }],
		AT_ONCE,
		{ node: { retryOnFail: true, maxTries: 3, waitBetweenTries: 100 } },
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
		await stage.kill();
		await stage.restart(shortMinute(20_000));
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

testSuspended(
	'past the timeout an item fails with what is known of it, and the others leave',
	async () => {
		const { client } = stage;
		const id = await start([{ latencyMs: 600_000 }, { latencyMs: 0 }], { timeout: 5 });
		const execution = await client.waitForExecution(id, 110_000);
		const items = media(execution).map(({ json }) => json);
		expect(items.map(({ state, timedOut }) => [state, timedOut])).toEqual([
			['PENDING', true],
			['SUCCESS', undefined],
		]);
		expect(items[0]?.error).toContain(`Task ${items[0]?.taskId} is not finished after 5 s`);
	},
);

testSuspended(
	'a batch whose time was too short is suspended by a retry with the changed workflow, and is paid for once',
	async () => {
		const { client, service } = stage;
		const hurried = await client.waitForExecution(
			await stage.startImages(Array<IDataObject>(3).fill({ latencyMs: 15_000 }), { timeout: 4 }),
		);
		expect(hurried.status).toBe('error');
		const { nodes } = await client.getWorkflow(hurried.workflowId);
		for (const { name, parameters } of nodes) {
			if (name !== 'Media') continue;
			parameters.options = { ...(parameters.options as IDataObject), ...AT_ONCE, timeout: 600 };
		}
		await client.updateWorkflow(hurried.workflowId, { nodes });
		const retried = await client.waitForExecution(
			await client.retryExecution(hurried.id, true),
			150_000,
		);
		expect(media(retried).map(({ json }) => [json.taskId, json.state])).toEqual(
			[...service.tasks.keys()].map((taskId) => [taskId, 'SUCCESS']),
		);
		expect(service.tasks.size).toBe(3);
	},
	200_000,
);
