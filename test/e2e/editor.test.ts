import { missingInN8n } from '../n8n/differences';
import { type SimulatedService, startService } from '../service/service';
import { findChromium } from './chromium';
import type { Editor } from './editor';
import { needing } from './needs';
import { openEditor } from './openEditor';
import type { Stage } from './stage';

const chromium = findChromium();
if (chromium.missing) console.log(`The tests in the editor are left out. ${chromium.missing}`);
const describeInEditor = chromium.path ? describe : describe.skip;
const missing = missingInN8n('editor');
if (missing) console.log(`Some tests in the editor are left out. ${missing}`);
const testInThisEditor = missing ? test.skip : test;

describeInEditor('in the editor, as a new user', () => {
	let stage: Stage;
	let prefixed: SimulatedService;
	let editor: Editor;

	beforeAll(async () => {
		({ stage, editor } = await openEditor());
		await stage.client.deleteCredential(stage.credential.id);
		prefixed = await startService({ pathPrefix: '/v1' });
	}, 900_000);
	afterAll(async () => {
		await editor?.close();
		await prefixed?.close();
		await stage?.close();
	});
	beforeEach(async () => {
		stage.service.resetSettings();
		stage.service.clear();
		await editor.newWorkflow();
	});
	afterEach(async () => {
		// Also of a test that has just failed, when it shows why.
		await editor.keep(expect.getState().currentTestName ?? '');
		await editor.page.emulateMedia({ colorScheme: 'light' });
		expect(editor.errors.filter((text) => /media.?generation/i.test(text))).toEqual([]);
	});

	const shown = async (part: { innerText(): Promise<string> }) => await part.innerText();

	testInThisEditor('a search finds the three nodes and their actions', async () => {
		for (const text of ['image', 'text to image', 'video', 'generate', 'media']) {
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
		expect(titles).toEqual(
			expect.arrayContaining([
				'On task failed',
				'On task succeeded',
				'Generate image',
				'Generate video',
				'Create task',
				'Get task',
				'Wait for task',
			]),
		);
	});

	testInThisEditor(
		'the credential dialog says what is wrong, and takes what is right',
		async () => {
			const { url, apiKey } = stage.service;
			await editor.add('Media Generation', 'Generate image');
			const dialog = await editor.newCredential();

			await dialog.save(`${prefixed.url}/`, prefixed.apiKey);
			// It closes by itself when the test has succeeded, and tests again when it is opened again.
			await dialog.closed();
			await editor.editCredential();
			await dialog.success.waitFor();

			await dialog.save(url, 'sk-live-wrong');
			await dialog.says("does not accept this 'API Key' (401)");
			await dialog.save(url.replace('http://', ''), apiKey);
			await dialog.says(
				'is not an address with https:// or http:// before it. Start it with https://',
			);
			await dialog.save(`${url}/api/generate`, apiKey);
			await dialog.says("ends in '/api/generate'. Leave that out");
			await dialog.save(`${url}/elsewhere`, apiKey);
			await dialog.says('No media generation service answers at this');
			// A site that answers a web page to everything is not the service.
			stage.service.configure({
				creditsStatus: { status: 200, body: '<!doctype html>', contentType: 'text/html' },
			});
			await dialog.save(`${url}/`, apiKey);
			await dialog.says('No media generation service answers at this');
			stage.service.resetSettings();

			await dialog.save(url, apiKey);
			await dialog.success.waitFor();
		},
	);

	testInThisEditor('a prompt becomes a picture, which the output panel shows', async () => {
		await editor.add('Media Generation', 'Generate image');
		await editor.execute();
		await editor.toast.getByText('Parameter "Prompt" is required').waitFor();

		await editor.fill('prompt', 'A lighthouse at dusk');
		await editor.addOption('Download Results');
		await editor.execute();
		await editor.showOutput('JSON');
		await editor.outputHas('SUCCESS');
		await editor.outputHas('resultUrls');
		await editor.showOutput('Binary');
		await editor.get('ndv-view-binary-data').click();
		const picture = editor.output.locator('img');
		await picture.waitFor();
		expect(
			await picture.evaluate((image: HTMLImageElement) =>
				image.decode().then(() => image.naturalWidth),
			),
		).toBeGreaterThan(100);
	});

	testInThisEditor('a task that fails shows its reason, its id and what to do', async () => {
		stage.service.configure({ outcome: 'FAILURE', failureMessage: 'The prompt is not allowed.' });
		await editor.add('Media Generation', 'Generate image');
		await editor.fill('prompt', 'A lighthouse at dusk');
		await editor.execute();
		await editor.outputHas('The prompt is not allowed');
		const [taskId = ''] = stage.service.tasks.keys();
		expect(await shown(editor.output)).toContain(taskId);
		expect(await shown(editor.output)).toContain('Change the prompt or the input');
	});

	testInThisEditor(
		'a key that the service refuses during a run shows where to change it',
		async () => {
			stage.service.configure({ createStatus: 401 });
			await editor.add('Media Generation', 'Generate image');
			await editor.fill('prompt', 'A lighthouse at dusk');
			await editor.execute();
			await editor.outputHas('The service refused the API key (HTTP 401)');
			await editor.outputHas('Open the Media Generation credential and paste the API key');
		},
	);

	testInThisEditor('the panel says what it costs, before and after the run', async () => {
		await editor.add('Media Generation', 'Generate image');
		await editor.panel.getByText('The default model costs 0.08 USD per image').waitFor();
		const advice = editor.output.getByText("add the option 'Download Results'");
		await advice.waitFor();
		await editor.addOption('Download Results');
		await advice.waitFor({ state: 'hidden' });
		await editor.fill('prompt', 'A lighthouse at dusk');
		await editor.execute();
		await editor.outputHas('1 task created. Estimated price: 0.08 USD');
		await editor.closePanel();
		expect(await shown(editor.node('Generate image'))).toContain('image: generate');
	});

	testInThisEditor(
		'a run that is suspended after a short hold shows on the canvas that it waits, and goes on there',
		async () => {
			const { client, service } = stage;
			service.configure({ latencyMs: 3_600_000 });
			await editor.add('Media Generation', 'Generate image');
			await editor.fill('prompt', 'A lighthouse at dusk');
			await editor.addOption('Suspend After (Minutes)');
			await editor.fill('suspendAfter', '0.05');
			await editor.keep('suspend after');
			await editor.closePanel();
			const node = editor.node('Generate image');
			const suspend = async () => {
				await editor.page.keyboard.press('Control+Enter');
				await node.locator('[class*="_waiting_"]').first().waitFor();
				return [...service.tasks.keys()].at(-1) ?? '';
			};
			const first = await suspend();
			await editor.keep('waits on the canvas');
			await editor.openNode('Generate image');
			await editor.keep('waits in the panel');
			await editor.closePanel();
			service.complete(first);
			await node.getByTestId('canvas-node-status-success').waitFor({ timeout: 180_000 });
			await editor.openNode('Generate image');
			await editor.outputHas('SUCCESS');
			await editor.keep('has gone on');
			await editor.closePanel();

			// What a person sees who opens the executions that check.
			const second = await suspend();
			const url = editor.page.url().replace(/\?.*$/, '');
			const waiting = await client.listExecutions({ status: ['waiting'] });
			const subs = waiting.filter(({ mode }) => mode === 'integrated');
			expect(waiting.map(({ mode }) => mode).sort()).toEqual([
				'integrated',
				'integrated',
				'manual',
			]);
			for (const [index, { id }] of subs.entries()) {
				await editor.page.goto(`${url}/executions/${id}`);
				await editor.shows('n8n made this execution by itself');
				await editor.shows(/^(Checks the tasks|Hands on the results)$/);
				await editor.settle();
				await editor.keep(`sub-execution ${index}`);
			}
			service.complete(second);
			const [run] = waiting.filter(({ mode }) => mode === 'manual');
			expect((await client.waitForExecution(run?.id ?? '', 180_000)).status).toBe('success');
		},
		600_000,
	);

	testInThisEditor(
		'a trigger whose URL was copied starts for a callback, also for one that was lost at first',
		async () => {
			await editor.add('Media Generation', 'On task succeeded');
			const { pathname } = new URL(await editor.copyProductionUrl());
			await editor.closePanel();
			await editor.publish();
			await stage.client.waitForWebhook(pathname);
			const triggerUrl = editor.page.url();

			stage.service.configure({ callbackLost: true, latencyMs: 0 });
			await editor.newWorkflow();
			await editor.add('Media Generation', 'Generate image');
			await editor.fill('prompt', 'A lighthouse at dusk');
			await editor.choose('completion', 'Notify a Trigger');
			await editor.paste('callbackUrl');
			await editor.panel
				.getByText('If the service cannot reach n8n, n8n checks after one minute')
				.waitFor();
			await editor.execute();
			await editor.outputHas('PENDING');
			await editor.keep('notified');
			const [taskId = ''] = stage.service.tasks.keys();

			await editor.newWorkflow();
			await editor.add('Media Generation', 'Send result of task again');
			await editor.fill('taskId', taskId);
			await editor.paste('callbackUrl');
			await editor.execute();
			await editor.showOutput('JSON');
			await editor.outputHas('"delivered"');
			await editor.keep('redelivered');
			await editor.showSucceededExecution(triggerUrl);
		},
		300_000,
	);

	test('each completion and each operation shows its own fields', async () => {
		await editor.add('Media Generation', 'Generate image');
		await editor.choose('completion', 'Notify a Trigger');
		await editor.parameter('callbackUrl').waitFor();
		await editor.choose('completion', 'Wait for Results');
		await editor.parameter('callbackUrl').waitFor({ state: 'detached' });
		await editor.choose('resource', 'Video');
		await editor.parameter('durationSeconds').waitFor();
		await editor.parameter('imageUrl').waitFor();
		await editor.choose('imageSource', 'From Binary Data');
		await editor.parameter('binaryPropertyName').waitFor();
		await editor.parameter('imageUrl').waitFor({ state: 'detached' });
		await editor.choose('resource', 'Task');
		await editor.choose('operation', 'Wait');
		await editor.parameter('taskId').waitFor();
		expect(await editor.parameter('prompt').count()).toBe(0);
	});

	needing('panelsThatClose', 'The panel of the trigger').test(
		'the panel of the trigger shows its URLs and that a workflow needs no address',
		async () => {
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
		},
	);

	testInThisEditor(
		"n8n's shortcuts open the node creator, run the workflow and open a node",
		async () => {
			const { keyboard } = editor.page;
			await keyboard.press('n');
			await editor.get('node-creator-search-bar').waitFor();
			await keyboard.type('media');
			await editor.entry('Media Generation').waitFor();
			await keyboard.press('Enter');
			await editor.get('node-creator-category-item').first().waitFor();
			await editor.toggle('Actions');
			await editor.entry('Generate image').click();
			await editor.panel.waitFor();
			await editor.fill('prompt', 'A lighthouse at dusk');
			await editor.escapePanel();
			await keyboard.press('Control+Enter');
			await editor.node('Generate image').getByTestId('canvas-node-status-success').waitFor();
			await keyboard.press('Enter');
			await editor.panel.waitFor();
			await editor.outputHas('SUCCESS');
		},
	);

	testInThisEditor('the dark theme has icons of its own', async () => {
		await editor.page.emulateMedia({ colorScheme: 'dark' });
		await editor.newWorkflow();
		await editor.search('media');
		const icon = editor.entry('Media Generation').locator('img').first();
		await icon.waitFor();
		expect(await icon.getAttribute('src')).toContain('mediaGeneration.dark.svg');
		expect(
			await icon.evaluate((image: HTMLImageElement) =>
				image.decode().then(() => image.naturalWidth),
			),
		).toBeGreaterThan(0);
	});

	testInThisEditor('the credits node shows the balance', async () => {
		await editor.add('Media Generation Credits', 'Get credit balance');
		await editor.execute();
		await editor.showOutput('JSON');
		await editor.outputHas('balance');
		await editor.outputHas(String(stage.service.balance));
	});
});
