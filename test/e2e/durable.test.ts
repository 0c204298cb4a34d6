import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject, INode } from 'n8n-workflow';

import { type Execution, outputItems, TEST_OWNER, until } from '../n8n/client';
import { missingInN8n, type Need } from '../n8n/differences';
import { shortMinute, WHOLE_MINUTE } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { Collector } from './collector';
import { needing } from './needs';
import { inARow, itemsNode, manualTrigger, node, Stage } from './stage';

/**
 * What can happen to a suspended run while it waits, all of it at the same time, on an n8n whose minutes are short. The
 * times of the stories are those of an n8n as it is.
 */

let stage: Stage;
let collector: Collector;

const MINUTE = 60_000;

/** All stories begin within it. */
const MINUTE_HERE = 10_000;

/** How long a time of a story lasts here. */
const short = (ms: number) => (ms * MINUTE_HERE) / MINUTE;

/** A task whose callback never comes. */
const silent = (latencyMs: number, more: IDataObject = {}) => ({
	latencyMs: short(latencyMs),
	callbackLost: true,
	...more,
});

const scenarios: Array<{ title: string; run: () => Promise<void>; need: Need }> = [];
const outcomes = new Map<string, Promise<void>>();

/** A test that runs beside the others. */
function scenario(title: string, run: () => Promise<void>, need: Need = 'suspending'): void {
	scenarios.push({ title, run, need });
}

/** The node of most scenarios; its prompts tell the tasks of a run from those of the others. */
const media = (options: IDataObject = {}, more: Partial<INode> = {}) =>
	stage.mediaNode(
		'mediaGeneration',
		'Media',
		{
			resource: 'image',
			operation: 'generate',
			prompt: '={{ $json.prompt }}',
			options: { ...AT_ONCE, additionalInput: '={{ { simulate: $json.simulate } }}', ...options },
		},
		more,
	);

/** Notes the prompt of the item that each item is linked to. */
const linked = (name = 'Linked') =>
	node(
		'n8n-nodes-base.set',
		name,
		{
			assignments: {
				assignments: [
					{
						id: '1',
						name: 'linked',
						type: 'string',
						value: "={{ $('Prompts').item.json.prompt }}",
					},
				],
			},
			includeOtherFields: true,
			options: {},
		},
		3.4,
	);

const prompts = (name: string, switches: IDataObject[]) =>
	itemsNode(
		'Prompts',
		switches.map((simulate, index) => ({ prompt: `${name} ${index}`, simulate })),
	);

/** Creates a workflow of nodes in a row and runs it by hand. */
async function start(name: string, nodes: INode[], settings: IDataObject = {}) {
	const workflow = await stage.client.createWorkflow({
		name,
		...inARow(manualTrigger(), ...nodes),
		settings,
	});
	return { workflowId: workflow.id, id: await stage.client.run(workflow.id) };
}

const end = async (id: string, timeoutMs = 4 * MINUTE) =>
	await stage.client.waitForExecution(id, timeoutMs);
const itemsOf = (execution: Execution, name = 'Media') =>
	outputItems(execution, name).map(({ json }) => json);
const statesOf = (execution: Execution, name = 'Media') =>
	itemsOf(execution, name).map(({ state }) => state);

/** The tasks whose prompts begin like this, oldest first. */
const tasksOf = (name: string) =>
	[...stage.service.tasks.values()].filter(({ record }) =>
		String((record.input as IDataObject).prompt).startsWith(`${name} `),
	);

const readsOf = (name: string) => {
	const ids = tasksOf(name).map(({ taskId }) => taskId);
	return stage.service.requests.filter(
		({ method, path }) => method === 'GET' && ids.some((id) => path.endsWith(id)),
	);
};

/** The sub-executions of a workflow, by their states. */
async function subExecutions(workflowId: string, id: string) {
	const all = await stage.client.listExecutions({ workflowId });
	return all.filter((execution) => execution.id !== id);
}

