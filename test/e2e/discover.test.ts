import type { INode } from 'n8n-workflow';

import { missingInN8n } from '../n8n/differences';
import { findChromium } from './chromium';
import type { Editor } from './editor';
import { openEditor } from './openEditor';
import { inARow, manualTrigger, node, type Stage } from './stage';

const chromium = findChromium();
const reason = chromium.missing ?? missingInN8n('editor');
if (reason) console.log(`What is found in the editor is left out. ${reason}`);

(reason ? describe.skip : describe)('before anything has run, in the editor', () => {
	let stage: Stage;
	let editor: Editor;

	beforeAll(async () => {
		({ stage, editor } = await openEditor({ width: 1500, height: 1000 }));
	}, 900_000);
	afterAll(async () => {
		await editor?.close();
		await stage?.close();
	});
	afterEach(async () => await editor.keep(expect.getState().currentTestName ?? ''));

	test.each([
		'picture',
		'photo',
		'AI image',
		'AI video',
		'text to image',
		'generate image',
		'image generation',
		'create video',
		'callback',
		'credits',
	])(
		'a search for "%s" has the node among the first three',
		async (text) => {
			await editor.newWorkflow();
			await editor.search(text);
			await editor.entry('Media Generation').waitFor();
			const titles = await editor.entryTitles();
			expect(titles.slice(0, 3)).toContain('Media Generation');
		},
		90_000,
	);

	// n8n adds how popular a node is to how well it matches, and knows that of its own nodes alone. "image" and "video"
	// match seven and three of these as fully as ours.
	test.each([
		['image', 8],
		['video', 4],
	])(
		'a search for "%s" has the node as number %d at the latest, with nothing but nodes of n8n before it',
		async (text, place) => {
			await editor.newWorkflow();
			await editor.search(text);
			await editor.entry('Media Generation').waitFor();
			const titles = await editor.entryTitles();
			console.log(`"${text}": ${titles.indexOf('Media Generation') + 1} of ${titles.length}`);
			expect(titles.indexOf('Media Generation')).toBeLessThan(place);
		},
		90_000,
	);

	const media = (parameters: object) =>
		stage.mediaNode('mediaGeneration', 'Media', { prompt: 'A cat', options: {}, ...parameters });

	test.each<[string, () => INode, string[]]>([
		['an image', () => media({}), ['resultUrls', 'creditsConsumed', 'estimatedCostUsd', 'prompt']],
		[
			'a video',
			() => media({ resource: 'video', operation: 'generate' }),
			['resultUrls', 'image_url', 'duration'],
		],
		[
			'a task that is read',
			() => media({ resource: 'task', operation: 'get', taskId: 'task-1' }),
			['taskId', 'state', 'resultUrls'],
		],
		['the credits', () => stage.mediaNode('mediaGenerationCredits', 'Media', {}), ['balance']],
	])(
		'the node behind %s shows its fields to drag',
		async (_what, before, fields) => {
			const after = node('n8n-nodes-base.noOp', 'Next', {});
			const { id } = await stage.client.createWorkflow({
				name: 'Fields',
				...inARow(manualTrigger(), before(), after),
			});
			await editor.openWorkflow(id);
			await editor.openNode('Next');
			const input = editor.page.getByTestId('ndv-input-panel');
			for (const name of fields) await input.getByText(name, { exact: true }).first().waitFor();
		},
		90_000,
	);
});
