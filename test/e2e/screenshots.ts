/** Takes the pictures in docs/images/: `npm run screenshots`. */
import { join } from 'node:path';

import { readExample, saveCredential } from '../demo/examples';
import type { StoredCredential } from '../n8n/client';
import type { Editor } from './editor';
import { openEditor } from './openEditor';
import { ROOT, save, saveCanvas, tidy } from './pictures';
import type { Stage } from './stage';

const BATCH_TIMEOUT_MS = 120_000;

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

async function takePictures(editor: Editor, workflowId: string): Promise<void> {
	const start = async () => {
		await editor.newWorkflow();
		await tidy(editor);
	};

	await runBatch(editor, workflowId);
	await saveCanvas('batch', editor);
	await editor.openNode('Generate images');
	await showPicture(editor);
	await savePanel('batch-picture', editor);

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
	await editor.addOption('Minimum Balance (Credits)');
	await editor.fill('minimumBalance', '500');
	await editor.execute();
	await editor.showOutput('JSON');
	await editor.outputHas('balance');
	await savePanel('credits-node', editor);
}

async function main(): Promise<void> {
	const { stage, editor } = await openEditor({ width: 1340, height: 860 });
	try {
		await stage.client.deleteCredential(stage.credential.id);
		const workflowId = await createBatch(stage);
		await takePictures(editor, workflowId);
	} catch (error) {
		await editor.page.screenshot({ path: join(ROOT, 'test/artefacts/screenshots-failed.png') });
		throw error;
	} finally {
		await editor.close();
		await stage.close();
	}
}

main().catch((error: unknown) => {
	console.error(error instanceof Error ? error.message : error);
	process.exitCode = 1;
});
