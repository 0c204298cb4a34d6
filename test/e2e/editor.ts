import type { Locator } from 'playwright-core';

import { CredentialDialog } from './credentialDialog';
import { EditorPage, openBrowser, type WindowSize } from './editorPage';

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
	/**
	 * Opens a browser; nobody is logged in.
	 *
	 * @param executablePath of Chromium
	 * @param url of n8n
	 */
	static async open(executablePath: string, url: string, size: WindowSize = {}): Promise<Editor> {
		const { browser, page } = await openBrowser(executablePath, url, size);
		return new Editor(browser, page, url);
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

	/** Entries of the node creator, as they stand there: nodes, or the actions of one. */
	get entries(): Locator {
		return this.get('item-iterator-item');
	}

	/** The entry of the node creator with this title. */
	entry(title: string): Locator {
		return this.entries.filter({
			has: this.page.getByTestId('node-creator-item-name').getByText(title, { exact: true }),
		});
	}

	async entryTitles(): Promise<string[]> {
		return await this.entries.getByTestId('node-creator-item-name').allInnerTexts();
	}

	/** Folds a section of a node's actions in or out, e.g. "Actions". */
	async toggle(section: string): Promise<void> {
		await this.get('node-creator-category-item').filter({ hasText: section }).click();
	}

	/** Searches for a node, chooses one of its actions, and leaves with the node's panel open. */
	async add(node: string, action: string): Promise<void> {
		await this.search(node);
		await this.entry(node).click();
		await this.get('node-creator-category-item').first().waitFor();
		if (!(await this.entry(action).isVisible())) await this.toggle('Actions');
		await this.entry(action).click();
		await this.panel.waitFor();
	}

	/** Leaves the panel with the keyboard. */
	async escapePanel(): Promise<void> {
		await this.page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
		await this.page.keyboard.press('Escape');
		await this.panel.waitFor({ state: 'hidden' });
	}

	/** The open panel of a node. */
	get panel(): Locator {
		return this.get('ndv');
	}

	/** The side of the panel with what the node has put out. */
	get output(): Locator {
		return this.get('output-panel');
	}

	/** A node on the canvas. */
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

	/** The input of a parameter. */
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

	/** Puts what was copied into a parameter. */
	async paste(parameter: string): Promise<void> {
		await this.inputOf(parameter).focus();
		await this.page.keyboard.press('ControlOrMeta+V');
	}

	private inputOf(parameter: string): Locator {
		return this.parameter(parameter).locator('input, textarea').first();
	}

	/** Chooses from a list. */
	async choose(parameter: string, option: string): Promise<void> {
		await this.parameter(parameter).click();
		await this.page
			.locator('.el-select-dropdown:visible')
			.getByText(option, { exact: true })
			.click();
	}

	async addOption(label: string): Promise<void> {
		const option = this.get('collection-parameter-option').getByText(label, { exact: true });
		await choose(this.get('collection-parameter-add'), option);
	}

	/** Copies the production URL of the trigger whose panel is open. */
	async copyProductionUrl(): Promise<string> {
		await this.panel.getByText('Webhook URLs').click();
		await this.panel.getByText('Production URL', { exact: true }).click();
		await this.panel.getByText(/webhook\/[\w-]+\/callback/).click();
		await this.toast.getByText('URL copied').waitFor();
		return await this.page.evaluate(async () => await navigator.clipboard.readText());
	}

	/** Publishes the workflow on the canvas. */
	async publish(): Promise<void> {
		await this.get('workflow-open-publish-modal-button').click();
		await this.get('workflow-publish-button').click();
		await this.get('workflow-active-version-indicator').waitFor();
		await this.page.getByRole('button', { name: 'Got it' }).click();
	}

	/** Runs the node of the open panel. */
	async execute(): Promise<void> {
		await this.get('node-execute-button').click();
	}

	/** Opens the dialog of a new credential from a node's panel. */
	async newCredential(): Promise<CredentialDialog> {
		const first = this.panel.getByText('Connect to Media Generation');
		await first.or(this.get('node-credentials-select')).waitFor();
		if (await first.isVisible()) {
			await first.click();
		} else {
			await this.get('node-credentials-select').click();
			await this.get('node-credentials-select-item-new').locator('visible=true').click();
		}
		await this.dialog.named();
		return this.dialog;
	}

	/** Opens the dialog of the credential that the open panel has chosen. */
	async editCredential(): Promise<void> {
		await this.get('credential-edit-button').click();
	}

	/** Waits for the output of the run and shows it. */
	async showOutput(as: 'JSON' | 'Table' | 'Schema' | 'Binary'): Promise<void> {
		await this.get('node-run-status-success').waitFor();
		await this.output.getByText(as, { exact: true }).click();
	}

	/** Waits until the output panel shows a text. */
	async outputHas(text: string | RegExp): Promise<void> {
		await this.output.getByText(text).first().waitFor();
	}

	/** The dialog of a credential. */
	get dialog(): CredentialDialog {
		return new CredentialDialog(this);
	}
}
