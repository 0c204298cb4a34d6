import type { Locator, ViewportSize } from 'playwright-core';

import { EditorPage, openBrowser } from './editorPage';

const CHOICES = 5;
const CHOICE_TIMEOUT_MS = 8_000;

/**
 * Opens a list and chooses an entry. What the panel draws anew meanwhile closes the list: then whoever sits there opens
 * it again.
 */
export async function choose(opener: Locator, entry: Locator): Promise<void> {
	for (let left = CHOICES - 1; ; left--) {
		await opener.click();
		try {
			return await entry.click({ timeout: CHOICE_TIMEOUT_MS });
		} catch (error) {
			if (left === 0) throw error;
		}
	}
}

/** n8n's editor in a browser, steered as a user does: by what is to be seen there. */
export class Editor extends EditorPage {
	/** Opens a browser; nobody is logged in. @param executablePath of Chromium */
	static async open(executablePath: string, url: string, size: ViewportSize): Promise<Editor> {
		return new Editor(await openBrowser(executablePath, url, size), url);
	}

	/** Searches in the node creator: for the first step on an empty canvas, else for the next one. */
	async search(text: string): Promise<void> {
		const bar = this.get('node-creator-search-bar');
		if (!(await bar.isVisible())) {
			const isEmpty = await this.get('canvas-add-button').isVisible();
			await this.get(isEmpty ? 'canvas-add-button' : 'node-creator-plus-button').click();
		}
		await bar.fill(text);
	}

	/** The entry of the node creator with this title: a node, or an action of one. */
	entry(title: string): Locator {
		const name = this.get('node-creator-item-name').getByText(title, { exact: true });
		return this.get('item-iterator-item').filter({ has: name });
	}

	async entryTitles(): Promise<string[]> {
		const entries = this.get('item-iterator-item');
		return await entries.getByTestId('node-creator-item-name').allInnerTexts();
	}

	/** Folds a section of a node's actions in or out, e.g. "Actions". */
	async toggle(section: string): Promise<void> {
		await this.get('node-creator-category-item').filter({ hasText: section }).click();
	}

	/** Searches for a node, chooses one of its actions, and leaves with the node's panel open. */
	async add(node: string, action: string, text = node): Promise<void> {
		await this.search(text);
		await this.entry(node).click();
		await this.get('node-creator-category-item').first().waitFor();
		if (!(await this.entry(action).isVisible())) await this.toggle('Actions');
		await this.entry(action).click();
		await this.panel.waitFor();
	}

	get panel(): Locator {
		return this.get('ndv');
	}

	get output(): Locator {
		return this.get('output-panel');
	}

	node(name: string): Locator {
		return this.page.locator(`[data-test-id="canvas-node"][data-node-name="${name}"]`);
	}

	async openNode(name: string): Promise<void> {
		await this.node(name).dblclick();
		await this.panel.waitFor();
	}

	async closePanel(): Promise<void> {
		await this.get('ndv-close-button').click();
		await this.panel.waitFor({ state: 'hidden' });
	}

	parameter(name: string): Locator {
		return this.get(`parameter-input-${name}`);
	}

	/** Fills a parameter in, and again where a panel that was not ready yet has put its own value there. */
	async fill(parameter: string, text: string): Promise<void> {
		do {
			await this.inputOf(parameter).fill(text);
			await this.nextFrame();
		} while (!(await this.holds(parameter, text)));
	}

	async holds(parameter: string, text: string): Promise<boolean> {
		return (await this.inputOf(parameter).inputValue()) === text;
	}

	async paste(parameter: string): Promise<void> {
		await this.inputOf(parameter).focus();
		await this.page.keyboard.press('ControlOrMeta+V');
	}

	inputOf(parameter: string, place = 0): Locator {
		return this.parameter(parameter).nth(place).locator('input, textarea').first();
	}

	/** Chooses from a list. @param place which of the parameters of this name */
	async choose(parameter: string, option: string, place = 0): Promise<void> {
		const list = this.page.locator('.el-select-dropdown:visible');
		await choose(this.parameter(parameter).nth(place), list.getByText(option, { exact: true }));
	}

	/** Enters the identifier of a model that is not in the list. */
	async enterModel(id: string): Promise<void> {
		const mode = this.parameter('model').getByTestId('rlc-mode-selector');
		await choose(mode, this.page.locator('.el-select-dropdown:visible').getByText('By ID'));
		await this.parameter('model').getByTestId('rlc-input-container').locator('input').fill(id);
	}

	async addOption(label: string): Promise<void> {
		const option = this.get('collection-parameter-option').getByText(label, { exact: true });
		await choose(this.get('collection-parameter-add'), option);
	}

	async execute(): Promise<void> {
		await this.get('node-execute-button').click();
	}

	/** Decodes an image. @returns its width, px; 0 where there is none */
	async widthOf(image: Locator): Promise<number> {
		await image.waitFor();
		return await image.evaluate(async (element: HTMLImageElement) => {
			await element.decode();
			return element.naturalWidth;
		});
	}

	/** Opens the dialog of a new credential from a node's panel, where n8n has no credential of the type. */
	async firstCredential(): Promise<void> {
		await this.panel.getByText('Connect to Media Generation').click();
		// Without the name that n8n gives it, it cannot be saved.
		await this.dialog.locator('[data-test-id="credential-name"][title]:not([title=""])').waitFor();
	}

	async editCredential(): Promise<void> {
		await this.get('credential-edit-button').click();
	}

	/** Waits for the output of the run and shows it. */
	async showOutput(as: 'JSON' | 'Table' | 'Schema' | 'Binary'): Promise<void> {
		await this.get('node-run-status-success').waitFor();
		await this.output.getByText(as, { exact: true }).click();
	}

	async outputHas(text: string | RegExp): Promise<void> {
		await this.output.getByText(text).first().waitFor();
	}

	/** In which a credential is created and tested. */
	get dialog(): Locator {
		return this.get('editCredential-modal');
	}

	/** Saves the credential, which n8n tests then. */
	async saveCredential(baseUrl: string, apiKey: string): Promise<void> {
		do {
			await this.fill('baseUrl', baseUrl);
			await this.fill('apiKey', apiKey);
		} while (!(await this.holds('baseUrl', baseUrl)));
		await this.get('credential-save-button').click();
	}

	/** Waits until the credential's test has succeeded. The dialog of a new one closes by itself then. */
	async credentialWorks(): Promise<void> {
		await this.get('credentials-config-container-test-success').waitFor();
	}

	/** Waits until the dialog says why the test did not succeed. */
	async credentialFails(text: string): Promise<void> {
		const message = this.dialog.getByText(text);
		const details = this.dialog.getByText('More details');
		await message.or(details).first().waitFor();
		if (!(await message.isVisible())) await details.click();
		await message.waitFor();
	}
}
