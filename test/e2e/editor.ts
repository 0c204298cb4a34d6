import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium, type Locator, type Page, selectors, type ViewportSize } from 'playwright-core';

import { TEST_OWNER, until } from '../n8n/client';
import { listAsInstalled } from '../n8n/registration';
import { unless } from './needs';
import type { Scene } from './scene';
import type { Stage } from './stage';

selectors.setTestIdAttribute('data-test-id');

/** The machine may be busy with an n8n and a browser on few cores. */
const TIMEOUT_MS = 60_000;
const SETTLE_MS = 1_500;

/** Pictures of what the tests saw, for whoever wants to know why one did not pass. */
const ARTEFACTS = resolve(__dirname, '../artefacts/editor');

/** Opens a browser whose clipboard may be read. */
async function openBrowser(executablePath: string, url: string, viewport: ViewportSize) {
	const browser = await chromium.launch({
		executablePath,
		args: [
			'--no-sandbox',
			'--disable-gpu',
			'--disable-background-networking',
			'--disable-component-update',
			// The editor asks npm and n8n's maker for news, which tests must not depend on. A route that refuses would also turn
			// the browser's cache off: then each page loads the whole editor again.
			'--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
		],
	});
	const page = await browser.newPage({ viewport, reducedMotion: 'reduce' });
	page.setDefaultTimeout(TIMEOUT_MS);
	await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url });
	return page;
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
		readonly page: Page,
		private readonly url: string,
	) {
		page.on('pageerror', ({ message }) => this.errors.push(message));
		page.on('console', (line) => {
			const place = line.location().url;
			// What was kept from leaving this machine is an error there, too.
			if (line.type() !== 'error' || !place.startsWith(url)) return;
			this.errors.push(`${line.text()} (${place})`);
		});
	}

	/** Opens a browser; nobody is logged in. @param executablePath of Chromium */
	static async open(executablePath: string, url: string, size: ViewportSize): Promise<Editor> {
		return new Editor(await openBrowser(executablePath, url, size), url);
	}

	async close(): Promise<void> {
		await this.page.context().browser()?.close();
	}

	get(testId: string): Locator {
		return this.page.getByTestId(testId);
	}

	get toast(): Locator {
		return this.page.locator('.el-notification');
	}

	async logIn(): Promise<void> {
		await this.page.goto(`${this.url}/signin`);
		await this.page.locator('input[autocomplete="email"]').fill(TEST_OWNER.email);
		await this.page.locator('input[type="password"]').fill(TEST_OWNER.password);
		await this.page.getByRole('button', { name: 'Sign in' }).click();
		await this.page.waitForURL(/\/(home|workflow)/);
	}

	async newWorkflow(): Promise<void> {
		await this.page.goto(`${this.url}/workflow/new`);
		await this.get('canvas-add-button').waitFor();
	}

	async openWorkflow(id: string): Promise<void> {
		await this.page.goto(`${this.url}/workflow/${id}`);
		await this.get('canvas-node').first().waitFor();
	}

	/** Waits until a text is to be seen, also in a frame, where n8n shows an execution. */
	async shows(text: string | RegExp): Promise<void> {
		await until(`'${String(text)}' to be seen`, TIMEOUT_MS, async () => {
			const counts = this.page.frames().map((frame) => frame.getByText(text).count());
			return (await Promise.all(counts)).some((count) => count > 0);
		});
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

	/** Waits until nothing moves any more, for a picture. */
	async settle(): Promise<void> {
		await this.page.waitForLoadState('networkidle');
		await this.page.waitForTimeout(SETTLE_MS);
	}

	/** Keeps a picture of what is to be seen in `test/artefacts/editor/`. */
	async keep(name: string): Promise<void> {
		mkdirSync(ARTEFACTS, { recursive: true });
		const file = `${name.replaceAll(/\W+/g, '-')}.png`;
		await this.page.screenshot({ path: join(ARTEFACTS, file), animations: 'disabled' });
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

	/** Renames a node on the canvas. */
	async rename(name: string, newName: string): Promise<void> {
		await this.node(name).click();
		await this.page.keyboard.press('F2');
		await this.page.getByRole('dialog').locator('input').fill(newName);
		await this.page.keyboard.press('Enter');
		await this.node(newName).waitFor();
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

	/** Chooses a model of the credential. */
	async chooseModel(id: string): Promise<void> {
		await this.parameter('model').getByTestId('rlc-input').click();
		await this.get('rlc-item').filter({ hasText: id }).click();
		await this.get('rlc-item').first().waitFor({ state: 'hidden' });
	}

	/** A field of *Model Fields*, by its name at the service. */
	modelField(name: string): Locator {
		return this.page.locator(`[data-test-id^="parameter-input-"][data-test-id*="${name}"]`);
	}

	/** Chooses from the list of a field of the model. */
	async chooseValue(name: string, value: string): Promise<void> {
		const list = this.page.locator('.el-select-dropdown:visible');
		await choose(this.modelField(name), list.getByText(value, { exact: true }));
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

/** Counts the clicks from now on. @returns tells how many there were */
export async function countClicks({ page }: Editor): Promise<() => number> {
	let count = 0;
	await page.exposeFunction('noteClick', () => void ++count);
	// A click on a label makes a second click, which nobody has made, but no second press.
	await page.evaluate("document.addEventListener('pointerdown', noteClick, true)");
	return () => count;
}

/** Where Chromium is, or why there is none. */
type Chromium = { path: string; missing?: never } | { path?: never; missing: string };

/** Finds Chromium, synchronously: jest wants to know while it reads a file which of its tests to skip. */
function findChromium(): Chromium {
	const which = 'command -v chromium || command -v chromium-browser || command -v google-chrome';
	const path = spawnSync('sh', ['-c', which], { encoding: 'utf8' }).stdout.trim();
	if (path) return { path };
	return { missing: 'Chromium is not installed. On Debian: apt-get install chromium' };
}

/** The tests in the editor, which are skipped where there is no browser. */
export const inEditor = (what: string) => unless(findChromium().missing, what);

/** Has a stage's n8n list this package as installed, and opens its editor, with the owner logged in. */
export async function openEditor(
	{ n8n, client, database }: Stage,
	size: ViewportSize = { width: 1500, height: 1000 },
): Promise<Editor> {
	const { path, missing } = findChromium();
	if (path === undefined) throw new Error(missing);
	await listAsInstalled(n8n, client, async (...given) => await database.execute(...given));
	const editor = await Editor.open(path, n8n.url, size);
	await editor.logIn();
	return editor;
}

/**
 * Opens the editor for the tests of a `describe`, as a new user sees it: without a credential, and with an empty canvas
 * before each test.
 *
 * @param use takes the editor
 */
export function openEditorOf(scene: Scene, use: (editor: Editor) => void): void {
	let editor: Editor | undefined;
	beforeAll(async () => {
		await scene.deleteCredentials();
		use((editor = await openEditor(scene.stage)));
	}, 900_000);
	afterAll(async () => await editor?.close());
	beforeEach(async () => await editor?.newWorkflow());
	afterEach(async () => {
		// Also of a test that has just failed, when it shows why.
		await editor?.keep(expect.getState().currentTestName ?? '');
		expect(editor?.errors.filter((text) => /media.?generation/i.test(text))).toEqual([]);
	});
}
