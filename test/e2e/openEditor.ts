import type { ViewportSize } from 'playwright-core';

import { listAsInstalled } from '../n8n/registration';
import { findChromium } from './chromium';
import { Editor } from './editor';
import { unless } from './needs';
import { openScene, type Scene } from './scene';
import { Stage } from './stage';

/** Opens a stage whose n8n lists this package as installed, and its editor, with the owner logged in. */
export async function openEditor(size: ViewportSize): Promise<{ stage: Stage; editor: Editor }> {
	const { path, missing } = findChromium();
	if (path === undefined) throw new Error(missing);
	const stage = await Stage.open();
	try {
		const { n8n, client, database } = stage;
		await listAsInstalled(n8n, client, async (...given) => await database.execute(...given));
		const editor = await Editor.open(path, n8n.url, size);
		await editor.logIn();
		return { stage, editor };
	} catch (error) {
		await stage.close();
		throw error;
	}
}

/** The tests in the editor, which are skipped where there is no browser. */
export const inEditor = (what: string) => unless(findChromium().missing, what);

/** Opens a scene with n8n's editor, with an empty canvas before each test. @param use takes the editor */
export function openEditorScene(use: (editor: Editor) => void): Scene {
	let editor: Editor | undefined;
	const open = async () => {
		const opened = await openEditor({ width: 1500, height: 1000 });
		use((editor = opened.editor));
		return opened.stage;
	};
	const scene = openScene({ open });
	afterAll(async () => await editor?.close());
	beforeEach(async () => await editor?.newWorkflow());
	afterEach(async () => {
		// Also of a test that has just failed, when it shows why.
		await editor?.keep(expect.getState().currentTestName ?? '');
		expect(editor?.errors.filter((text) => /media.?generation/i.test(text))).toEqual([]);
	});
	return scene;
}