scenario('without any callback the run comes out complete, in order, linked', async () => {
	const name = 'Silent';
	const { id } = await start(name, [
		prompts(name, [
			silent(5_000),
			silent(2_000, { outcome: 'FAILURE', failureMessage: 'no such colour' }),
			silent(25_000),
		]),
		media(),
		linked(),
	]);
	const execution = await end(id);
	expect(execution.status).toBe('success');
	expect(statesOf(execution, 'Linked')).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS']);
	expect(itemsOf(execution, 'Linked').map((json) => json.linked)).toEqual([
		`${name} 0`,
		`${name} 1`,
		`${name} 2`,
	]);
	expect(itemsOf(execution)[1]?.error).toContain('no such colour');
	// One at the first check, one at the last; and at most one for each check between.
	expect(readsOf(name).length).toBeLessThanOrEqual(8);
});

scenario('a run that is stopped has its tasks read no more', async () => {
	const name = 'Stopped';
	const { workflowId, id } = await start(name, [prompts(name, [silent(600_000)]), media()]);
	await stage.client.waitForSuspension(id);
	await stage.client.stopExecution(id);
	const before = readsOf(name).length;
	await until('the sub-executions to end', 4 * MINUTE, async () => {
		const subs = await subExecutions(workflowId, id);
		return subs.length === 2 && subs.every(({ status }) => status === 'success');
	});
	expect(readsOf(name)).toHaveLength(before);
	expect((await stage.client.getExecution(id)).status).toBe('canceled');
});

scenario(
	'the sub-execution that checks is stopped: another goes on in its place',
	async () => {
		const name = 'Replaced';
		const { workflowId, id } = await start(name, [prompts(name, [silent(90_000)]), media()]);
		await stage.client.waitForSuspension(id);
		const [checker] = await subExecutions(workflowId, id);
		await stage.client.stopExecution(checker?.id ?? '');
		expect(statesOf(await end(id, 6 * MINUTE))).toEqual(['SUCCESS']);
	},
	'endOfSubExecutions',
);

scenario(
	'the sub-execution that supervises is stopped: the run ends and says so',
	async () => {
		const name = 'Cancelled';
		const { workflowId, id } = await start(name, [prompts(name, [silent(600_000)]), media()]);
		await stage.client.waitForSuspension(id);
		const [, supervisor] = await subExecutions(workflowId, id);
		await stage.client.stopExecution(supervisor?.id ?? '');
		const execution = await end(id);
		expect(execution.status).toBe('error');
		expect(execution.data.resultData.error?.message).toContain('cancelled');
	},
	'endOfSubExecutions',
);

scenario('a workflow that is renamed, edited and switched off meanwhile', async () => {
	const name = 'Edited';
	const { workflowId, id } = await start(name, [
		prompts(name, [silent(20_000)]),
		media(),
		collector.node(),
	]);
	await stage.client.waitForSuspension(id);
	await stage.client.updateWorkflow(workflowId, {
		name: 'Renamed',
		...inARow(manualTrigger(), itemsNode('Other', [{}])),
	});
	expect(statesOf(await end(id))).toEqual(['SUCCESS']);
});

scenario('a credential that is deleted meanwhile: the tasks are named at the timeout', async () => {
	const name = 'Deleted';
	const { id: credentialId, name: credentialName } = await stage.client.createCredential(
		'Short-lived',
		'mediaGenerationApi',
		{ baseUrl: stage.service.url, apiKey: stage.service.apiKey },
	);
	const credentials = { mediaGenerationApi: { id: credentialId, name: credentialName } };
	const { id } = await start(name, [
		prompts(name, [silent(600_000)]),
		media({ timeout: 20 }, { credentials }),
	]);
	await stage.client.waitForSuspension(id);
	await stage.client.deleteCredential(credentialId);
	const { status, data } = await end(id);
	expect(status).toBe('error');
	const { taskId } = tasksOf(name)[0] ?? {};
	expect(data.resultData.error?.message).toBe(
		`Task ${taskId} is not finished after 20 s (last state: PENDING)`,
	);
});

