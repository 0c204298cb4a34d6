import type { Locator } from 'playwright-core';

import type { Editor } from './editor';

/** The dialog in which a credential is created and tested. */
export class CredentialDialog {
	readonly root: Locator;

	constructor(private readonly editor: Editor) {
		this.root = editor.get('editCredential-modal');
	}

	/** Waits for the name that n8n gives a new credential: without one it cannot be saved. */
	async named(): Promise<void> {
		await this.root.locator('[data-test-id="credential-name"][title]:not([title=""])').waitFor();
	}

	/** Saves the credential, which n8n tests then. */
	async save(baseUrl: string, apiKey: string): Promise<void> {
		do {
			await this.editor.fill('baseUrl', baseUrl);
			await this.editor.fill('apiKey', apiKey);
		} while (!(await this.editor.holds('baseUrl', baseUrl)));
		await this.editor.get('credential-save-button').click();
	}

	get success(): Locator {
		return this.editor.get('credentials-config-container-test-success');
	}

	/** Waits until the dialog says why the test did not succeed. */
	async says(text: string): Promise<void> {
		const message = this.root.getByText(text);
		const details = this.root.getByText('More details');
		await message.or(details).first().waitFor();
		if (!(await message.isVisible())) await details.click();
		await message.waitFor();
	}

	/** Waits until the dialog has closed, as it does by itself when the test has succeeded. */
	async closed(): Promise<void> {
		await this.root.waitFor({ state: 'hidden' });
	}
}
