import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { PageScreenshotOptions } from 'playwright-core';

import type { Editor } from './editor';
import { DIGESTS, digestOf, storedDigests } from './shownInPictures';

export const ROOT = resolve(__dirname, '../..');
const FOLDER = join(ROOT, 'docs/images');
const MAX_BYTES = 250_000;

/**
 * Takes a picture, and writes down what it shows.
 *
 * @param name of the file in `docs/images/`, without its extension
 * @throws where it is too large for a page that shows it
 */
export async function save(
	name: string,
	what: { screenshot(options: PageScreenshotOptions): Promise<Buffer> },
	clip?: PageScreenshotOptions['clip'],
): Promise<void> {
	const path = join(FOLDER, `${name}.png`);
	mkdirSync(dirname(path), { recursive: true });
	await what.screenshot({ path, animations: 'disabled', caret: 'hide', ...(clip && { clip }) });
	const { size } = statSync(path);
	console.log(`${relative(ROOT, path)}: ${Math.round(size / 1000)} kB`);
	if (size > MAX_BYTES) throw new Error(`${name}.png is larger than ${MAX_BYTES / 1000} kB.`);
	const digests = Object.entries({ ...storedDigests(), [name]: digestOf(name) }).sort();
	writeFileSync(DIGESTS, `${JSON.stringify(Object.fromEntries(digests), null, '\t')}\n`);
}

/** Hides what lies over the things that are to be seen. */
export async function tidy(editor: Editor): Promise<void> {
	await editor.page.addStyleTag({
		content: '.el-notification, [data-test-id="floating-nodes"] { display: none !important }',
	});
}

/** What is on the canvas, with a margin. */
export async function saveCanvas(name: string, editor: Editor): Promise<void> {
	const margin = 24;
	const nodes = await editor.page.locator('.vue-flow__node').all();
	const boxes = (await Promise.all(nodes.map((node) => node.boundingBox()))).filter(
		(box) => box !== null,
	);
	const x = Math.min(...boxes.map((box) => box.x)) - margin;
	const y = Math.min(...boxes.map((box) => box.y)) - margin;
	const right = Math.max(...boxes.map((box) => box.x + box.width)) + margin;
	const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + margin;
	await save(name, editor.page, { x, y, width: right - x, height: bottom - y });
}