const SETTINGS: Array<[string, IDataObject]> = [
	['Private', { callerPolicy: 'none' }],
	['Unsaved', { saveDataSuccessExecution: 'none', saveDataErrorExecution: 'none' }],
];
for (const [name, settings] of SETTINGS) {
	scenario(`a workflow with the settings ${JSON.stringify(settings)}`, async () => {
		const { id } = await start(
			name,
			[prompts(name, [silent(75_000)]), media(), collector.node()],
			settings,
		);
		await stage.client.waitForSuspension(id);
		const [task] = tasksOf(name);
		await until('the node behind to be reached', 4 * MINUTE, async () =>
			Promise.resolve(collector.seen.includes(task?.taskId ?? '')),
		);
	});
}

scenario('in a sub-workflow', async () => {
	const name = 'Nested';
	const { client } = stage;
	const child = await client.createWorkflow({
		name: 'Child',
		...inARow(
			node('n8n-nodes-base.executeWorkflowTrigger', 'Called', { inputSource: 'passthrough' }, 1.1),
			media(),
		),
	});
	await client.publish(child.id);
	const { id } = await start(name, [
		prompts(name, [silent(5_000), silent(15_000)]),
		node(
			'n8n-nodes-base.executeWorkflow',
			'Call',
			{ workflowId: { __rl: true, mode: 'id', value: child.id }, options: {} },
			1.2,
		),
		linked(),
	]);
	const execution = await end(id);
	expect(statesOf(execution, 'Linked')).toEqual(['SUCCESS', 'SUCCESS']);
	expect(itemsOf(execution, 'Linked').map((json) => json.linked)).toEqual([
		`${name} 0`,
		`${name} 1`,
	]);
});

scenario('twice, one after the other', async () => {
	const name = 'Twice';
	const again = { ...media(), name: 'Again', id: crypto.randomUUID() };
	again.parameters = {
		...again.parameters,
		prompt: `=${name} again {{ $itemIndex }}`,
		options: { additionalInput: '={{ { simulate: { latencyMs: 3000 } } }}' },
	};
	const { id } = await start(name, [
		prompts(name, [{ latencyMs: 3_000 }, { latencyMs: 6_000 }]),
		media(),
		again,
	]);
	const execution = await end(id);
	expect(statesOf(execution)).toEqual(['SUCCESS', 'SUCCESS']);
	expect(statesOf(execution, 'Again')).toEqual(['SUCCESS', 'SUCCESS']);
	expect(tasksOf(name)).toHaveLength(4);
});

scenario('in two branches', async () => {
	const name = 'Branches';
	const [from, to] = [prompts(name, [{ latencyMs: 4_000 }]), media()];
	const other = { ...media(), name: 'Other', id: crypto.randomUUID() };
	const { nodes, connections } = inARow(manualTrigger(), from, to);
	connections.Prompts?.main?.[0]?.push({ node: 'Other', type: 'main', index: 0 });
	const workflow = await stage.client.createWorkflow({
		name,
		nodes: [...nodes, other],
		connections,
	});
	const execution = await end(await stage.client.run(workflow.id));
	expect(statesOf(execution)).toEqual(['SUCCESS']);
	expect(statesOf(execution, 'Other')).toEqual(['SUCCESS']);
	expect(tasksOf(name)).toHaveLength(2);
});

scenario('in a loop', async () => {
	const name = 'Loop';
	const loop = node('n8n-nodes-base.splitInBatches', 'Loop', { batchSize: 1, options: {} }, 3);
	const { nodes, connections } = inARow(
		manualTrigger(),
		prompts(name, [{ latencyMs: 3_000 }, { latencyMs: 3_000 }]),
		loop,
	);
	connections.Loop = { main: [[], [{ node: 'Media', type: 'main', index: 0 }]] };
	connections.Media = { main: [[{ node: 'Loop', type: 'main', index: 0 }]] };
	const workflow = await stage.client.createWorkflow({
		name,
		nodes: [...nodes, media()],
		connections,
	});
	const execution = await end(await stage.client.run(workflow.id));
	expect(execution.status).toBe('success');
	expect(execution.data.resultData.runData.Media).toHaveLength(2);
	expect(tasksOf(name)).toHaveLength(2);
});

