import type { Editor } from './editor';
import { inEditor, openEditorScene } from './openEditor';

const { test, describe } = inEditor('Runs in the editor');

describe('in the editor, with a credential', () => {
	let editor: Editor;
	const scene = openEditorScene((opened) => (editor = opened));

	const shown = async (part: { innerText(): Promise<string> }) => await part.innerText();

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
		await editor.outputHas('1 task created. Estimated price: 0.08 USD');
		await editor.showOutput('JSON');
		await editor.outputHas('SUCCESS');
		await editor.outputHas('resultUrls');
		await editor.showOutput('Binary');
		await editor.get('ndv-view-binary-data').click();
		expect(await editor.widthOf(editor.output.locator('img'))).toBeGreaterThan(100);
		await editor.closePanel();
		expect(await shown(editor.node('Generate image'))).toContain('image: generate');
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

	test('a run that sleeps after a short hold shows on the canvas that it waits, says in its panel how far it is, and goes on there', async () => {
		const { client, service } = scene;
		service.configure({ latencyMs: 3_600_000 });
		await addImage();
		await editor.addOption('Survive Restarts After (Minutes)');
		await editor.fill('suspendAfter', '0.05');
		await editor.keep('suspend after');
		await editor.closePanel();
		const node = editor.node('Generate image');
		await editor.page.keyboard.press('Control+Enter');
		await node.locator('[class*="_waiting_"]').first().waitFor();
		await editor.keep('waits on the canvas');
		await editor.openNode('Generate image');
		await editor.outputHas(/1 task created, 0 finished.*The run sleeps/);
		await editor.keep('waits in the panel');
		await editor.closePanel();
		service.complete(scene.taskIds[0] ?? '');
		await node.getByTestId('canvas-node-status-success').waitFor({ timeout: 180_000 });
		await editor.openNode('Generate image');
		await editor.showOutput('JSON');
		await editor.showOutput('JSON');
		await editor.outputHas('SUCCESS');
		await editor.keep('has gone on');
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
		await editor.panel.getByText('Until all results have reached the trigger').waitFor();
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
		await editor.page.goto(triggerUrl);
		await editor.get('radio-button-executions').click();
		await editor.get('current-executions-list').getByText('Succeeded').first().waitFor();
	}, 300_000);
});
