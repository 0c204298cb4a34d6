import { missingInN8n } from '../n8n/differences';
import { listAsInstalled } from '../n8n/registration';
import { findChromium } from './chromium';
import { Editor } from './editor';
import type { WindowSize } from './editorPage';
import { unless } from './needs';
import { openScene, type Scene } from './scene';
import { Stage } from './stage';

/**
 * Opens a stage whose n8n lists this package as installed, and its editor, with the owner logged in.
 *
 * @throws where there is no Chromium
 */
export async function openEditor(size: WindowSize = {}): Promise<{ stage: Stage; editor: Editor }> {
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
		const editor = await Editor.open(path, n8n.url, size);
		await editor.logIn();
		return { stage, editor };
	} catch (error) {
		await stage.close();
		throw error;
	}
}

/** The tests in the editor, which are skipped where there is none, or an older one. */
export const inEditor = (what: string) =>
	unless(findChromium().missing ?? missingInN8n('editor'), what);

/**
 * Opens a scene with n8n's editor. A picture of what is to be seen is kept after each test.
 *
 * @param use takes the editor
 */
export function openEditorScene(use: (editor: Editor) => void, size: WindowSize = {}): Scene {
	let editor: Editor | undefined;
	const open = async () => {
		const opened = await openEditor(size);
		editor = opened.editor;
		use(editor);
		return opened.stage;
	};
	const scene = openScene({ open });
	afterAll(async () => await editor?.close());
	// Also of a test that has just failed, when it shows why.
	afterEach(async () => await editor?.keep(expect.getState().currentTestName ?? ''));
	return scene;
}

/** `openEditorScene` with an empty canvas before each test, and a look at what the browser complained of after it. */
export function openOnCanvas(use: (editor: Editor) => void): Scene {
	let editor: Editor;
	const scene = openEditorScene((opened) => use((editor = opened)));
	beforeEach(async () => await editor.newWorkflow());
	afterEach(async () => {
		await editor.page.emulateMedia({ colorScheme: 'light' });
		expect(editor.errors.filter((text) => /media.?generation/i.test(text))).toEqual([]);
	});
	return scene;
}
