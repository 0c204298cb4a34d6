import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject, INode } from 'n8n-workflow';

import { type Execution, outputItems, until } from '../n8n/client';
import { call, called, inARow, itemNodes, linked, manualTrigger } from './nodes';
import { errorOf, itemsOf, promptOf, statesOf, succeeded } from './run';
import { openScene } from './scene';

const scene = openScene();

/** Runs one node of this package over some items. */
async function run(node: INode, items: IDataObject[] = [{}]): Promise<Execution> {
	return await scene.run('One node', itemNodes('Items', items), node);
}

const outputOf = async (node: INode, items?: IDataObject[]) =>
	itemsOf(succeeded(await run(node, items)));

test('wait: the items carry every field of the contract, in input order', async () => {
	const execution = await run(scene.image({ completion: 'wait' }), [
		{ prompt: 'slow', simulate: { latencyMs: 3000 } },
		{ prompt: 'quick', simulate: { latencyMs: 0 } },
	]);
	const items = outputItems(succeeded(execution), 'Media');
	expect(items.map(({ json }) => promptOf(json))).toEqual(['slow', 'quick']);
	for (const [index, { json, pairedItem }] of items.entries()) {
		expect(Object.keys(json).sort()).toEqual([
			'creditsConsumed',
			'estimatedCostUsd',
			'input',
			'model',
			'record',
			'resultUrls',
			'state',
			'taskId',
		]);
		expect(json).toMatchObject({ state: 'SUCCESS', creditsConsumed: 8, estimatedCostUsd: 0.08 });
		expect(pairedItem).toEqual({ item: index });
	}
});

test('split results are linked to the item that asked for them', async () => {
	const items = ['one', 'three', 'two'].map((prompt, index) => ({
		prompt,
		simulate: { resultCount: [1, 3, 2][index], latencyMs: 1500 - 500 * index },
	}));
	const media = scene.image({ options: { splitResults: true } });
	const started = await scene.start('Split results', itemNodes('Prompts', items), media, linked());
	const split = itemsOf(await started.end(), 'Linked');
	expect(split.map((item) => [item.linked, promptOf(item), item.resultIndex])).toEqual([
		['one', 'one', 0],
		['three', 'three', 0],
		['three', 'three', 1],
		['three', 'three', 2],
		['two', 'two', 0],
		['two', 'two', 1],
	]);
});

test('return: the item leaves at once, and task: get and task: wait fetch it later', async () => {
	const later = { prompt: 'later', simulate: { latencyMs: 4000 } };
	const [created] = await outputOf(scene.image({ completion: 'return' }), [later]);
	expect(created).toMatchObject({ state: 'PENDING', resultUrls: [], creditsConsumed: null });
	expect(scene.reads).toEqual([]);
	const taskId = created?.taskId;
	const fetch = async (operation: string) =>
		(await outputOf(scene.media({ resource: 'task', operation, taskId })))[0];
	expect(await fetch('get')).toMatchObject({ taskId, state: 'PENDING' });
	const finished = await fetch('wait');
	expect(finished).toMatchObject({ taskId, state: 'SUCCESS', resultUrls: [expect.any(String)] });
	expect(finished).not.toHaveProperty('model');
});

describe('trigger, where none is published', () => {
	const order = () => scene.image({ prompt: 'x', completion: 'trigger' });

	test('trigger: without a published trigger nothing is created and the message says what to do', async () => {
		const execution = await run(order());
		expect(execution.status).toBe('error');
		expect(errorOf(execution)?.message).toContain('Media Generation Trigger');
		expect(scene.tasks).toEqual([]);
	});

	test('trigger: nor is it found by a retry of that run, or by a sub-workflow that a run by hand calls', async () => {
		const withTrigger = (name: string, start: INode) => {
			const wired = inARow(start, order());
			return { name, ...wired, nodes: [...wired.nodes, scene.trigger()] };
		};
		const alone = await scene.startWorkflow(withTrigger('Not published', manualTrigger()));
		const failed = await alone.end();
		const retried = await alone.retry();
		const child = withTrigger('Called, and not published', called());
		const { id } = await scene.client.createWorkflow(child);
		const calling = await scene.run('Calls', call(id));
		for (const execution of [failed, retried, calling]) {
			expect(execution.status).toBe('error');
			// n8n 2.0 runs no sub-workflow that is not published.
			expect(errorOf(execution)?.message).toMatch(
				/Media Generation Trigger|Workflow is not active/,
			);
		}
		expect(scene.tasks).toEqual([]);
	});
});

