/** Takes the pictures in docs/images/: `npm run screenshots`. */
import { join } from 'node:path';

import { runCommand } from '../commandLine';
import { saveCredential } from '../demo/examples';
import type { Editor } from './editor';
import { openEditor } from './openEditor';
import { ROOT, save, tidy } from './pictures';
import type { Stage } from './stage';

/** The panel of a node, with no field in focus. */
async function savePanel(name: string, editor: Editor): Promise<void> {
	await editor.panel.evaluate(() => {
		if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
	});
	await editor.page.mouse.move(0, 0);
	await editor.settle();
	await save(name, editor.panel);
}

async function saveServiceCredential(stage: Stage): Promise<void> {
	const { url: baseUrl, apiKey } = stage.service;
	await saveCredential(stage.client, { baseUrl, apiKey });
}

/** Shows an address as a reader has one, in the place of this machine's. */
async function hidePort({ page }: Editor): Promise<void> {
	await page.evaluate(() => {
		for (const input of document.querySelectorAll('input')) {
			if (input.value.startsWith('http://127.0.0.1')) input.value = 'https://api.example.com';
		}
	});
}

async function takePictures(editor: Editor): Promise<void> {
	const start = async () => {
		await editor.newWorkflow();
		await tidy(editor);
	};

	await start();
	await editor.add('Media Generation', 'Generate image');
	await editor.editCredential();
	await editor.dialog.success.waitFor();
	await hidePort(editor);
	await editor.settle();
	await save('credential', editor.dialog.root);

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
	const { stage, editor } = await openEditor({ width: 1560, height: 740 });
	try {
		await stage.client.deleteCredential(stage.credential.id);
		await saveServiceCredential(stage);
		await takePictures(editor);
	} catch (error) {
		await editor.page.screenshot({ path: join(ROOT, 'test/artefacts/screenshots-failed.png') });
		throw error;
	} finally {
		await editor.close();
		await stage.close();
	}
}

runCommand(main);
