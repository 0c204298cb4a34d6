import type { Editor } from './editor';
import { inEditor, openOnCanvas } from './openEditor';

const { test, describe } = inEditor('Runs in the editor');

describe('in the editor, with a credential', () => {
	let editor: Editor;
	const scene = openOnCanvas((opened) => (editor = opened));

	const shown = async (part: { innerText(): Promise<string> }) => await part.innerText();

	/** Adds a node that is to generate an image, with a prompt. */
	async function addImage(): Promise<void> {
		await editor.add('Media Generation', 'Generate image');
		await editor.fill('prompt', 'A lighthouse at dusk');
	}

	test('a prompt becomes a picture, which the output panel shows', async () => {
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

	test('a task that fails shows its reason, its id and what to do', async () => {
		scene.service.configure({ outcome: 'FAILURE', failureMessage: 'The prompt is not allowed.' });
		await addImage();
		await editor.execute();
		await editor.outputHas('The prompt is not allowed');
		const [taskId = ''] = scene.taskIds;
		expect(await shown(editor.output)).toContain(taskId);
		expect(await shown(editor.output)).toContain('Change the prompt or the input');
	});

	test('a key that the service refuses during a run shows where to change it', async () => {
		scene.service.configure({ createStatus: 401 });
		await addImage();
		await editor.execute();
		await editor.outputHas('The service refused the API key (HTTP 401)');
		await editor.outputHas('Open the Media Generation credential and paste the API key');
	});

	test('the panel says what it costs, before and after the run', async () => {
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

	test('a run that is suspended after a short hold shows on the canvas that it waits, and goes on there', async () => {
		const { client, service } = scene;
		service.configure({ latencyMs: 3_600_000 });
		await addImage();
		await editor.addOption('Suspend After (Minutes)');
		await editor.fill('suspendAfter', '0.05');
		await editor.keep('suspend after');
		await editor.closePanel();
		const node = editor.node('Generate image');
		const suspend = async () => {
			await editor.page.keyboard.press('Control+Enter');
			await node.locator('[class*="_waiting_"]').first().waitFor();
			return scene.taskIds.at(-1) ?? '';
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
		expect(waiting.map(({ mode }) => mode).sort()).toEqual(['integrated', 'integrated', 'manual']);
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
	}, 600_000);

	test('a trigger whose URL was copied starts for a callback, also for one that was lost at first', async () => {
		await editor.add('Media Generation', 'On task succeeded');
		const { pathname } = new URL(await editor.copyProductionUrl());
		await editor.closePanel();
		await editor.publish();
		await scene.client.waitForWebhook(pathname);
		const triggerUrl = editor.page.url();

		scene.service.configure({ callbackLost: true, latencyMs: 0 });
		await editor.newWorkflow();
		await addImage();
		await editor.choose('completion', 'Notify a Trigger');
		await editor.paste('callbackUrl');
		await editor.panel
			.getByText('If the service cannot reach n8n, n8n checks after one minute')
			.waitFor();
		await editor.execute();
		await editor.outputHas('PENDING');
		await editor.keep('notified');
		const [taskId = ''] = scene.taskIds;

		await editor.newWorkflow();
		await editor.add('Media Generation', 'Send result of task again');
		await editor.fill('taskId', taskId);
		await editor.paste('callbackUrl');
		await editor.execute();
		await editor.showOutput('JSON');
		await editor.outputHas('"delivered"');
		await editor.keep('redelivered');
		await editor.showSucceededExecution(triggerUrl);
	}, 300_000);

	test("n8n's shortcuts open the node creator, run the workflow and open a node", async () => {
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
	});

	test('the credits node shows the balance', async () => {
		await editor.add('Media Generation Credits', 'Get credit balance');
		await editor.execute();
		await editor.showOutput('JSON');
		await editor.outputHas('balance');
		await editor.outputHas(String(scene.service.balance));
	});
});
