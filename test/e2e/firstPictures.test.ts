import { until } from '../n8n/client';
import type { Editor } from './editor';
import { inEditor, openEditorScene } from './openEditor';

const { describe } = inEditor('The first pictures');

const LINES = ['A red bird', 'A blue bird', 'A green bird'];

describe('in the editor, with a model of an own account', () => {
	let editor: Editor;
	const scene = openEditorScene((opened) => (editor = opened));

	/** The clicks of the mouse since the last call. */
	async function clicks(): Promise<number> {
		return await editor.page.evaluate(() => {
			const counter = window as unknown as { clicks?: number };
			const { clicks: counted = 0 } = counter;
			if (counter.clicks === undefined) {
				document.addEventListener(
					'pointerdown',
					() => (counter.clicks = (counter.clicks ?? 0) + 1),
					true,
				);
			}
			counter.clicks = 0;
			return counted;
		});
	}

	beforeAll(async () => await scene.client.deleteCredential(scene.stage.credential.id));

	test('three lines are three pictures, and an empty field behind them costs nothing', async () => {
		await clicks();
		await editor.add('Media Generation', 'Generate image');
		const toAdd = await clicks();
		await editor.outputHas('This model is a placeholder');
		await editor.keep('first view');
		await editor.firstCredential();
		await editor.dialog.getByText('Add Model').click();
		await editor.fill('id', 'acme/painter-9');
		await editor.fill('priceUsd', '0.05');
		await editor.keep('credential with a model');
		await editor.saveCredential(scene.service.url, scene.service.apiKey);
		await editor.dialog.waitFor({ state: 'hidden' });
		const ofCredential = await clicks();

		await editor.parameter('model').getByTestId('rlc-input').click();
		await editor.page.getByTestId('rlc-item').filter({ hasText: 'acme/painter-9' }).waitFor();
		await editor.keep('list of models');
		await editor.page.getByTestId('rlc-item').filter({ hasText: '0.05 USD per task' }).click();
		await editor.output.getByText('This model is a placeholder').waitFor({ state: 'hidden' });
		await editor.fill('prompt', LINES.join('\n'));
		await editor.outputHas("switch on 'One Image per Line'");
		await editor.parameter('promptPerLine').click();
		await editor.output.getByText('The prompt has several lines').waitFor({ state: 'hidden' });
		await editor.keep('three lines');
		await editor.execute();
		await editor.outputHas('3 tasks created. Estimated price: 0.15 USD');
		await editor.outputHas("To build the next steps, press 'Execute step'");
		// One more leads into the prompt, and four lead into the fields of the credential.
		const forPictures = toAdd + (await clicks()) + 1;
		console.log(
			`Clicks: ${forPictures} for three pictures, ${ofCredential + 4} for the credential`,
		);
		expect(forPictures).toBeLessThanOrEqual(12);
		await editor.showOutput('Binary');
		await editor.get('ndv-view-binary-data').first().waitFor();
		await editor.keep('three pictures');
		const prompts = scene.tasks.map(({ record }) => record.input.prompt);
		expect(prompts.sort()).toEqual([...LINES].sort());
		expect(scene.tasks.map(({ record }) => record.model)).toEqual(Array(3).fill('acme/painter-9'));
		await editor.showOutput('Schema');
		await editor.keep('the fields of the output');
		await editor.closePanel();

		await editor.add('Media Generation', 'Generate video');
		await editor.fill('prompt', 'It flies away');
		await editor.outputHas(
			'Each incoming item makes a video of its own, and all have the same prompt',
		);
		await editor.execute();
		await editor.outputHas("The parameter 'Image URL' is empty");
		await editor.keep('an empty Image URL');
		expect(scene.tasks).toHaveLength(3);
		// The earlier result is still there: a next try does not order it again.
		await editor
			.parameter('imageUrl')
			.getByRole('textbox')
			.first()
			.fill('https://m.example.com/1.png');
		await editor.execute();
		await until('the videos', 60_000, () => scene.tasks.length > 3);
		await editor.get('node-run-status-success').waitFor();
		await editor.keep('videos');
		const kinds = scene.tasks.map(({ record }) => /video/.test(record.model));
		expect(kinds.filter((isVideo) => !isVideo)).toHaveLength(3);
	}, 300_000);
});
