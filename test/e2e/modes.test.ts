import { readFileSync } from 'node:fs';
import type { IDataObject, INode } from 'n8n-workflow';

import { describe as describeExecution, type Execution, outputItems } from '../n8n/client';
import { inARow, itemsNode, manualTrigger, node, Stage } from './stage';

let stage: Stage;
beforeAll(async () => {
	stage = await Stage.open({ N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem' });
}, 900_000);
afterAll(async () => await stage?.close());
beforeEach(() => {
	stage.reset();
});

const IMAGE = { resource: 'image', operation: 'generate', prompt: '={{ $json.prompt }}' };
/** Lets an item of the test steer the simulated service. */
const SIMULATE = { additionalInput: '={{ { simulate: $json.simulate ?? {} } }}' };

/** Runs one node of this package over some items. */
async function run(
	parameters: IDataObject,
	items: IDataObject[] = [{}],
	more: Partial<INode> = {},
	type: Parameters<Stage['mediaNode']>[0] = 'mediaGeneration',
): Promise<Execution> {
	const { client } = stage;
	const workflow = await client.createWorkflow({
		name: 'One node',
		...inARow(
			manualTrigger(),
			itemsNode('Items', items),
			stage.mediaNode(type, 'Media', parameters, more),
		),
	});
	return await client.waitForExecution(await client.run(workflow.id));
}

async function outputOf(...args: Parameters<typeof run>) {
	const execution = await run(...args);
	if (execution.status !== 'success') throw new Error(describeExecution(execution));
	return outputItems(execution, 'Media');
}

const someTask = () => stage.service.createTask('any/model', { prompt: 'made elsewhere' });

test('wait: the items carry every field of the contract, in input order', async () => {
	const items = await outputOf({ ...IMAGE, completion: 'wait', options: SIMULATE }, [
		{ prompt: 'slow', simulate: { latencyMs: 3000 } },
		{ prompt: 'quick', simulate: { latencyMs: 0 } },
	]);
	expect(items.map(({ json }) => (json.input as IDataObject).prompt)).toEqual(['slow', 'quick']);
	for (const [index, { json, pairedItem }] of items.entries()) {
		expect(Object.keys(json).sort()).toEqual(
			[
				'taskId',
				'state',
				'resultUrls',
				'creditsConsumed',
				'model',
				'input',
				'record',
				'estimatedCostUsd',
			].sort(),
		);
		expect(json).toMatchObject({ state: 'SUCCESS', creditsConsumed: 8, estimatedCostUsd: 0.08 });
		expect(pairedItem).toEqual({ item: index });
	}
});

test('split results are linked to the item that asked for them', async () => {
	const media = stage.mediaNode('mediaGeneration', 'Media', {
		...IMAGE,
		options: { ...SIMULATE, splitResults: true },
	});
	const prompts = ['one', 'three', 'two'].map((prompt, index) => ({
		prompt,
		simulate: { resultCount: [1, 3, 2][index], latencyMs: 1500 - 500 * index },
	}));
	const asked = node(
		'n8n-nodes-base.code',
		'Asked',
		{
			mode: 'runOnceForEachItem',
			jsCode: "return { json: { ...$json, asked: $('Items').item.json.prompt } };",
		},
		2,
	);
	const { client } = stage;
	const workflow = await client.createWorkflow({
		name: 'Split results',
		...inARow(manualTrigger(), itemsNode('Items', prompts), media, asked),
	});
	const execution = await client.waitForExecution(await client.run(workflow.id));
	const items = outputItems(execution, 'Asked').map(({ json }) => json);
	expect(items.map((json) => [json.asked, json.resultIndex])).toEqual([
		['one', 0],
		['three', 0],
		['three', 1],
		['three', 2],
		['two', 0],
		['two', 1],
	]);
	for (const { asked: prompt, input } of items) expect(input).toMatchObject({ prompt });
});

test('return: the item leaves at once, and task: get and task: wait fetch it later', async () => {
	const [created] = await outputOf({ ...IMAGE, completion: 'return', options: SIMULATE }, [
		{ prompt: 'later', simulate: { latencyMs: 4000 } },
	]);
	expect(created?.json).toMatchObject({ state: 'PENDING', resultUrls: [], creditsConsumed: null });
	expect(stage.service.requests.filter(({ method }) => method === 'GET')).toEqual([]);
	const taskId = created?.json.taskId;
	const [pending] = await outputOf({ resource: 'task', operation: 'get', taskId });
	expect(pending?.json).toMatchObject({ taskId, state: 'PENDING' });
	const [finished] = await outputOf({ resource: 'task', operation: 'wait', taskId });
	expect(finished?.json).toMatchObject({
		taskId,
		state: 'SUCCESS',
		resultUrls: [expect.any(String)],
	});
	expect(finished?.json).not.toHaveProperty('model');
});

test('trigger: without a published trigger nothing is created and the message says what to do', async () => {
	const execution = await run({ ...IMAGE, completion: 'trigger' }, [{ prompt: 'x' }]);
	expect(execution.status).toBe('error');
	expect(execution.data.resultData.error?.message).toContain('Media Generation Trigger');
	expect(stage.service.tasks.size).toBe(0);
});

test('trigger: nor is it found by a retry of that run, or by a sub-workflow that a run by hand calls', async () => {
	const { client } = stage;
	const trigger = () => stage.mediaNode('mediaGenerationTrigger', 'Finished', {});
	const media = () =>
		stage.mediaNode('mediaGeneration', 'Media', { ...IMAGE, prompt: 'x', completion: 'trigger' });
	const alone = inARow(manualTrigger(), media());
	const workflow = await client.createWorkflow({
		name: 'Not published',
		...alone,
		nodes: [...alone.nodes, trigger()],
	});
	const failed = await client.waitForExecution(await client.run(workflow.id));
	const retried = await client.waitForExecution(await client.retryExecution(failed.id));

	const called = inARow(
		node('n8n-nodes-base.executeWorkflowTrigger', 'Called', { inputSource: 'passthrough' }, 1.1),
		media(),
	);
	const child = await client.createWorkflow({
		name: 'Called, and not published',
		...called,
		nodes: [...called.nodes, trigger()],
	});
	const parent = await client.createWorkflow({
		name: 'Calls',
		...inARow(
			manualTrigger(),
			node(
				'n8n-nodes-base.executeWorkflow',
				'Call',
				{ workflowId: { __rl: true, mode: 'id', value: child.id }, options: {} },
				1.2,
			),
		),
	});
	const calling = await client.waitForExecution(await client.run(parent.id));
	for (const execution of [failed, retried, calling]) {
		expect(execution.status).toBe('error');
		// n8n 2.0 runs no sub-workflow that is not published.
		expect(execution.data.resultData.error?.message).toMatch(
			/Media Generation Trigger|Workflow is not active/,
		);
	}
	expect(stage.service.tasks.size).toBe(0);
});

test('a video is made from the picture of the item before, and both are downloaded as files', async () => {
	const { client } = stage;
	const download = { downloadResults: true };
	const workflow = await client.createWorkflow({
		name: 'Image to video',
		...inARow(
			manualTrigger(),
			stage.mediaNode('mediaGeneration', 'Image', {
				...IMAGE,
				prompt: 'a lighthouse',
				options: download,
			}),
			stage.mediaNode('mediaGeneration', 'Video', {
				resource: 'video',
				operation: 'generate',
				prompt: 'waves roll in',
				imageSource: 'binary',
				durationSeconds: 2,
				options: download,
			}),
		),
	});
	const execution = await client.waitForExecution(await client.run(workflow.id));
	if (execution.status !== 'success') throw new Error(describeExecution(execution));
	const [image] = outputItems(execution, 'Image');
	const [video] = outputItems(execution, 'Video');
	expect(image?.binary?.data).toMatchObject({ mimeType: 'image/png', fileExtension: 'png' });
	expect(video?.binary?.data).toMatchObject({ mimeType: 'video/mp4', fileExtension: 'mp4' });
	expect(video?.json).toMatchObject({ estimatedCostUsd: 0.205 });
	const sent = [...stage.service.tasks.values()].at(-1)?.record.input as IDataObject;
	expect(sent.image_url).toMatch(/^data:image\/png;base64,iVBOR/);
	// The media host was given no key.
	const media = stage.service.requests.filter(({ host }) => host === 'media');
	expect(media.length).toBeGreaterThanOrEqual(2);
	expect(media.every(({ authorization }) => authorization === undefined)).toBe(true);
});

describe('one item of three fails', () => {
	const items = [
		{ prompt: 'one', simulate: { latencyMs: 500 } },
		{
			prompt: 'two',
			simulate: { latencyMs: 100, outcome: 'FAILURE', failureMessage: 'no such colour' },
		},
		{ prompt: 'three', simulate: { latencyMs: 3000 } },
	];
	const parameters = { ...IMAGE, completion: 'wait', options: SIMULATE };

	test('by default the others leave, and the failed one with its error', async () => {
		const media = await outputOf(parameters, items);
		expect(media.map(({ json }) => json.state)).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS']);
		expect(media[1]?.json.error).toContain('no such colour');
	});

	test('where it is to stop, the node stops after the others are finished, and names every task', async () => {
		const options = { ...SIMULATE, ifSomeFail: 'stop' };
		const execution = await run({ ...parameters, options }, items);
		expect(execution.status).toBe('error');
		const error = execution.data.resultData.error as unknown as {
			message: string;
			description: string;
		};
		const [one, two, three] = [...stage.service.tasks.keys()];
		expect(error.message).toContain('no such colour');
		expect(error.message).toContain(two);
		expect(error.description).toContain(`2 tasks succeeded and are paid for: ${one}, ${three}.`);
		expect(error.description).toContain(`1 task failed, which is usually free: ${two}`);
	});

	test('with On Error: Continue every item comes out, the failed one with its task id', async () => {
		const output = await outputOf(parameters, items, { onError: 'continueRegularOutput' });
		const [, two] = [...stage.service.tasks.keys()];
		expect(output.map(({ json }) => json.state)).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS']);
		expect(output[1]?.json).toMatchObject({
			taskId: two,
			error: expect.stringContaining('no such colour'),
		});
	});

	test('with On Error: Continue (using error output) it leaves by the second output', async () => {
		const execution = await run(parameters, items, { onError: 'continueErrorOutput' });
		const outputs = execution.data.resultData.runData.Media?.[0]?.data?.main ?? [];
		expect(outputs[0]?.map(({ json }) => json.state)).toEqual(['SUCCESS', 'SUCCESS']);
		const [, two] = [...stage.service.tasks.keys()];
		expect(outputs[1]?.map(({ json }) => json)).toEqual([
			expect.objectContaining({
				prompt: 'two',
				error: expect.stringContaining('no such colour'),
				details: expect.objectContaining({ taskId: two, state: 'FAILURE' }),
			}),
		]);
	});
});

test('a wrong key is told once, with the way out, and appears nowhere', async () => {
	stage.service.rotateApiKey('sk-live-another');
	const execution = await run({ ...IMAGE, completion: 'wait' }, [{ prompt: 'x' }]);
	stage.service.rotateApiKey(stage.credentialKey);
	expect(execution.data.resultData.error?.message).toContain('The service refused the API key');
	expect(JSON.stringify(execution.data)).not.toContain(stage.credentialKey);
});

describe('credits', () => {
	const credits = async (options: IDataObject, more: Partial<INode> = {}) =>
		await run({ operation: 'getBalance', options }, [{}], more, 'mediaGenerationCredits');

	test('the balance is found', async () => {
		const [item] = outputItems(await credits({}), 'Media');
		expect(item?.json).toMatchObject({ balance: stage.service.balance, record: expect.anything() });
	});

	test('below the minimum the item is an error that names both figures', async () => {
		const execution = await credits({ minimumBalance: 1e9 });
		const message = execution.data.resultData.error?.message;
		expect(message).toContain(String(stage.service.balance));
		expect(message).toContain('1000000000');
	});
});

test('a stopped execution ends at once', async () => {
	const { client } = stage;
	const workflow = await client.createWorkflow({
		name: 'Stopped',
		...inARow(
			manualTrigger(),
			stage.mediaNode('mediaGeneration', 'Media', {
				...IMAGE,
				prompt: 'long',
				options: { additionalInput: '{ "simulate": { "latencyMs": 60000 } }' },
			}),
		),
	});
	const id = await client.run(workflow.id);
	while (stage.service.tasks.size === 0) await new Promise((resolve) => setTimeout(resolve, 50));
	await client.stopExecution(id);
	const execution = await client.waitForExecution(id, 10_000);
	expect(execution.status).toBe('canceled');
	// n8n keeps nothing of what a stopped node says: its log names the task that goes on.
	const [taskId = ''] = stage.service.tasks.keys();
	expect(readFileSync(stage.runner.logFile, 'utf8')).toContain(`billed if it succeeds: ${taskId}`);
	const reads = () => stage.service.requests.length;
	const before = reads();
	await new Promise((resolve) => setTimeout(resolve, 5000));
	expect(reads()).toBe(before);
});

test('somebody else’s task can be waited for, many at once', async () => {
	const ids = [someTask(), someTask(), someTask()].map(({ taskId }) => ({ taskId }));
	const items = await outputOf(
		{ resource: 'task', operation: 'wait', taskId: '={{ $json.taskId }}' },
		ids,
	);
	expect(items.map(({ json }) => json.taskId)).toEqual(ids.map(({ taskId }) => taskId));
});
