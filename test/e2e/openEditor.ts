import { listAsInstalled } from '../n8n/registration';
import { findChromium } from './chromium';
import { Editor, type EditorOptions } from './editor';
import { Stage } from './stage';

/**
 * Opens a stage whose n8n lists this package as installed, and its editor, with the owner logged in.
 *
 * @throws where there is no Chromium
 */
export async function openEditor(
	options: EditorOptions = {},
): Promise<{ stage: Stage; editor: Editor }> {
	const { path, missing } = findChromium();
	if (path === undefined) throw new Error(missing);
	const stage = await Stage.open();
	try {
		const { n8n, client, database } = stage;
		await listAsInstalled(
			n8n,
			client,
			{ name: 'n8n-nodes-media-generation', version: '0.1.0' },
			async (...statements) => await database.execute(...statements),
		);
		const editor = await Editor.open(path, n8n.url, options);
		await editor.logIn();
		return { stage, editor };
	} catch (error) {
		await stage.close();
		throw error;
	}
}