scenario(
	'retried from the list after it was stopped, it lets its items out as they are',
	async () => {
		const name = 'Retried';
		const { id } = await start(name, [prompts(name, [silent(30_000), silent(5_000)]), media()]);
		await stage.client.waitForSuspension(id);
		await stage.client.stopExecution(id);
		const retried = await end(await stage.client.retryExecution(id));
		expect(itemsOf(retried).map(({ taskId, timedOut }) => [taskId, timedOut])).toEqual(
			tasksOf(name).map(({ taskId }) => [taskId, true]),
		);
		expect(tasksOf(name)).toHaveLength(2);
	},
);

scenario(
	'in a sub-workflow that is run once for each item, n8n goes on with the first that ends',
	async () => {
		const name = 'Each';
		const { client } = stage;
		const child = await client.createWorkflow({
			name: 'Called for each',
			...inARow(
				node(
					'n8n-nodes-base.executeWorkflowTrigger',
					'Called',
					{ inputSource: 'passthrough' },
					1.1,
				),
				media(),
				collector.node(),
			),
		});
		await client.publish(child.id);
		const { id } = await start(name, [
			prompts(name, [silent(5_000), silent(5_000), silent(5_000)]),
			node(
				'n8n-nodes-base.executeWorkflow',
				'Call',
				{ workflowId: { __rl: true, mode: 'id', value: child.id }, mode: 'each', options: {} },
				1.2,
			),
		]);
		expect(itemsOf(await end(id), 'Call')).toHaveLength(1);
		// Each of them comes to its own end.
		await until('the tasks to be seen', 4 * MINUTE, async () =>
			Promise.resolve(tasksOf(name).every(({ taskId }) => collector.seen.includes(taskId))),
		);
		expect(tasksOf(name)).toHaveLength(3);
	},
	'endOfSubExecutions',
);

scenario(
	'whose tasks failed, retried from the list: n8n says the same again',
	async () => {
		const name = 'Failed again';
		const { id } = await start(name, [
			prompts(name, [{ latencyMs: 3_000, outcome: 'FAILURE' }]),
			media(),
		]);
		const failed = await end(id);
		const retried = await end(await stage.client.retryExecution(id));
		expect([failed.status, retried.status]).toEqual(['error', 'error']);
		expect(tasksOf(name)).toHaveLength(1);
	},
	'endOfSubExecutions',
);

scenario(
	'the sub-execution that checks is deleted: the run waits on until it is stopped',
	async () => {
		const name = 'Unchecked';
		const { workflowId, id } = await start(name, [prompts(name, [silent(600_000)]), media()]);
		await stage.client.waitForSuspension(id);
		const [checker] = await subExecutions(workflowId, id);
		await stage.client.deleteExecution(checker?.id ?? '');
		await sleep(short(2.5 * MINUTE));
		expect((await stage.client.getExecution(id)).status).toBe('waiting');
		await stage.client.stopExecution(id);
	},
	'endOfSubExecutions',
);

scenario('results are downloaded, and the node behind has them', async () => {
	const name = 'Files';
	const { id } = await start(name, [
		prompts(name, [{ latencyMs: 5_000 }]),
		media({ downloadResults: true }),
		node(
			'n8n-nodes-base.code',
			'Bytes',
			{
				jsCode:
					"const bytes = await this.helpers.getBinaryDataBuffer(0, 'data'); return [{ json: { data: bytes.toString('base64') } }];",
			},
			2,
		),
	]);
	const execution = await end(id);
	expect(execution.status).toBe('success');
	const [item] = outputItems(execution, 'Media');
	expect(item?.binary?.data?.mimeType).toBe('image/png');
	const [bytes] = itemsOf(execution, 'Bytes');
	expect(Buffer.from(String(bytes?.data), 'base64').subarray(1, 4).toString()).toBe('PNG');
});

