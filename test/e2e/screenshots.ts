/** Takes the pictures in docs/images/: `npm run screenshots`. */
import { join } from 'node:path';

import { readExample, saveCredential } from '../demo/examples';
import type { StoredCredential } from '../n8n/client';
import { listAsInstalled } from '../n8n/registration';
import { findChromium } from './chromium';
import { Editor } from './editor';
import { ROOT, save, saveCanvas, tidy } from './pictures';
import { inARow, Stage } from './stage';

const BATCH_TIMEOUT_MS = 120_000;
/** Long enough to take a picture of an execution that waits. */
const SUSPENDED_MS = 60_000;

/** The node creator with a search for this package. */
async function saveSearch(name: string, editor: Editor): Promise<void> {
	await editor.search('media');
	await editor.entry('Media Generation').waitFor();
	await editor.settle();
	const list = await editor.get('node-creator').boundingBox();
	if (!list) throw new Error('The node creator is not to be seen.');
	await save(name, editor.page, { ...list, height: 380 });
}

/** What the node creator lists for the action node and the trigger. */
async function saveActions(name: string, editor: Editor): Promise<void> {
	await editor.search('media');
	await editor.entry('Media Generation').click();
	await editor.toggle('Actions');
	await editor.entry('Generate video').waitFor();
	await editor.settle();
	await save(name, editor.get('node-creator'));
}

/** The panel of a node, with no field in focus. */
async function savePanel(name: string, editor: Editor): Promise<void> {
	await editor.panel.evaluate(() => {
		if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
	});
	await editor.page.mouse.move(0, 0);
	await editor.settle();
	await save(name, editor.panel);
}

async function saveServiceCredential(stage: Stage): Promise<StoredCredential> {
	const { url: baseUrl, apiKey } = stage.service;
	return await saveCredential(stage.client, { baseUrl, apiKey });
}

/** The example batch in n8n, with the pictures downloaded. */
async function createBatch(stage: Stage): Promise<string> {
	const definition = readExample('batch-of-prompts');
	const credential = await saveServiceCredential(stage);
	const nodes = definition.nodes.map((node) =>
		node.type.endsWith('.mediaGeneration')
			? {
					...node,
					credentials: { mediaGenerationApi: { id: credential.id, name: credential.name } },
					parameters: {
						...node.parameters,
						options: { ...(node.parameters.options as object), downloadResults: true },
					},
				}
			: node,
	);
	return (await stage.client.createWorkflow({ ...definition, nodes })).id;
}

async function runBatch(editor: Editor, workflowId: string): Promise<void> {
	await editor.openWorkflow(workflowId);
	await tidy(editor);
	await editor.get('execute-workflow-button').click();
	await editor
		.node('To look into')
		.getByTestId('canvas-node-status-success')
		.waitFor({ timeout: BATCH_TIMEOUT_MS });
	await editor.get('zoom-to-fit').click();
	await editor.settle();
}

/** Shows the first picture in the output panel. */
async function showPicture(editor: Editor): Promise<void> {
	await editor.showOutput('Binary');
	await editor.get('ndv-view-binary-data').first().click();
	const picture = editor.output.locator('img');
	await picture.evaluate((image: HTMLImageElement) => image.decode());
}

/** The page of the simulated service, with the tasks of the batch. */
async function savePage(name: string, editor: Editor, stage: Stage): Promise<void> {
	await editor.page.goto(new URL('/', stage.service.url).href);
	const pictures = editor.page.locator('.media img');
	await pictures.first().waitFor();
	await pictures.evaluateAll(
		async (images: HTMLImageElement[]) =>
			await Promise.all(
				images.map(async (image) => {
					image.loading = 'eager';
					await image.decode();
				}),
			),
	);
	await save(name, editor.page, { x: 0, y: 0, width: 1280, height: 400 });
}

/** Publishes a workflow that is nothing but a trigger. */
async function publishTrigger(stage: Stage): Promise<string> {
	const { id: credentialId, name } = await saveServiceCredential(stage);
	const trigger = stage.mediaNode(
		'mediaGenerationTrigger',
		'Task finished',
		{},
		{ credentials: { mediaGenerationApi: { id: credentialId, name } } },
	);
	const { id } = await stage.client.createWorkflow({ name: 'Finished tasks', ...inARow(trigger) });
	const path = stage.client.webhookPath(trigger, 'callback');
	await stage.client.publish(id, [path]);
	return stage.n8n.url + path;
}

