import type { IDataObject, INode } from 'n8n-workflow';

import { outputItems, until } from '../../n8n/client';
import { call, called, inARow, linked, prompts, webhook } from '../nodes';
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
	story(
		'a batch that sleeps comes out in one execution: in order, linked, with its files and those of its input, and what failed on the error output',
		async () => {
			const ownPicture = { downloadResults: true, includeInput: true, additionalInput: '{}' };
			const order = { ...AT_ONCE, downloadResults: true, includeInput: true, splitResults: true };
			const run = await scene.start(
				'Batch',
				prompts('Batch', [
					{ latencyMs: 9_000 },
					{ latencyMs: 3_000, outcome: 'FAILURE', failureMessage: 'no such colour' },
					{ latencyMs: 2_000, resultCount: 2 },
				]),
				scene.image({ prompt: 'A lighthouse', options: ownPicture }, { name: 'Picture' }),
				scene.image(
					{ options: { ...order, outputBinaryField: 'result' } },
					{ onError: 'continueErrorOutput' },
				),
				linked(),
			);
			const execution = succeeded(await run.end(6 * MINUTE));
			expect(run.sleeps).toBeGreaterThan(0);
			expect(await run.others()).toEqual([]);
			const [media, ...further] = execution.data.resultData.runData.Media ?? [];
			expect(further).toEqual([]);
			const failed = { error: expect.stringContaining('no such colour') as string };
			expect(media?.data?.main?.[1]).toMatchObject([{ json: failed, pairedItem: { item: 1 } }]);
			const items = outputItems(execution, 'Linked');
			expect(
				items.map(({ json }) => [json.linked, json.prompt, json.state, json.resultIndex]),
			).toEqual([
				['Batch 0', 'Batch 0', 'SUCCESS', 0],
				['Batch 2', 'Batch 2', 'SUCCESS', 0],
				['Batch 2', 'Batch 2', 'SUCCESS', 1],
			]);
			for (const { binary = {} } of items) {
				expect(Object.keys(binary).sort()).toEqual(['data', 'result']);
				for (const { id = '' } of Object.values(binary)) {
					expect((await scene.client.file(id)).length).toBeGreaterThan(1_000);
				}
			}
		},
	);

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