scenario(
	'failed tasks leave by the error output, with the fields of their items',
	async () => {
		const name = 'Errors';
		const { id } = await start(name, [
			prompts(name, [{ latencyMs: 3_000 }, { latencyMs: 3_000, outcome: 'FAILURE' }]),
			media({}, { onError: 'continueErrorOutput' }),
		]);
		const execution = await end(id);
		const [ok, failed] = execution.data.resultData.runData.Media?.[0]?.data?.main ?? [];
		expect(ok?.map(({ json }) => json.state)).toEqual(['SUCCESS']);
		expect(failed).toHaveLength(1);
		expect(failed?.[0]?.json).toMatchObject({
			prompt: `${name} 1`,
			error: expect.stringContaining('failed') as string,
			details: { state: 'FAILURE', taskId: tasksOf(name)[1]?.taskId },
		});
	},
	'endOfSubExecutions',
);

scenario(
	'where all tasks failed the node stops, and names them',
	async () => {
		const name = 'Hopeless';
		const { id } = await start(name, [
			prompts(name, [{ latencyMs: 3_000, outcome: 'FAILURE' }]),
			media(),
		]);
		const execution = await end(id);
		expect(execution.status).toBe('error');
		expect(execution.data.resultData.error?.message).toContain('failed at the service');
		expect(JSON.stringify(execution.data.resultData.error)).toContain(tasksOf(name)[0]?.taskId);
	},
	'endOfSubExecutions',
);

beforeAll(async () => {
	stage = await Stage.open(shortMinute(MINUTE_HERE));
	collector = await Collector.open();
	for (const { title, run, need } of scenarios) {
		if (missingInN8n(need) !== undefined) continue;
		const outcome = run();
		outcome.catch(() => undefined);
		outcomes.set(title, outcome);
		await sleep(300);
	}
}, 900_000);
afterAll(async () => {
	collector?.close();
	await stage?.close();
});

for (const { title, need } of scenarios) {
	needing(need, title).test(title, async () => await outcomes.get(title), 8 * MINUTE);
}

/**
 * More of them, at random moments, take minutes: `CUTS=3 npm run test:e2e -- durable`. One of these may hit an
 * execution that is just starting another one, which n8n does not mend: `supervisor.test.ts` has that moment.
 */
const CUTS = Number(process.env.CUTS ?? 0);

needing('endOfSubExecutions', 'A power cut').test(
	'20 runs without any callback survive a power cut while all of them wait',
	async () => {
		const { client, service } = stage;
		service.configure({ callbackLost: true });
		// Nothing is due before the power is cut.
		await stage.stop();
		await stage.restart(WHOLE_MINUTE);
		await client.login(TEST_OWNER);
		const startedAt = Date.now();
		const ids: string[] = [];
		for (let index = 0; index < 20; index++) {
			const { id } = await start(`Cut ${index}`, [
				prompts(`Cut${index}`, [silent(5_000), silent(600_000 + 15_000 * index)]),
				media(),
			]);
			ids.push(id);
		}
		for (const id of ids) await client.waitForSuspension(id);
		const isQuiet = async () => {
			const all = await client.listExecutions({ status: ['running', 'waiting'] });
			const soon = Date.now() + 2_000;
			return all.every(
				({ status, waitTill }) => status === 'waiting' && Date.parse(waitTill ?? '') > soon,
			);
		};
		await until('nothing to be at work', 4 * MINUTE, isQuiet);
		await stage.kill();
		await stage.restart(shortMinute(MINUTE_HERE));
		for (let cut = 0; cut < CUTS; cut++) {
			await sleep(10_000 + Math.random() * 30_000);
			await stage.killAndRestart();
		}
		const late: number[] = [];
		for (const id of ids) {
			const execution = await end(id, 10 * MINUTE);
			expect(statesOf(execution)).toEqual(['SUCCESS', 'SUCCESS']);
			late.push(new Date(String(execution.stoppedAt)).getTime() - startedAt);
		}
		expect(service.tasks.size).toBeGreaterThanOrEqual(40);
		console.log(
			`20 runs, ${CUTS + 1} power cuts, no callback: all complete, the last ${Math.max(...late) / 1000} s after the first began`,
		);
	},
	20 * MINUTE,
);
