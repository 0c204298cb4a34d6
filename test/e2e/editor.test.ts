import { type SimulatedService, startService } from '../service/service';
import { findChromium } from './chromium';
import type { Editor } from './editor';
import { needing, unless } from './needs';
import { inEditor, openOnCanvas } from './openEditor';

const { test } = inEditor('Some tests in the editor');
const { describe } = unless(findChromium().missing, 'The tests in the editor');

describe('in the editor, as a new user', () => {
	let prefixed: SimulatedService;
	let editor: Editor;
	const scene = openOnCanvas((opened) => (editor = opened));

	beforeAll(async () => {
		await scene.client.deleteCredential(scene.stage.credential.id);
		prefixed = await startService({ pathPrefix: '/v1' });
	});
	afterAll(async () => await prefixed?.close());

	const shown = async (part: { innerText(): Promise<string> }) => await part.innerText();

	test('a search finds the three nodes and their actions', async () => {
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

	test('the credential dialog says what is wrong, and takes what is right', async () => {
		const { url, apiKey } = scene.service;
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
		scene.service.configure({
			creditsStatus: { status: 200, body: '<!doctype html>', contentType: 'text/html' },
		});
		await dialog.save(`${url}/`, apiKey);
		await dialog.says('No media generation service answers at this');
		scene.service.resetSettings();

		await dialog.save(url, apiKey);
		await dialog.success.waitFor();
	});

	// In older editors, too.
	it('each completion and each operation shows its own fields', async () => {
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

	test('the dark theme has icons of its own', async () => {
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
});
