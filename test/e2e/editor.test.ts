import type { IConnections, IDataObject, INode } from 'n8n-workflow';

import { type SimulatedService, startService } from '../service/service';
import { countClicks, type Editor, inEditor, openEditorOf } from './editor';
import { inARow, manualTrigger, node, to } from './nodes';
import { until } from '../n8n/client';
import { openScene } from './scene';
import { Stage } from './stage';

/** n8n's editor in a browser, steered as a user does. */

const { test, describe } = inEditor('The tests in the editor');

const shown = async (part: { innerText(): Promise<string> }) => await part.innerText();

describe('in the editor', () => {
	let editor: Editor;
	const scene = openScene({ open: async () => await Stage.open() });
	openEditorOf(scene, (opened) => (editor = opened));

	describe('as a new user', () => {
		let prefixed: SimulatedService;
		beforeAll(async () => {
			prefixed = await startService({ pathPrefix: '/v1' });
		});
		afterAll(async () => await prefixed?.close());

		test('the node is among the first that a search finds, and "credits" and Enter lead to the credits node', async () => {
			// n8n adds how popular a node is to how well it matches, and knows that of its own nodes alone. "image" and "video"
			// match seven and three of these as fully as ours.
			const latest = {
				picture: 3,
				photo: 3,
				'AI image': 3,
				'AI video': 3,
				'text to image': 3,
				'generate image': 3,
				'image generation': 3,
				'create video': 3,
				callback: 3,
				image: 8,
				video: 4,
			};
			const find = async (text: string, title: string) => {
				// What the search before has found must be gone.
				await editor.search('no such node');
				await editor.entry('Media Generation').waitFor({ state: 'hidden' });
				await editor.search(text);
				await editor.entry(title).waitFor();
				return await editor.entryTitles();
			};
			for (const [text, place] of Object.entries(latest)) {
				const titles = await find(text, 'Media Generation');
				console.log(`"${text}": ${titles.indexOf('Media Generation') + 1} of ${titles.length}`);
				expect(titles.slice(0, place)).toContain('Media Generation');
			}
			const title = 'Media Generation Credits';
			expect((await find('credits', title))[0]).toBe(title);
			await editor.page.keyboard.press('Enter');
			await editor.entry('Get credit balance').waitFor();
		}, 180_000);

		test('a search finds the three nodes and their actions', async () => {
			for (const text of ['generate', 'media']) {
				await editor.search(text);
				await editor.entry('Media Generation').waitFor();
			}
			// n8n shows the action node and the trigger as one.
			await editor.entry('Media Generation Credits').waitFor();
			expect(await shown(editor.entry('Media Generation'))).toContain('Generate images and videos');
			await editor.entry('Media Generation').click();
			await editor.entry('On task succeeded').waitFor();
			await editor.toggle('Actions');
			await editor.entry('Generate video').waitFor();
			const titles = await editor.entryTitles();
			const actions = [
				'Generate image',
				'Generate video',
				'Create task',
				'Get task',
				'Wait for task',
			];
			const all = ['On task failed', 'On task succeeded', ...actions];
			expect(titles).toEqual(expect.arrayContaining(all));
		});

		test('the node behind each of ours shows its fields to drag, before anything has run', async () => {
			const media = (name: string, parameters: object) =>
				scene.media({ prompt: 'A cat', options: {}, ...parameters }, { name });
			const fields = {
				Image: ['resultUrls', 'creditsConsumed', 'estimatedCostUsd', 'prompt'],
				Video: ['resultUrls', 'image_url', 'duration'],
				Task: ['taskId', 'state', 'resultUrls'],
				Credits: ['balance'],
			};
			const ours = [
				media('Image', {}),
				media('Video', { resource: 'video', operation: 'generate' }),
				media('Task', { resource: 'task', operation: 'get', taskId: 'task-1' }),
				scene.stage.mediaNode('mediaGenerationCredits', 'Credits', {}),
			];
			const rows = ours.map((each, row) => {
				const next = node('n8n-nodes-base.noOp', `Next to ${each.name}`, {});
				each.position = [200, 200 * row];
				next.position = [400, 200 * row];
				return inARow(each, next);
			});
			const start = manualTrigger();
			const { id } = await scene.client.createWorkflow({
				name: 'Fields',
				nodes: [start, ...rows.flatMap(({ nodes }) => nodes)],
				connections: Object.assign(
					{ [start.name]: { main: to(...Object.keys(fields)) } },
					...rows.map(({ connections }) => connections),
				) as IConnections,
			});
			await editor.openWorkflow(id);
			for (const [name, shown] of Object.entries(fields)) {
				await editor.openNode(`Next to ${name}`);
				const input = editor.get('ndv-input-panel');
				for (const field of shown) await input.getByText(field, { exact: true }).first().waitFor();
				await editor.closePanel();
			}
		}, 180_000);

		test('the credential dialog says what is wrong, and takes what is right', async () => {
			const { url, apiKey } = scene.service;
			await editor.add('Media Generation', 'Generate image');
			await editor.firstCredential();

			await editor.saveCredential(`${prefixed.url}/`, prefixed.apiKey);
			// It closes by itself when the test has succeeded, and tests again when it is opened again.
			await editor.dialog.waitFor({ state: 'hidden' });
			await editor.editCredential();
			await editor.credentialWorks();

			const noService = "This 'Service' does not answer at this";
			const withoutScheme =
				'is not an address with https:// or http:// before it. Start it with https';
			const wrong: Array<[string, string, string]> = [
				[url, 'sk-live-wrong', "does not accept this 'API Key' (401)"],
				[url.replace('http://', ''), apiKey, withoutScheme],
				[`${url}/api/generate`, apiKey, "ends in '/api/generate'. Leave that out"],
				[`${url}/elsewhere`, apiKey, noService],
			];
			for (const [baseUrl, key, message] of wrong) {
				await editor.saveCredential(baseUrl, key);
				await editor.credentialFails(message);
			}
			// A site that answers a web page to everything is not the service.
			scene.service.configure({
				creditsStatus: { status: 200, body: '<!doctype html>', contentType: 'text/html' },
			});
			await editor.saveCredential(`${url}/`, apiKey);
			await editor.credentialFails(noService);
			scene.service.resetSettings();

			await editor.saveCredential(url, apiKey);
			await editor.credentialWorks();
		});

		test('the panel of the trigger shows its URLs and that a workflow needs no address', async () => {
			await editor.add('Media Generation', 'On task succeeded');
			await editor.panel.getByText('Webhook URLs').click();
			await editor.panel.getByText(/webhook-test\/[\w-]+\/callback/).waitFor();
			await editor.panel.getByText('Production URL', { exact: true }).click();
			await editor.panel.getByText(/webhook\/[\w-]+\/callback/).waitFor();
			expect(await shown(editor.panel)).toContain('When this workflow is published');
			// As the pages call it; n8n calls it otherwise for its own Webhook node.
			expect(await shown(editor.get('node-execute-button'))).toBe('Execute step');
			await editor.closePanel();
			expect(await shown(editor.node('Media Generation Trigger'))).toContain('task succeeded');
		});
	});

	describe('with a credential that knows the input of its models', () => {
		const painter = {
			type: 'object',
			required: ['prompt', 'aspect_ratio'],
			properties: {
				prompt: { type: 'string' },
				aspect_ratio: {
					type: 'string',
					description: 'Shape of the picture',
					enum: ['1:1', '16:9', '9:16'],
					default: '1:1',
				},
				style: { type: 'string', enum: ['oil', 'ink'] },
				num_images: { type: 'integer', default: 4 },
				seed: { type: 'integer', description: 'The same seed makes the same picture' },
			},
		};
		const sketcher = `{
			"prompt": "A cat", // what to draw
			"aspect_ratio": "1:1",
			"lines": 3,
			"fine": true,
		}`;
		let credentials: INode['credentials'];
		const model = (id: string, inputExample: string) => ({
			...{ id, priceUsd: 0.05, unit: 'task', inputExample },
		});

		beforeAll(async () => {
			const { url: baseUrl, apiKey } = scene.service;
			await scene.deleteCredentials();
			const { id, name } = await scene.client.createCredential('Models', 'mediaGenerationApi', {
				...{ baseUrl, apiKey },
				models: {
					model: [
						model('acme/painter', JSON.stringify(painter)),
						model('acme/sketcher', sketcher),
						model('acme/broken', "{ prompt: 'A cat' }"),
						model('acme/silent', ''),
					],
				},
			});
			credentials = { mediaGenerationApi: { id, name } };
		});

		test('a beginner makes three pictures in 16:9 in nine clicks, and Model stays empty', async () => {
			const clicks = await countClicks(editor);
			await editor.add('Media Generation', 'Generate image');
			await editor.modelField('aspect_ratio').waitFor();
			await editor.parameter('prompt').click();
			await editor.page.keyboard.type('A lighthouse\nA harbour\nA boat');
			await editor.parameter('promptPerLine').click();
			await editor.chooseValue('aspect_ratio', '16:9');
			await editor.execute();
			await editor.outputHas('3 tasks, about 0.15 USD');
			console.log(`${clicks()} clicks`);
			expect(clicks()).toBeGreaterThan(5);
			expect(clicks()).toBeLessThanOrEqual(9);
			expect(scene.tasks.map(({ record }) => [record.model, record.input])).toEqual(
				['A lighthouse', 'A harbour', 'A boat'].map((prompt) => [
					'acme/painter',
					{ aspect_ratio: '16:9', prompt },
				]),
			);
		}, 240_000);

		/** A workflow whose prompt comes from a node that has not run, so that the panel cannot evaluate it. */
		async function openRows(id: string) {
			const model = { __rl: true, mode: 'list', value: id };
			const parameters = { prompt: '={{ $json.prompt }}', model, options: {} };
			const media = scene.media(parameters, { credentials });
			const row = { mode: 'raw', jsonOutput: '{ "prompt": "A cat" }', options: {} };
			const rows = node('n8n-nodes-base.set', 'Rows', row, 3.4);
			const workflow = await scene.client.createWorkflow({
				name: 'Rows',
				...inARow(manualTrigger(), rows, media),
			});
			const stored = async () => {
				const { nodes } = await scene.client.getWorkflow(workflow.id);
				return nodes.find(({ name }) => name === media.name)?.parameters ?? {};
			};
			await editor.openWorkflow(workflow.id);
			await editor.openNode(media.name);
			return { name: media.name, stored };
		}

		test('to open a node changes nothing that it orders, whatever values the example has', async () => {
			const { stored } = await openRows('acme/sketcher');
			const { modelFields: _none, ...before } = await stored();
			await editor.modelField('lines').waitFor();
			expect(await editor.modelField('lines').locator('input').inputValue()).toBe('');
			// A switch would be shown as off, and not be sent.
			expect(await editor.modelField('fine').locator('input').inputValue()).toBe('(Not Sent)');
			await editor.closePanel();
			await editor.page.keyboard.press('Control+s');
			const schemaOf = ({ modelFields }: IDataObject) => (modelFields as IDataObject)?.schema;
			await until('n8n to store what the panel has shown', 30_000, async () => {
				return schemaOf(await stored()) !== undefined;
			});
			const { modelFields, ...after } = await stored();
			expect(after).toEqual(before);
			expect(Object(modelFields)).toMatchObject({ value: {} });
			await editor.page.keyboard.press('Control+Enter');
			await until('the order', 60_000, () => scene.tasks.length === 1);
			expect(scene.tasks.map(({ record }) => record.input)).toEqual([{ prompt: 'A cat' }]);
			await until('the end of the run', 60_000, async () => {
				const [last] = await scene.client.listExecutions();
				return last?.status === 'success';
			});
		}, 240_000);

		test("another model's fields are told and refused while the panel cannot follow, and are the model's own when the node is opened again", async () => {
			const { name } = await openRows('acme/painter');
			await editor.chooseValue('style', 'oil');
			await editor.chooseModel('acme/sketcher');
			const hint = "The fields under 'Model Fields' are those of another model";
			await editor.outputHas(hint);
			await editor.settle();
			await editor.execute();
			await editor.outputHas("'Model Fields' has 'style', which was not entered for the model");
			expect(scene.tasks).toEqual([]);
			await editor.closePanel();
			await editor.openNode(name);
			await editor.modelField('lines').waitFor();
			await editor.modelField('style').waitFor({ state: 'detached' });
			await editor.settle();
			expect(await editor.output.getByText(hint).count()).toBe(0);
			await editor.execute();
			await editor.outputHas('1 task, about 0.05 USD');
			expect(scene.tasks.map(({ record }) => record.input)).toEqual([{ prompt: 'A cat' }]);
		}, 240_000);
	});

	describe('with a credential', () => {
		beforeAll(async () => {
			const { url: baseUrl, apiKey } = scene.service;
			await scene.deleteCredentials();
			await scene.client.createCredential('Media Generation', 'mediaGenerationApi', {
				baseUrl,
				apiKey,
			});
		});

		async function addImage(): Promise<void> {
			await editor.add('Media Generation', 'Generate image');
			await editor.fill('prompt', 'A lighthouse at dusk');
		}

		test('a prompt becomes a picture, which the output panel shows; the panel says what it costs, before and after the run', async () => {
			await editor.add('Media Generation', 'Generate image');
			await editor.execute();
			await editor.outputHas("The parameter 'Prompt' is empty");
			expect(scene.tasks).toEqual([]);
			await editor.fill('prompt', 'A lighthouse at dusk');
			await editor.execute();
			await editor.outputHas('1 task, about 0.08 USD');
			await editor.showOutput('JSON');
			await editor.outputHas('SUCCESS');
			await editor.outputHas('resultUrls');
			await editor.showOutput('Binary');
			await editor.get('ndv-view-binary-data').click();
			expect(await editor.widthOf(editor.output.locator('img'))).toBeGreaterThan(100);
			await editor.closePanel();
			expect(await shown(editor.node('Generate image'))).toContain('image: generate');
		});

		test('a run that sleeps after a short hold shows on the canvas that it waits, says in its panel how far it is, and goes on there, also where the node had another name meanwhile', async () => {
			const { client, service } = scene;
			service.configure({ latencyMs: 3_600_000 });
			await addImage();
			await editor.addOption('Sleep After (Minutes)');
			await editor.fill('suspendAfter', '0.05');
			await editor.closePanel();
			const node = editor.node('Generate image');
			await editor.page.keyboard.press('Control+Enter');
			await node.locator('[class*="_waiting_"]').first().waitFor();
			await editor.openNode('Generate image');
			await editor.outputHas(/1 task created, 0 finished.*The run sleeps/);
			await editor.closePanel();
			await editor.rename('Generate image', 'Pictures');
			service.complete(scene.taskIds[0] ?? '');
			let seen = '';
			const said = () =>
				`the end of the run: n8n lists ${seen}, and logs:\n${scene.log.slice(-3_000)}`;
			await until(said, 180_000, async () => {
				const executions = await client.listExecutions();
				seen = JSON.stringify(executions);
				return executions[0]?.status === 'success';
			});
			await editor.rename('Pictures', 'Generate image');
			await node.getByTestId('canvas-node-status-success').waitFor({ timeout: 180_000 });
			await editor.openNode('Generate image');
			await editor.showOutput('JSON');
			await editor.showOutput('JSON');
			await editor.outputHas('SUCCESS');
			const executions = await client.listExecutions();
			expect(executions.filter(({ mode }) => mode !== 'manual')).toEqual([]);
		}, 600_000);

		test('a trigger whose URL was copied starts for a callback, also for one that was lost at first', async () => {
			await editor.add('Media Generation', 'On task succeeded');
			await editor.panel.getByText('Webhook URLs').click();
			await editor.panel.getByText('Production URL', { exact: true }).click();
			await editor.panel.getByText(/webhook\/[\w-]+\/callback/).click();
			await editor.toast.getByText('URL copied').waitFor();
			const url = await editor.page.evaluate(async () => await navigator.clipboard.readText());
			const { pathname } = new URL(url);
			await editor.closePanel();
			await editor.get('workflow-open-publish-modal-button').click();
			await editor.get('workflow-publish-button').click();
			await editor.get('workflow-active-version-indicator').waitFor();
			await editor.page.getByRole('button', { name: 'Got it' }).click();
			await scene.client.waitForWebhook(pathname);
			const triggerUrl = editor.page.url();

			scene.service.configure({ callbackLost: true, latencyMs: 0 });
			await editor.newWorkflow();
			await addImage();
			await editor.choose('completion', 'Notify a Trigger');
			await editor.paste('callbackUrl');
			await editor.panel.getByText('until all results have arrived').waitFor();
			await editor.execute();
			await editor.outputHas('PENDING');
			const [taskId = ''] = scene.taskIds;

			await editor.newWorkflow();
			await editor.add('Media Generation', 'Repeat callback of task');
			await editor.fill('taskId', taskId);
			await editor.paste('callbackUrl');
			await editor.execute();
			await editor.showOutput('JSON');
			await editor.outputHas('"delivered"');
			await editor.page.goto(triggerUrl);
			await editor.get('radio-button-executions').click();
			await editor.get('current-executions-list').getByText('Succeeded').first().waitFor();
		}, 300_000);
	});
});
