import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { until } from '../n8n/client';
import { call, called, inARow } from './nodes';
import { errorOf, itemsOf, promptOf, statesOf, succeeded } from './run';
import { openScene } from './scene';

/** What batches cost, in money and in time, as far as n8n's server has a part in it: its engine is in `test/workflow`. */

const scene = openScene();

const times = (count: number, switches: IDataObject) => Array<IDataObject>(count).fill(switches);

const TRIES = { retryOnFail: true, maxTries: 3, waitBetweenTries: 100 };

/** The read of one task of three is refused until the first try has failed. */
const STUMBLING = [{}, { readStatus: { status: 404, times: 3 } }, {}];

test('a batch of 200 leaves in input order, with few reads', async () => {
	const latencies = Array.from({ length: 200 }, (_, index) => 1000 + ((index * 7919) % 7001));
	const switches = latencies.map((latencyMs) => ({ latencyMs }));
	const execution = succeeded(await scene.runImages(switches, { options: { maxInFlight: 200 } }));
	expect(scene.tasks).toHaveLength(200);
	expect(itemsOf(execution).map((item) => [promptOf(item), item.state])).toEqual(
		latencies.map((_latency, index) => [`Prompt ${index}`, 'SUCCESS']),
	);
	expect(scene.reads.length).toBeLessThanOrEqual(800);
});

test('Retry On Fail takes up the tasks of the first try: a batch is paid for once', async () => {
	const execution = await scene.runImages(STUMBLING, { node: TRIES });
	expect(statesOf(succeeded(execution))).toEqual(Array(3).fill('SUCCESS'));
	expect(scene.creates).toHaveLength(3);
});

test('Retry from the list of executions takes up the tasks of the first execution', async () => {
	const started = await scene.startImages(STUMBLING, { options: { ifSomeFail: 'stop' } });
	expect((await started.end()).status).toBe('error');
	expect(statesOf(succeeded(await started.retry()))).toEqual(Array(3).fill('SUCCESS'));
	expect(scene.creates).toHaveLength(3);
});

test('Retry On Fail and a retry from the list pay for nothing again where n8n refuses the output itself', async () => {
	const started = await scene.startImages([{}], {
		// n8n adds files to this field, and can add none to a text.
		fields: [{ _files: 'a.png' }],
		options: { includeInput: true, downloadResults: true },
		settings: { binaryMode: 'combined' },
		node: TRIES,
	});
	const refusal = 'Binary data could not be converted';
	expect(errorOf(await started.end())?.message).toContain(refusal);
	expect(errorOf(await started.retry())?.message).toContain(refusal);
	expect(scene.creates).toHaveLength(1);
});

test('reads survive a service that stumbles, and the page of a firewall', async () => {
	const page = { body: '<html><title>Blocked</title></html>', contentType: 'text/html' };
	const execution = await scene.runImages([
		{ readStatus: { status: 502, times: 1, ...page } },
		{ readStatus: { status: 403, times: 4, ...page } },
		{ readStatus: { status: 429, times: 1, retryAfter: 2 } },
		{ readStatus: { status: 404, times: 1 } },
		{ readStatus: { status: 410, times: 2 } },
		{ readStatus: { status: 401, times: 1 } },
		{ readStatus: { status: 403, times: 2 } },
		{ readDropped: { times: 1 } },
		{ readCutShort: { times: 1 } },
	]);
	expect(statesOf(execution)).toEqual(Array(9).fill('SUCCESS'));
	expect(scene.creates).toHaveLength(9);
});

test('a bad expression in item 300 stops the batch while it is still free', async () => {
	const prompt = "={{ $itemIndex === 299 ? $('No such node').item.json.prompt : $json.prompt }}";
	const execution = await scene.runImages(times(300, {}), { parameters: { prompt } });
	expect(execution.status).toBe('error');
	expect(scene.creates).toEqual([]);
});

describe('an execution that ends while its tasks go on', () => {
	test.each([
		['that is stopped', undefined],
		["by n8n's time-out", 8],
	])('%s ends the reads, and is in the log with its task', async (_, executionTimeout) => {
		const settings = { executionTimeout };
		const started = await scene.startImages([{ latencyMs: 3_600_000 }], { settings });
		await until('the task', 30_000, () => scene.tasks.length > 0);
		if (executionTimeout === undefined) await started.stop();
		expect((await started.end(30_000)).status).toBe('canceled');
		// n8n keeps nothing of what a stopped node says: its log names the task that goes on.
		await scene.logged(`without paying again: ${scene.taskIds[0]}`);
		const before = scene.service.requests.length;
		await sleep(5000);
		expect(scene.service.requests).toHaveLength(before);
	});

	test('with its caller, of which n8n does not tell a sub-workflow, creates nothing more', async () => {
		const { client } = scene;
		const { id } = await client.createWorkflow({
			name: 'Called',
			...inARow(called(), ...scene.oneByOne()),
		});
		await client.publish(id, []);
		const { workflowId } = await scene.start('Caller', call(id));
		await scene.expectStopHeard(workflowId);
	});

	test('while creates are under way names what was sent without an answer, and the task when the answer comes after all', async () => {
		const before = scene.log.length;
		const log = () => scene.log.slice(before);
		scene.service.configure({ createDelayMs: 30_000 });
		const started = await scene.startImages(times(8, { latencyMs: 60_000 }));
		await until('the first create', 30_000, () => scene.creates.length > 0);
		await sleep(500);
		await started.stop();
		expect((await started.end()).status).toBe('canceled');
		await until('the list', 25_000, () => log().includes('Sent, but the answer was lost: item 1'));
		// Neither the stop nor the list waits for an answer.
		expect(scene.creates.filter(({ status }) => status !== undefined)).toEqual([]);
		for (const taskId of scene.taskIds) expect(log()).not.toContain(taskId);
		await until('the late answers', 60_000, () =>
			scene.taskIds.every((taskId) => log().includes(`created task ${taskId}`)),
		);
		expect(log()).toMatch(
			/created task \S+ \(execution \d+, item 1\), after the execution was stopped/,
		);
		expect(log()).not.toMatch(/unhandled/i);
		// Nothing was created after the stop.
		expect(scene.creates.length).toBeLessThan(8);
	}, 180_000);
});
