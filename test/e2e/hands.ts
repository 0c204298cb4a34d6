import type { Locator, Page } from 'playwright-core';

import { choose, type Editor } from './editor';

/** What nobody types who writes no code. */
const CODE = /[{}[\]]/;

/** From the keyboard to the mouse. */
const HAND_MS = 1_000;

export interface ComputerFile {
	name: string;
	mimeType: string;
	buffer: Buffer;
}

/** A person at n8n's editor who has a mouse and a keyboard, and writes no code. */
export class Hands {
	/** Everything that was typed, in all windows. */
	readonly typed: string[];

	private constructor(
		private readonly page: Page,
		typed: string[],
	) {
		this.typed = typed;
	}

	static at({ page }: Editor): Hands {
		return new Hands(page, []);
	}

	/** The same person at another window. */
	in(page: Page): Hands {
		return new Hands(page, this.typed);
	}

	async click(what: Locator): Promise<void> {
		await what.click();
	}

	/** Opens a list and chooses an entry. */
	async choose(opener: Locator, entry: Locator): Promise<void> {
		await choose(opener, entry);
	}

	/** Types to whatever has the focus. */
	async write(text: string): Promise<void> {
		if (CODE.test(text)) throw new Error(`Nobody is to type this: ${text}`);
		this.typed.push(text);
		await this.page.keyboard.type(text);
	}

	/** Types into a field, in place of what stands there, and leaves it. */
	async type(field: Locator, text: string): Promise<void> {
		await field.click();
		await this.page.keyboard.press('ControlOrMeta+A');
		await this.write(text);
		await this.page.keyboard.press('Tab');
		// The editor takes a text over a moment after the last key, and shows nothing of it: nobody is faster than that.
		await this.page.waitForTimeout(HAND_MS);
	}

	/** Drags a field to a parameter. */
	async drag(source: Locator, target: Locator): Promise<void> {
		await target.scrollIntoViewIfNeeded();
		await source.hover();
		await this.page.mouse.down();
		const box = await target.boundingBox();
		if (!box) throw new Error('There is nothing to drop it on.');
		await this.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 20 });
		// It drops what the editor has seen arrive.
		await target.hover();
		await this.page.mouse.up();
	}

	/** Chooses a file of the own computer. */
	async chooseFile(button: Locator, file: ComputerFile): Promise<void> {
		const chooser = this.page.waitForEvent('filechooser');
		await button.click();
		await (await chooser).setFiles(file);
	}
}
