import { createCanvas } from '@napi-rs/canvas';
import type { Page } from 'playwright-core';

import type { Editor } from './editor';
import { type ComputerFile, Hands } from './hands';
import { inEditor, openEditorScene } from './openEditor';

const MODEL = 'framevendor/between-two-frames';
const PROMPT = 'Waves "roll" in, slowly; the beam turns';
const STYLE = "a child's watercolour, \\ and “soft”";

/** A picture of one grey. */
function frame(name: string, grey: string): ComputerFile {
	const canvas = createCanvas(64, 36);
	const context = canvas.getContext('2d');
	context.fillStyle = grey;
	context.fillRect(0, 0, 64, 36);
	return { name, mimeType: 'image/png', buffer: canvas.toBuffer('image/png') };
}

const { describe } = inEditor('The workflow that is built by hand');

describe('with mouse and keyboard, and not one brace', () => {
	let editor: Editor;
	let hands: Hands;
	const scene = openEditorScene((opened) => (editor = opened), { width: 1500, height: 1000 });

	beforeAll(async () => {
		await scene.client.deleteCredential(scene.stage.credential.id);
		hands = Hands.at(editor);
	});

	const dropdown = (option: string) =>
		editor.page.locator('.el-select-dropdown:visible').getByText(option, { exact: true });
	const textOf = (parameter: string, place = 0) =>
		editor.parameter(parameter).nth(place).locator('input, textarea').first();
	const choose = async (parameter: string, option: string, place = 0) => {
		await hands.choose(editor.parameter(parameter).nth(place), dropdown(option));
	};
	const search = async (text: string) => {
		await hands.click(editor.get('node-creator-search-bar'));
		await hands.write(text);
	};
	const addOption = async (label: string) => {
		const option = editor.get('collection-parameter-option').getByText(label, { exact: true });
		await hands.choose(editor.get('collection-parameter-add'), option);
	};

	/** Searches for our node, and chooses one of its actions. */
	async function addMedia(text: string, action: string) {
		await search(text);
		await hands.click(editor.entry('Media Generation'));
		await editor.get('node-creator-category-item').first().waitFor();
		if (!(await editor.entry(action).isVisible())) await editor.toggle('Actions');
		await hands.click(editor.entry(action));
	}

	/** A form that asks for a prompt and two frames. */
	async function addForm() {
		await hands.click(editor.get('canvas-add-button'));
		await search('form');
		await hands.click(editor.entry('n8n Form'));
		await hands.click(editor.entry('On new n8n Form event'));
		await hands.type(textOf('formTitle'), 'A film between two frames');
		for (const [place, label] of ['Prompt', 'First frame', 'Last frame'].entries()) {
			await hands.click(editor.panel.getByText('Add Form Element'));
			await hands.type(textOf('fieldLabel', place), label);
			if (label.endsWith('frame')) await choose('fieldType', 'File', place);
		}
	}

	async function fillForm(form: Page, first: ComputerFile, last: ComputerFile) {
		const there = hands.in(form);
		await there.type(form.getByLabel('Prompt'), PROMPT);
		await there.chooseFile(form.getByLabel('First frame'), first);
		await there.chooseFile(form.getByLabel('Last frame'), last);
		await there.click(form.getByRole('button', { name: 'Submit' }));
		await form.getByText('Your response has been recorded').waitFor();
		await form.close();
	}

	async function addCredential() {
		await hands.click(editor.panel.getByText('Connect to Media Generation'));
		await editor.dialog.named();
		await hands.type(textOf('baseUrl'), scene.service.url);
		await hands.type(textOf('apiKey'), scene.service.apiKey);
		await hands.click(editor.get('credential-save-button'));
		await editor.dialog.closed();
	}

	async function addField(name: string, type: string, value: string) {
		const fields = editor.get('assignment-collection-additionalFields');
		const place = await fields.getByTestId('assignment').count();
		await hands.click(fields.getByText('Add Field'));
		const row = fields.getByTestId('assignment').nth(place);
		await hands.type(row.getByTestId('assignment-name').locator('input'), name);
		const typeEntry = editor.get(`action-${type}`).locator('visible=true');
		await hands.choose(row.getByTestId('assignment-type-select'), typeEntry);
		await hands.type(row.getByTestId('assignment-value').locator('input, textarea').first(), value);
	}

	async function addFile(place: number, field: string, name: string) {
		await hands.click(editor.get('fixed-collection-files').getByText('Add File'));
		await hands.type(textOf('inputField', place), field);
		await hands.type(textOf('binaryPropertyName', place), name);
	}

	test('a workflow sends two frames, a seed and a style to a model that the node does not know', async () => {
		const [first, last] = [frame('first.png', '#333'), frame('last.png', '#bbb')];
		await editor.newWorkflow();
		await addForm();
		const window = editor.page.waitForEvent('popup');
		await hands.click(editor.get('node-execute-button'));
		await fillForm(await window, first, last);
		// Of this panel the names of the files are read, which the form gives them.
		await editor.outputHas('First_frame');
		await hands.click(editor.get('ndv-close-button'));

		await hands.click(editor.get('node-creator-plus-button'));
		await addMedia('AI video', 'Generate video');
		await addCredential();

		await hands.type(textOf('model'), MODEL);
		await choose('imageSource', 'None');
		const input = editor.get('ndv-input-panel');
		await hands.click(input.getByText('Schema', { exact: true }));
		await hands.drag(
			input.getByText('Prompt', { exact: true }).first(),
			editor.parameter('prompt'),
		);
		// What explains the expression lies over the fields below.
		await hands.click(editor.panel.getByText('When to Continue', { exact: true }));
		await addOption('Additional Fields');
		await addField('seed', 'number', '7');
		await addField('style', 'string', STYLE);
		await addOption('Files');
		await addFile(0, 'first_frame', 'First_frame');
		await addFile(1, 'last_frame', 'Last_frame');
		await addOption('Price per Task (USD)');
		await hands.type(textOf('pricePerTaskUsd'), '0.5');
		await addOption('Max Cost (USD)');
		await hands.type(textOf('maxCostUsd'), '0.4');
		await editor.keep('any model, filled in');

		await hands.click(editor.get('node-execute-button'));
		await editor.outputHas('1 task would cost 0.5 USD, which is above the limit of 0.4 USD');
		await editor.keep('any model, above the budget');
		expect(scene.tasks).toEqual([]);

		await hands.type(textOf('maxCostUsd'), '1');
		await hands.click(editor.get('node-execute-button'));
		await editor.showOutput('Schema');
		await editor.outputHas('SUCCESS');
		await editor.outputHas('1 task created. Estimated price: 0.5 USD');
		const shown = await editor.output.innerText();

		const [task, ...others] = scene.tasks;
		expect(others).toEqual([]);
		const uri = ({ buffer }: ComputerFile) => `data:image/png;base64,${buffer.toString('base64')}`;
		expect(task?.record).toMatchObject({ model: MODEL, state: 'SUCCESS' });
		expect(task?.record.input).toEqual({
			prompt: PROMPT,
			first_frame: uri(first),
			last_frame: uri(last),
			seed: 7,
			style: STYLE,
		});
		expect(shown).toContain(task?.taskId);
		expect(shown).toContain(task?.record.resultUrls?.[0]);
		expect(hands.typed.join('')).not.toMatch(/[{}]/);
		expect(hands.typed.length).toBeGreaterThan(15);
	}, 240_000);

	test('a dry run, a reference and a failed task that is created anew', async () => {
		await editor.newWorkflow();
		await hands.click(editor.get('canvas-add-button'));
		await addMedia('AI image', 'Generate image');
		await hands.type(textOf('prompt'), PROMPT);
		// Added means on.
		await addOption('Dry Run');
		await addOption('Your Reference');
		await hands.type(textOf('reference'), 'row-7');
		await addOption('Retry Failed Tasks');
		await hands.type(textOf('retryFailed'), '2');
		await hands.click(editor.get('node-execute-button'));
		await editor.outputHas(
			'Nothing was sent. 1 task would cost 0.08 USD. A failed task would be created again up to 2 times. Failed tasks are usually free.',
		);
		await editor.outputHas('row-7');
		await editor.keep('dry run');
		expect(scene.tasks).toEqual([]);

		scene.service.configure({ taskFails: { times: 1 } });
		await hands.click(editor.parameter('dryRun').locator('.el-switch'));
		await hands.click(editor.get('node-execute-button'));
		await editor.outputHas('1 failed task created again; failed tasks are usually free');
		await editor.outputHas('failedTaskIds');
		await editor.keep('retried');
		expect(scene.tasks).toHaveLength(2);
	}, 240_000);
});
