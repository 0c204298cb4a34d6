import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Browser, chromium, type Locator, type Page, selectors } from 'playwright-core';

import { type Owner, TEST_OWNER, until } from '../n8n/client';

selectors.setTestIdAttribute('data-test-id');

/** The machine may be busy with an n8n and a browser on few cores. */
const TIMEOUT_MS = 60_000;
const SETTLE_MS = 1_500;

/** Pictures of what the tests saw, for whoever wants to know why one did not pass. */
const ARTEFACTS = resolve(__dirname, '../artefacts/editor');

export interface EditorOptions {
	dark?: boolean;
	width?: number;
	height?: number;
	owner?: Owner;
}

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
export class Editor {
	/** What the browser's console said was an error. */
	readonly errors: string[] = [];

	private constructor(
		private readonly browser: Browser,
		readonly page: Page,
		private readonly url: string,
		private readonly owner: Owner,
	) {
		page.on('pageerror', ({ message }) => this.errors.push(message));
		page.on('console', (line) => {
			const place = line.location().url;
			// What was kept from leaving this machine is an error there, too.
			if (line.type() !== 'error' || !place.startsWith(url)) return;
			this.errors.push(`${line.text()} (${place})`);
		});
	}

	/**
	 * Opens a browser; nobody is logged in.
	 *
	 * @param executablePath of Chromium
	 * @param url of n8n
	 */
	static async open(
		executablePath: string,
		url: string,
		{ dark = false, width = 1280, height = 800, owner = TEST_OWNER }: EditorOptions = {},
	): Promise<Editor> {
		const browser = await chromium.launch({
			executablePath,
			args: [
				'--no-sandbox',
				'--disable-gpu',
				'--disable-background-networking',
				'--disable-component-update',
			],
		});
		const page = await browser.newPage({
			viewport: { width, height },
			colorScheme: dark ? 'dark' : 'light',
			reducedMotion: 'reduce',
		});
		page.setDefaultTimeout(TIMEOUT_MS);
		await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url });
		// The editor asks npm and n8n's maker for news, which tests must not depend on.
		await page.route(
			({ hostname }) => hostname !== '127.0.0.1',
			async (route) => await route.abort(),
		);
		return new Editor(browser, page, url, owner);
	}

	async close(): Promise<void> {
		await this.browser.close();
	}

	/** Fills in the login page. */
	async logIn(): Promise<void> {
		await this.page.goto(`${this.url}/signin`);
		await this.page.locator('input[autocomplete="email"]').fill(this.owner.email);
		await this.page.locator('input[type="password"]').fill(this.owner.password);
		await this.page.getByRole('button', { name: 'Sign in' }).click();
		await this.page.waitForURL(/\/(home|workflow)/);
	}

	/** Opens an empty canvas. */
	async newWorkflow(): Promise<void> {
		await this.page.goto(`${this.url}/workflow/new`);
		await this.get('canvas-add-button').waitFor();
	}

	async openWorkflow(id: string): Promise<void> {
		await this.page.goto(`${this.url}/workflow/${id}`);
		await this.get('canvas-node').first().waitFor();
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

	/** Waits until the editor has drawn what it knows now. */
	private async nextFrame(): Promise<void> {
		await this.page.evaluate(
			async () =>
				await new Promise((resolve) =>
					requestAnimationFrame(() => requestAnimationFrame(() => resolve(undefined))),
				),
		);
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

	/** Adds a row to a list of fields, such as that of Edit Fields, and fills it in. */
	async addField(list: string, name: string, type: string, value: string): Promise<void> {
		const collection = this.get(`assignment-collection-${list}`);
		const rows = collection.getByTestId('assignment');
		const before = await rows.count();
		await collection.getByText('Add Field').click();
		const row = rows.nth(before);
		await row.getByTestId('assignment-name').locator('input').fill(name);
		await row.getByTestId('assignment-type-select').click();
		await this.page.getByTestId(`action-${type}`).locator('visible=true').click();
		await row.getByTestId('assignment-value').locator('input, textarea').first().fill(value);
		await this.nextFrame();
	}

	/** Drags a field of the input panel into a list of fields, and gives the row that it makes another name. */
	async dragField(field: string, list: string, name: string): Promise<void> {
		const collection = this.get(`assignment-collection-${list}`);
		const rows = collection.getByTestId('assignment');
		const before = await rows.count();
		const target = collection.getByTestId('assignment-collection-drop-area');
		await target.scrollIntoViewIfNeeded();
		await this.drag(this.get('ndv-input-panel').getByText(field, { exact: true }).first(), target);
		await rows.nth(before).waitFor();
		await rows.nth(before).getByTestId('assignment-name').locator('input').fill(name);
		await this.nextFrame();
	}

	private async drag(source: Locator, target: Locator): Promise<void> {
		const { mouse } = this.page;
		const middle = async (what: Locator) => {
			const box = await what.boundingBox();
			if (!box) throw new Error('What is to be dragged is not to be seen.');
			return [box.x + box.width / 2, box.y + box.height / 2] as const;
		};
		await mouse.move(...(await middle(source)));
		await mouse.down();
		await mouse.move(...(await middle(target)), { steps: 12 });
		await this.nextFrame();
		await mouse.up();
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

	/** Waits until the list of a workflow's executions shows one that has succeeded. */
	async showSucceededExecution(workflowUrl: string): Promise<void> {
		await this.page.goto(workflowUrl);
		await this.get('radio-button-executions').click();
		await this.get('current-executions-list').getByText('Succeeded').first().waitFor();
	}

	/** Waits until a text is to be seen, also in a frame, where n8n shows an execution. */
	async shows(text: string | RegExp): Promise<void> {
		const places = async () =>
			await Promise.all(this.page.frames().map((frame) => frame.getByText(text).count()));
		await until(`'${String(text)}' to be seen`, TIMEOUT_MS, async () =>
			(await places()).some((count) => count > 0),
		);
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

	/** A message at the bottom right. */
	get toast(): Locator {
		return this.page.locator('.el-notification');
	}

	/** The dialog of a credential. */
	get dialog(): CredentialDialog {
		return new CredentialDialog(this);
	}

	/** Keeps a picture of what is to be seen in `test/artefacts/editor/`. */
	async keep(name: string): Promise<void> {
		mkdirSync(ARTEFACTS, { recursive: true });
		const file = `${name.replaceAll(/\W+/g, '-')}.png`;
		await this.page.screenshot({ path: join(ARTEFACTS, file), animations: 'disabled' });
	}

	/** Waits until nothing moves any more, for a picture. */
	async settle(): Promise<void> {
		await this.page.waitForLoadState('networkidle');
		await this.page.waitForTimeout(SETTLE_MS);
	}

	get(testId: string): Locator {
		return this.page.getByTestId(testId);
	}
}

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
