import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Browser, chromium, type Locator, type Page, selectors } from 'playwright-core';

import { TEST_OWNER, until } from '../n8n/client';

selectors.setTestIdAttribute('data-test-id');

/** The machine may be busy with an n8n and a browser on few cores. */
const TIMEOUT_MS = 60_000;
const SETTLE_MS = 1_500;

/** Pictures of what the tests saw, for whoever wants to know why one did not pass. */
const ARTEFACTS = resolve(__dirname, '../artefacts/editor');

/** The size of the window, px. */
export interface WindowSize {
	width?: number;
	height?: number;
}

/**
 * Opens a browser whose clipboard may be read; nobody is logged in.
 *
 * @param executablePath of Chromium
 * @param url of n8n
 */
export async function openBrowser(
	executablePath: string,
	url: string,
	{ width = 1280, height = 800 }: WindowSize,
): Promise<{ browser: Browser; page: Page }> {
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
	const page = await browser.newPage({ viewport: { width, height }, reducedMotion: 'reduce' });
	page.setDefaultTimeout(TIMEOUT_MS);
	await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url });
	return { browser, page };
}

/** n8n in a browser: its pages, and what is to be seen on each of them. */
export class EditorPage {
	/** What the browser's console said was an error. */
	readonly errors: string[] = [];

	protected constructor(
		private readonly browser: Browser,
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

	async close(): Promise<void> {
		await this.browser.close();
	}

	get(testId: string): Locator {
		return this.page.getByTestId(testId);
	}

	/** A message at the bottom right. */
	get toast(): Locator {
		return this.page.locator('.el-notification');
	}

	/** Fills in the login page. */
	async logIn(): Promise<void> {
		await this.page.goto(`${this.url}/signin`);
		await this.page.locator('input[autocomplete="email"]').fill(TEST_OWNER.email);
		await this.page.locator('input[type="password"]').fill(TEST_OWNER.password);
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

	/** Waits until the editor has drawn what it knows now. */
	protected async nextFrame(): Promise<void> {
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
}