test('a video is made from the picture of the item before, and both are downloaded as files', async () => {
	const options = { downloadResults: true };
	const started = await scene.start(
		'Image to video',
		scene.image({ prompt: 'a lighthouse', options }, { name: 'Image' }),
		scene.media(
			{
				resource: 'video',
				operation: 'generate',
				prompt: 'waves roll in',
				imageSource: 'binary',
				durationSeconds: 2,
				options,
			},
			{ name: 'Video' },
		),
	);
	const execution = succeeded(await started.end());
	const [image] = outputItems(execution, 'Image');
	const [video] = outputItems(execution, 'Video');
	expect(image?.binary?.data).toMatchObject({ mimeType: 'image/png', fileExtension: 'png' });
	expect(video?.binary?.data).toMatchObject({ mimeType: 'video/mp4', fileExtension: 'mp4' });
	expect(video?.json).toMatchObject({ estimatedCostUsd: 0.205 });
	expect(scene.tasks.at(-1)?.record.input.image_url).toMatch(/^data:image\/png;base64,iVBOR/);
	// The media host was given no key.
	const media = scene.service.requests.filter(({ host }) => host === 'media');
	expect(media.length).toBeGreaterThanOrEqual(2);
	expect(media.every(({ authorization }) => authorization === undefined)).toBe(true);
});

describe('one item of three fails', () => {
	const failing = { latencyMs: 100, outcome: 'FAILURE', failureMessage: 'no such colour' };
	const switches = [{ latencyMs: 500 }, failing, { latencyMs: 3000 }];
	const error = expect.stringContaining('no such colour') as string;

	const runThree = async (order: Parameters<typeof scene.startImages>[1] = {}) =>
		await scene.runImages(switches, order);

	test.each([
		['by default the others leave, and the failed one with its error', {}],
		[
			'with On Error: Continue every item comes out, the failed one with its task id',
			{ onError: 'continueRegularOutput' as const },
		],
	])('%s', async (_, node) => {
		const execution = succeeded(await runThree({ node }));
		expect(statesOf(execution)).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS']);
		expect(itemsOf(execution)[1]).toMatchObject({ taskId: scene.taskIds[1], error });
	});

	test('where it is to stop, the node stops after the others are finished, and names every task', async () => {
		const execution = await runThree({ options: { ifSomeFail: 'stop' } });
		expect(execution.status).toBe('error');
		const { message = '', description = '' } = errorOf(execution) ?? {};
		const [one, two, three] = scene.taskIds;
		expect(message).toContain('no such colour');
		expect(message).toContain(two);
		expect(description).toContain(`without paying again: ${one}, ${three}.`);
		expect(description).toContain(`1 task failed, which is usually free: ${two}`);
	});

	test('with On Error: Continue (using error output) it leaves by the second output', async () => {
		const execution = await runThree({ node: { onError: 'continueErrorOutput' } });
		expect(statesOf(execution)).toEqual(['SUCCESS', 'SUCCESS']);
		const details = expect.objectContaining({ taskId: scene.taskIds[1], state: 'FAILURE' });
		expect(outputItems(execution, 'Media', 1).map(({ json }) => json)).toEqual([
			expect.objectContaining({ prompt: 'Prompt 1', error, details }),
		]);
	});
});

test('a wrong key is told once, with the way out, and appears nowhere', async () => {
	const { service, stage } = scene;
	service.rotateApiKey('sk-live-another');
	const execution = await run(scene.image({ prompt: 'x' }));
	service.rotateApiKey(stage.credentialKey);
	expect(errorOf(execution)?.message).toContain('The service refused the API key');
	expect(JSON.stringify(execution.data)).not.toContain(stage.credentialKey);
});

describe('credits', () => {
	const credits = async (options: IDataObject) => {
		const parameters = { operation: 'getBalance', options };
		return await run(scene.stage.mediaNode('mediaGenerationCredits', 'Media', parameters));
	};

	test('the balance is found', async () => {
		expect(itemsOf(await credits({}))[0]).toMatchObject({
			balance: scene.service.balance,
			record: expect.anything(),
		});
	});

	test('below the minimum the item is an error that names both figures', async () => {
		const message = errorOf(await credits({ minimumBalance: 1e9 }))?.message;
		expect(message).toContain(String(scene.service.balance));
		expect(message).toContain('1000000000');
	});
});

test('a stopped execution ends at once', async () => {
	const started = await scene.startImages([{ latencyMs: 60_000 }]);
	await until('the task', 30_000, () => scene.tasks.length > 0);
	await started.stop();
	expect((await started.end(30_000)).status).toBe('canceled');
	// n8n keeps nothing of what a stopped node says: its log names the task that goes on.
	await scene.logged(`without paying again: ${scene.taskIds[0]}`);
	const before = scene.service.requests.length;
	await sleep(5000);
	expect(scene.service.requests).toHaveLength(before);
});

test('somebody else’s task can be waited for, many at once', async () => {
	const create = () => scene.service.createTask('any/model', { prompt: 'made elsewhere' });
	const ids = [create(), create(), create()].map(({ taskId }) => taskId);
	const items = await scene.onTasks('wait', ids);
	expect(items.map(({ taskId }) => taskId)).toEqual(ids);
});
