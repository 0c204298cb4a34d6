import type { INode } from 'n8n-workflow';

import type { Editor } from './editor';
import { inARow, manualTrigger, node } from './nodes';
import { inEditor, openEditorScene } from './openEditor';

inEditor('What is found in the editor').describe('before anything has run, in the editor', () => {
	let editor: Editor;
	const scene = openEditorScene((opened) => (editor = opened), { width: 1500, height: 1000 });

	beforeAll(async () => await editor.newWorkflow(), 90_000);

	/** Searches for a node. @returns what is found, the best first */
	async function find(text: string): Promise<string[]> {
		// What the search before has found must be gone.
		await editor.search('no such node');
		await editor.entry('Media Generation').waitFor({ state: 'hidden' });
		await editor.search(text);
		await editor.entry('Media Generation').waitFor();
		return await editor.entryTitles();
	}

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
	])(
		'a search for "%s" has the node among the first three',
		async (text) => {
			expect((await find(text)).slice(0, 3)).toContain('Media Generation');
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
			const titles = await find(text);
			console.log(`"${text}": ${titles.indexOf('Media Generation') + 1} of ${titles.length}`);
			expect(titles.indexOf('Media Generation')).toBeLessThan(place);
		},
		90_000,
	);

	test('"credits" and Enter lead to the credits node', async () => {
		await editor.newWorkflow();
		await editor.search('credits');
		await editor.entry('Media Generation Credits').waitFor();
		expect((await editor.entryTitles())[0]).toBe('Media Generation Credits');
		await editor.page.keyboard.press('Enter');
		await editor.entry('Get credit balance').waitFor();
	}, 90_000);

	const media = (parameters: object) =>
		scene.media({ prompt: 'A cat', options: {}, ...parameters });

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
		[
			'the credits',
			() => scene.stage.mediaNode('mediaGenerationCredits', 'Media', {}),
			['balance'],
		],
	])(
		'the node behind %s shows its fields to drag',
		async (_what, before, fields) => {
			const after = node('n8n-nodes-base.noOp', 'Next', {});
			const { id } = await scene.client.createWorkflow({
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
