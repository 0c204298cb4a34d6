import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium, type Locator, type Page, selectors, type ViewportSize } from 'playwright-core';

import { TEST_OWNER, until } from '../n8n/client';

selectors.setTestIdAttribute('data-test-id');

/** The machine may be busy with an n8n and a browser on few cores. */
const TIMEOUT_MS = 60_000;
const SETTLE_MS = 1_500;

/** Pictures of what the tests saw, for whoever wants to know why one did not pass. */
const ARTEFACTS = resolve(__dirname, '../artefacts/editor');

/** Opens a browser whose clipboard may be read. */
export async function openBrowser(executablePath: string, url: string, viewport: ViewportSize) {
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

/** n8n in a browser: its pages, and what is to be seen on each of them. */
export class EditorPage {
	/** What the browser's console said was an error. */
	readonly errors: string[] = [];

	protected constructor(
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
