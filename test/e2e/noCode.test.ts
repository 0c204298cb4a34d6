import type { Locator, Page } from 'playwright-core';

import { choose, type Editor } from './editor';
import { inEditor, openEditorScene } from './openEditor';

const MODEL = 'framevendor/between-two-frames';
const PROMPT = 'Waves "roll" in, slowly; the beam turns';
const STYLE = "a child's watercolour, \\ and “soft”";

/** What nobody types who writes no code. */
const CODE = /[{}[\]]/;

/** From the keyboard to the mouse. */
const HAND_MS = 1_000;

/** Types into a field, in place of what stands there, and leaves it. */
async function type(field: Locator, text: string): Promise<void> {
	if (CODE.test(text)) throw new Error(`Nobody is to type this: ${text}`);
	const page = field.page();
	await field.click();
	await page.keyboard.press('ControlOrMeta+A');
	await page.keyboard.type(text);
	await page.keyboard.press('Tab');
	// The editor takes a text over a moment after the last key, and shows nothing of it: nobody is faster than that.
	await page.waitForTimeout(HAND_MS);
}

async function drag(source: Locator, target: Locator): Promise<void> {
	const { mouse } = source.page();
	await target.scrollIntoViewIfNeeded();
	await source.hover();
	await mouse.down();
	const box = await target.boundingBox();
	if (!box) throw new Error('There is nothing to drop it on.');
	await mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 20 });
	// It drops what the editor has seen arrive.
	await target.hover();
	await mouse.up();
}

/** A file that nobody looks into. */
const frame = (name: string) => ({ name, mimeType: 'image/png', buffer: Buffer.from(name) });

const uriOf = (name: string) => `data:image/png;base64,${frame(name).buffer.toString('base64')}`;

const { describe } = inEditor('The workflow that is built by hand');

describe('with mouse and keyboard, and not one brace', () => {
	let editor: Editor;
	const scene = openEditorScene((opened) => (editor = opened));

	beforeAll(async () => await scene.client.deleteCredential(scene.stage.credential.id));

	async function addForm() {
		await editor.search('form');
		await editor.entry('n8n Form').click();
		await editor.entry('On new n8n Form event').click();
		await type(editor.inputOf('formTitle'), 'A film between two frames');
		for (const [place, label] of ['Prompt', 'First frame', 'Last frame'].entries()) {
			await editor.panel.getByText('Add Form Element').click();
			await type(editor.inputOf('fieldLabel', place), label);
			if (label.endsWith('frame')) await editor.choose('fieldType', 'File', place);
		}
	}

	async function fillForm(form: Page) {
		await type(form.getByLabel('Prompt'), PROMPT);
		await form.getByLabel('First frame').setInputFiles(frame('first'));
		await form.getByLabel('Last frame').setInputFiles(frame('last'));
		await form.getByRole('button', { name: 'Submit' }).click();
		await form.getByText('Your response has been recorded').waitFor();
		await form.close();
	}

	async function addCredential() {
		await editor.firstCredential();
		await type(editor.inputOf('baseUrl'), scene.service.url);
		await type(editor.inputOf('apiKey'), scene.service.apiKey);
		await editor.get('credential-save-button').click();
		await editor.dialog.waitFor({ state: 'hidden' });
	}

	async function addField(name: string, kind: string, value: string) {
		const fields = editor.get('assignment-collection-additionalFields');
		const place = await fields.getByTestId('assignment').count();
		await fields.getByText('Add Field').click();
		const row = fields.getByTestId('assignment').nth(place);
		await type(row.getByTestId('assignment-name').locator('input'), name);
		const typeEntry = editor.get(`action-${kind}`).locator('visible=true');
		await choose(row.getByTestId('assignment-type-select'), typeEntry);
		await type(row.getByTestId('assignment-value').locator('input, textarea').first(), value);
	}

	async function addFile(place: number, field: string, name: string) {
		await editor.get('fixed-collection-files').getByText('Add File').click();
		await type(editor.inputOf('inputField', place), field);
		await type(editor.inputOf('binaryPropertyName', place), name);
	}

	test('a workflow sends two frames, a seed and a style to a model that the node does not know', async () => {
		await addForm();
		const window = editor.page.waitForEvent('popup');
		await editor.execute();
		await fillForm(await window);
		// Of this panel the names of the files are read, which the form gives them.
		await editor.outputHas('First_frame');
		await editor.closePanel();

		await editor.add('Media Generation', 'Generate video', 'AI video');
		await addCredential();

		await editor.enterModel(MODEL);
		await editor.choose('imageSource', 'None');
		const input = editor.get('ndv-input-panel');
		await input.getByText('Schema', { exact: true }).click();
		await drag(input.getByText('Prompt', { exact: true }).first(), editor.parameter('prompt'));
		// What explains the expression lies over the fields below.
		await editor.panel.getByText('When to Continue', { exact: true }).click();
		await editor.addOption('Additional Fields');
		await addField('seed', 'number', '7');
		await addField('style', 'string', STYLE);
		await editor.addOption('Files');
		await addFile(0, 'first_frame', 'First_frame');
		await addFile(1, 'last_frame', 'Last_frame');
		await editor.addOption('Price per Task (USD)');
		await type(editor.inputOf('pricePerTaskUsd'), '0.5');
		await editor.addOption('Max Cost (USD)');
		await type(editor.inputOf('maxCostUsd'), '0.4');
		await editor.keep('any model, filled in');

		await editor.execute();
		await editor.outputHas('1 task would cost 0.5 USD, which is above the limit of 0.4 USD');
		await editor.keep('any model, above the budget');
		expect(scene.tasks).toEqual([]);

		await type(editor.inputOf('maxCostUsd'), '1');
		await editor.execute();
		await editor.showOutput('Schema');
		await editor.outputHas('SUCCESS');
		await editor.outputHas('1 task created. Estimated price: 0.5 USD');
		const shown = await editor.output.innerText();

		const [task, ...others] = scene.tasks;
		expect(others).toEqual([]);
		expect(task?.record).toMatchObject({ model: MODEL, state: 'SUCCESS' });
		expect(task?.record.input).toEqual({
			prompt: PROMPT,
			first_frame: uriOf('first'),
			last_frame: uriOf('last'),
			seed: 7,
			style: STYLE,
		});
		expect(shown).toContain(task?.taskId);
		expect(shown).toContain(task?.record.resultUrls?.[0]);
	}, 240_000);

	test('a dry run, a reference and a failed task that is created anew', async () => {
		await editor.add('Media Generation', 'Generate image', 'AI image');
		await type(editor.inputOf('prompt'), PROMPT);
		// Added means on.
		await editor.addOption('Dry Run');
		await editor.addOption('Row Name or ID');
		await type(editor.inputOf('reference'), 'row-7');
		await editor.addOption('Retry Failed Tasks');
		await type(editor.inputOf('retryFailed'), '2');
		await editor.execute();
		await editor.outputHas(
			'Nothing was sent. 1 task would cost 0.08 USD. A failed task would be created again up to 2 times. Failed tasks are usually free.',
		);
		await editor.outputHas('row-7');
		await editor.keep('dry run');
		expect(scene.tasks).toEqual([]);

		scene.service.configure({ taskFails: { times: 1 } });
		await editor.parameter('dryRun').locator('.el-switch').click();
		await editor.execute();
		await editor.outputHas('1 failed task created again; failed tasks are usually free');
		await editor.showOutput('JSON');
		await editor.outputHas('failedTaskIds');
		await editor.keep('retried');
		expect(scene.tasks).toHaveLength(2);
	}, 240_000);
});