/** The nodes that have to do with callbacks. */
async function withCallbacks(
	editor: Editor,
	stage: Stage,
	start: () => Promise<void>,
): Promise<void> {
	stage.service.configure({ latencyMs: SUSPENDED_MS });
	await start();
	await editor.add('Media Generation', 'Generate image');
	await editor.fill('prompt', 'A lighthouse on a cliff at dusk, oil painting');
	await editor.choose('completion', 'Suspend Until Finished');
	await editor.execute();
	await editor.outputHas('Waiting for input');
	await savePanel('suspend-node', editor);
	stage.service.resetSettings();

	const [taskId = ''] = stage.service.tasks.keys();
	const callbackUrl = await publishTrigger(stage);
	await start();
	await editor.add('Media Generation', 'Redeliver callback of task');
	await editor.fill('taskId', taskId);
	await editor.fill('callbackUrl', callbackUrl);
	await editor.execute();
	await editor.showOutput('JSON');
	await editor.outputHas('"delivered"');
	await savePanel('redeliver-node', editor);
}

/** What a failed task says. */
async function withFailure(
	editor: Editor,
	stage: Stage,
	start: () => Promise<void>,
): Promise<void> {
	stage.service.configure({
		outcome: 'FAILURE',
		failureMessage: 'The prompt was held back by the content filter.',
	});
	await start();
	await editor.add('Media Generation', 'Generate image');
	await editor.fill('prompt', 'A lighthouse on a cliff at dusk, oil painting');
	await editor.execute();
	await editor.outputHas('held back by the content filter');
	await savePanel('failed-task', editor);
	stage.service.resetSettings();
}

async function inLight(editor: Editor, stage: Stage, workflowId: string): Promise<void> {
	const start = async () => {
		await editor.newWorkflow();
		await tidy(editor);
	};

	await runBatch(editor, workflowId);
	await saveCanvas('batch', editor);
	await editor.openNode('Generate images');
	await showPicture(editor);
	await savePanel('batch-picture', editor);

	await savePage('service', editor, stage);

	await start();
	await saveSearch('search', editor);

	await start();
	await saveActions('actions', editor);

	await start();
	await editor.add('Media Generation', 'Generate image');
	await editor.editCredential();
	await editor.dialog.success.waitFor();
	await editor.settle();
	await save('credential', editor.dialog.root);

	await start();
	await editor.add('Media Generation', 'Generate video');
	await editor.fill('prompt', 'Waves roll in while the beam of the lighthouse turns');
	await editor.fill('imageUrl', 'https://example.com/lighthouse.png');
	await editor.fill('durationSeconds', '5');
	await savePanel('action-node', editor);

	await start();
	await editor.add('Media Generation', 'On task succeeded');
	await editor.panel.getByText('Webhook URLs').click();
	await editor.panel.getByText('Production URL', { exact: true }).click();
	await savePanel('trigger-node', editor);

	await start();
	await editor.add('Media Generation Credits', 'Get credit balance');
	await editor.addOption('Minimum Balance');
	await editor.fill('minimumBalance', '500');
	await editor.execute();
	await editor.showOutput('JSON');
	await editor.outputHas('balance');
	await savePanel('credits-node', editor);

	await withFailure(editor, stage, start);
	await withCallbacks(editor, stage, start);
}

async function inDark(editor: Editor, stage: Stage, workflowId: string): Promise<void> {
	await runBatch(editor, workflowId);
	await saveCanvas('batch-dark', editor);
	await savePage('service-dark', editor, stage);
	await editor.newWorkflow();
	await saveSearch('search-dark', editor);
}

async function main(): Promise<void> {
	const chromium = findChromium();
	if (!chromium.path) throw new Error(chromium.missing);
	const stage = await Stage.open();
	try {
		await listAsInstalled(stage.n8n, stage.client, {
			name: 'n8n-nodes-media-generation',
			version: '0.1.0',
		});
		await stage.client.deleteCredential(stage.credential.id);
		const workflowId = await createBatch(stage);
		for (const dark of [false, true]) {
			const editor = await Editor.open(chromium.path, stage.n8n.url, {
				dark,
				width: 1340,
				height: 860,
			});
			try {
				await editor.logIn();
				await (dark ? inDark : inLight)(editor, stage, workflowId);
			} catch (error) {
				await editor.page.screenshot({ path: join(ROOT, 'test/artefacts/screenshots-failed.png') });
				throw error;
			} finally {
				await editor.close();
			}
		}
	} finally {
		await stage.close();
	}
}

main().catch((error: unknown) => {
	console.error(error instanceof Error ? error.message : error);
	process.exitCode = 1;
});
