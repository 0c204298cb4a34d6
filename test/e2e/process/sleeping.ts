import type { IDataObject, INode, INodeExecutionData, ITaskData } from 'n8n-workflow';

import { type Execution, until } from '../../n8n/client';
import { call, called, inARow, linked, prompts, webhook, withField } from '../nodes';
import { errorOf, itemsOf, promptOf, Run, statesOf, type Story, succeeded } from '../run';
import { AT_ONCE, type Order, type Scene } from '../scene';

const MINUTE = 60_000;

/**
 * A run that sleeps, and that n8n runs again: what comes out is what comes out of a run that is held, in one execution, and
 * what may happen to the run meanwhile.
 *
 * @param keys an account of its own
 */
export function testSleeping(scene: Scene, keys: Scene, story: Story): void {
	const MODES: Record<string, IDataObject> = {
		held: { suspendAfter: 30 },
		'asleep from the start': AT_ONCE,
	};

	const image = (mode: IDataObject, options: IDataObject = {}, more: Partial<INode> = {}) =>
		scene.image({ options: { downloadResults: true, ...mode, ...options } }, more);

	/** What ends while the run is held, what ends later, and what is not finished when its time is up. */
	const BATCH: Array<{ simulate: IDataObject; timeout?: number }> = [
		{ simulate: { latencyMs: 0 } },
		{ simulate: { latencyMs: 3_000, outcome: 'FAILURE', failureMessage: 'no such colour' } },
		{ simulate: { latencyMs: 12_000, resultCount: 2 } },
		{ simulate: { latencyMs: 15_000, outcome: 'FAILURE', failureMessage: 'no such form' } },
		{ simulate: { latencyMs: 3_600_000 }, timeout: 20 },
		{ simulate: { latencyMs: 2_500 } },
	];

	const batch = async (mode: IDataObject, options: IDataObject = {}, node?: Partial<INode>) =>
		await scene.startImages(
			BATCH.map(({ simulate }) => simulate),
			{
				fields: BATCH.map(({ timeout = 0 }) => ({ timeout })),
				options: {
					timeout: '={{ $json.timeout }}',
					downloadResults: true,
					reference: '=row {{ $itemIndex }}',
					...mode,
					...options,
				},
				node,
				after: [linked()],
			},
		);

	const BOTH = [{ latencyMs: 9_000 }, { latencyMs: 2_000, resultCount: 2 }];
	const both = () => prompts('Prompt', BOTH);

	const SHAPES: Record<string, (mode: IDataObject) => Promise<Run>> = {
		'a batch of which some items fail': async (mode) =>
			await batch(mode, {}, { onError: 'continueErrorOutput' }),
		'the input and its files beside each result, in a second node': async (mode) => {
			const again = withField('Again', 'prompt', '={{ $json.input.prompt }}');
			const picture = image({}, {}, { name: 'Picture' });
			const options = { includeInput: true, splitResults: true };
			return await scene.start('Prompt', both(), picture, again, image(mode, options));
		},
	};

	const lengthOf = async (id: string | undefined) => id && (await scene.client.file(id)).length;

	/** An item, without the id of its files. */
	const itemOf = async ({ json, binary = {}, pairedItem }: INodeExecutionData) => ({
		json,
		pairedItem,
		files: await Promise.all(
			Object.entries(binary).map(async ([field, { id, ...file }]) => ({
				...file,
				field,
				kept: id?.split(':')[0],
				length: await lengthOf(id),
			})),
		),
	});

	async function outputsOf({ data }: ITaskData) {
		const all = data?.main ?? [];
		const outputs = await Promise.all(
			all.map(async (items) => await Promise.all((items ?? []).map(itemOf))),
		);
		while (outputs.at(-1)?.length === 0) outputs.pop();
		return outputs;
	}

	/** What came out of each run of each node, with the ids, the times and the places of files made alike. */
	async function comparable({ status, data }: Execution): Promise<unknown> {
		const { error, runData } = data.resultData;
		const { description } = (error ?? {}) as { description?: string };
		const nodes: Record<string, unknown> = {};
		for (const [name, runs] of Object.entries(runData)) {
			nodes[name] = await Promise.all(runs.map(outputsOf));
		}
		const text = JSON.stringify({
			status,
			error: error && { message: error.message, description },
			nodes,
		});
		const named = scene.tasks.reduce(
			(all, { taskId, record }) => all.replaceAll(taskId, `the task of '${promptOf(record)}'`),
			text,
		);
		const files = named.replaceAll(/-[0-9a-f]{4}((?:-\d+)?\.\w+")/g, '-task$1');
		return JSON.parse(files.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'a time')) as unknown;
	}

	for (const [shape, start] of Object.entries(SHAPES)) {
		story(`${shape}: held or asleep, the same comes out`, async () => {
			const started = Object.values(MODES).map(async (options) => await start(options));
			const [held, asleep] = await Promise.all(
				(await Promise.all(started)).map(async (run) => {
					const end = await comparable(await run.end(6 * MINUTE));
					expect(await run.others()).toEqual([]);
					return end;
				}),
			);
			expect(asleep).toEqual(held);
		});
	}

	/** Starts a run that sleeps from the start; its name begins its prompts. */
	const start = async (name: string, switches: IDataObject[], order: Order = {}) =>
		await scene.startImages(switches, {
			name,
			...order,
			options: { ...AT_ONCE, ...order.options },
		});

	/** A task that ends when the test says so. */
	const LATER: IDataObject = { latencyMs: 3_600_000 };

	story(
		'the API key is rotated meanwhile: the next turn has the new key, and orders nothing again',
		async () => {
			const { service, credential } = keys.stage;
			const options = AT_ONCE;
			const run = await (
				await keys.startImages([LATER, LATER], { name: 'Rotated', options })
			).asleep(2);
			const before = run.reads;
			service.rotateApiKey('sk-live-second-key');
			for (const taskId of run.taskIds) service.complete(taskId);
			await until('a read in vain', 2 * MINUTE, () => run.reads > before);
			expect((await run.now()).status).not.toBe('error');
			const stored = { ...credential, type: 'mediaGenerationApi' };
			const data = { baseUrl: service.url, apiKey: 'sk-live-second-key' };
			await keys.client.updateCredential(stored, data);
			expect(statesOf(succeeded(await run.end()))).toEqual(['SUCCESS', 'SUCCESS']);
			expect(run.tasks).toHaveLength(2);
		},
	);

	story("the workflow's own time limit ends the wait before n8n cancels the run", async () => {
		const settings = { executionTimeout: 190 };
		const node = { onError: 'continueRegularOutput' as const };
		const run = await start('Limited', [LATER, LATER], { settings, node });
		const items = itemsOf(succeeded(await run.end()));
		expect(run.sleeps).toBeGreaterThan(0);
		expect(items.map(({ taskId, state, timedOut }) => [taskId, state, timedOut])).toEqual(
			run.taskIds.map((taskId) => [taskId, 'PENDING', true]),
		);
	});

	/** @param start the trigger, at that path, and the field of its form */
	async function upload(name: string, start: INode, path: string, field: string) {
		const { client, service, stage } = scene;
		const video = scene.media({
			resource: 'video',
			operation: 'generate',
			prompt: `${name} 0\n${name} 1`,
			promptPerLine: true,
			imageSource: 'binary',
			binaryPropertyName: 'picture',
			downloadResults: false,
			options: { ...AT_ONCE, ifSomeFail: 'stop', additionalInput: { simulate: LATER } },
		});
		const { id } = await client.createWorkflow({ name, ...inARow(start, video) });
		await client.publish(id);
		const form = new FormData();
		form.set(field, new Blob([PNG], { type: 'image/png' }), 'picture.png');
		await until(`${path} to answer`, MINUTE, async () => {
			const answer = await fetch(stage.webhookUrl + path, { method: 'POST', body: form });
			await answer.arrayBuffer();
			return answer.status === 200;
		});
		const [newest] = await client.listExecutions({ workflowId: id });
		const run = await new Run(scene, newest?.id ?? '', id, name).asleep(2);
		await until('both orders', 2 * MINUTE, () => run.tasks.length === 2);
		await run.asleep(run.sleeps + 1);
		const [first = '', second = ''] = run.taskIds;
		service.complete(first);
		service.complete(second, 'FAILURE');
		expect(errorOf(await run.end())?.message).toContain(second);
		expect(run.tasks.map(({ record }) => promptOf(record))).toEqual([`${name} 0`, `${name} 1`]);
		// The picture itself was sent.
		const sent = run.tasks.map(({ record }) => String((record.input as IDataObject).image_url));
		expect(sent).toEqual(Array(2).fill(expect.stringMatching(/^data:image\/png;base64,/)));

		const retried = run.retry();
		await until('the order of the failed line', 2 * MINUTE, () => run.tasks.length === 3);
		service.complete(run.taskIds[2] ?? '');
		expect(statesOf(succeeded(await retried))).toEqual(['SUCCESS', 'SUCCESS']);
		expect(run.tasks.map(({ record }) => promptOf(record))).toEqual([
			`${name} 0`,
			`${name} 1`,
			`${name} 1`,
		]);
	}

	const PNG = Buffer.from(
		'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
		'base64',
	);

	story(
		'a file that was uploaded, which n8n gives another id when the run sleeps: each line is ordered once, and by a retry what has failed',
		async () => {
			const started = webhook('Upload');
			await upload('Posted', started, `/webhook/${started.webhookId}`, 'picture');
		},
	);

	story('a run that n8n wakes a second time while it orders', async () => {
		const run = await (await scene.startTurns('Doubled', 12)).inALaterTurn();
		const now = new Date().toISOString().replace('T', ' ').replace('Z', '');
		await scene.stage.database.execute(
			`update execution_entity set status = 'waiting', "waitTill" = '${now}' where id = ${run.id}`,
		);
		const execution = succeeded(await run.end(8 * MINUTE));
		// What is left of the window that the first wake had begun is in doubt, and is never ordered again.
		const items = itemsOf(execution);
		const states = items.map(({ state, error }) =>
			String(error).startsWith('It is not known') ? 'in doubt' : state,
		);
		expect(states).toHaveLength(12);
		expect(states.filter((state) => state !== 'SUCCESS' && state !== 'in doubt')).toEqual([]);
		expect(states.filter((state) => state === 'SUCCESS').length).toBeGreaterThanOrEqual(2);
		const ordered = run.tasks.map(({ record }) => promptOf(record));
		expect(new Set(ordered).size).toBe(ordered.length);
	});
	story(
		'a sub-workflow sleeps where Sleep After is set by hand; its caller sleeps, too, and a hint says what n8n loses',
		async () => {
			const { client } = scene;
			const child = inARow(called(), scene.image({ options: AT_ONCE }));
			const { id: childId } = await client.createWorkflow({ name: 'Chosen: called', ...child });
			await client.publish(childId);
			const caller = await scene.start(
				'Chosen',
				prompts('Chosen', [{ latencyMs: 3_000 }]),
				call(childId),
			);
			expect(statesOf(succeeded(await caller.end()), 'Call')).toEqual(['SUCCESS']);
			const [{ id } = { id: '' }] = await client.listExecutions({ workflowId: childId });
			expect(new Run(scene, id, childId, 'Chosen').sleeps).toBeGreaterThan(0);
			const { runData } = (await client.getExecution(id)).data.resultData;
			const hints = (runData.Media ?? []).flatMap(({ hints: each = [] }) => each);
			const said = hints.map(({ message }) => message).join('\n');
			expect(said).toContain("'Sleep After' is set");
			expect(said).toContain('n8n gives the waiting workflow the last run of the last node only');
		},
	);
}
