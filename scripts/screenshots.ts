/** Takes the pictures in docs/images/: `npx tsx scripts/screenshots.ts`. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { PageScreenshotOptions } from 'playwright-core';

import { runCommand } from '../test/commandLine';
import { prepare, readExample, saveCredential, saveModelCredential } from '../test/n8n/examples';
import { outputItems, type WorkflowDefinition } from '../test/n8n/client';
import { type Editor, openEditor } from '../test/e2e/editor';
import { Stage } from '../test/e2e/stage';

const ROOT = resolve(__dirname, '..');
const FOLDER = join(ROOT, 'docs/images');
const MAX_BYTES = 250_000;

/** The examples that a page shows. */
const ON_PAGES = [
	'approve-before-you-pay',
	'credits-guard',
	'image-to-video',
	'rewrite-refused-prompts',
];

/** Large enough to read in a README, and as small as can be. */
const ZOOM = 0.8;
/** What the editor needs around its canvas, in px. */
const AROUND = { width: 160, height: 240 };
/** A node with its label. */
const NODE = { width: 96, height: 140 };

/** Takes a picture. @param name of the file, without its extension */
async function save(
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
}

/** Hides what lies over the things that are to be seen. */
async function tidy(editor: Editor): Promise<void> {
	await editor.page.addStyleTag({
		content: '.el-notification, [data-test-id="floating-nodes"] { display: none !important }',
	});
}

/** What is on the canvas, with a margin. */
async function saveCanvas(name: string, editor: Editor): Promise<void> {
	const margin = 24;
	const nodes = await editor.page.locator('.vue-flow__node').all();
	const all = await Promise.all(nodes.map((node) => node.boundingBox()));
	const boxes = all.filter((box) => box !== null);
	const x = Math.min(...boxes.map((box) => box.x)) - margin;
	const y = Math.min(...boxes.map((box) => box.y)) - margin;
	const right = Math.max(...boxes.map((box) => box.x + box.width)) + margin;
	const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + margin;
	await save(name, editor.page, { x, y, width: right - x, height: bottom - y });
}

/** What a reader enters in the credential. */
const MODELS = { model: [{ id: 'provider/model-name', priceUsd: 0.04, unit: 'task' }] };

/** Sizes of the window, px: the dialog of the credential is cut off in a lower window. */
const LOW = { width: 1560, height: 740 };
const HIGH = { width: 1560, height: 1080 };

/** Our credential, and the panel of a node. */
async function savePanels(editor: Editor): Promise<void> {
	const start = async () => {
		await editor.newWorkflow();
		await tidy(editor);
	};
	await editor.page.setViewportSize(HIGH);
	await start();
	await editor.add('Media Generation', 'Generate image');
	await editor.editCredential();
	await editor.credentialWorks();
	// An address as a reader has one, in the place of this machine's.
	await editor.page.evaluate(() => {
		for (const input of document.querySelectorAll('input')) {
			if (input.value.startsWith('http://127.0.0.1')) input.value = 'https://api.example.com';
		}
	});
	await editor.settle();
	await save('credential', editor.dialog);
	await editor.page.setViewportSize(LOW);

	await start();
	await editor.add('Media Generation Credits', 'Get credit balance');
	await editor.fill('minimumBalance', '500');
	await editor.execute();
	await editor.showOutput('JSON');
	await editor.outputHas('balance');
	await editor.panel.evaluate(() => {
		if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
	});
	await editor.page.mouse.move(0, 0);
	await editor.settle();
	await save('credits-node', editor.panel);
}

/** @returns the size of a window in which n8n shows the workflow at about `ZOOM` */
function windowFor({ nodes }: WorkflowDefinition) {
	const extent = (axis: 0 | 1, side: 'width' | 'height') => {
		const ends = nodes.map(
			({ position, parameters }) => position[axis] + Number(parameters[side] ?? NODE[side]),
		);
		const length = Math.max(...ends) - Math.min(...nodes.map(({ position }) => position[axis]));
		return Math.round(length * ZOOM + AROUND[side]);
	};
	return { width: extent(0, 'width'), height: extent(1, 'height') };
}

/** The form by which a person approves the order. */
async function saveForm({ client, n8n }: Stage, { page }: Editor, id: string): Promise<void> {
	const execution = await client.waitForSuspension(await client.run(id));
	const [message] = outputItems(execution, 'Write the message');
	const { pathname, search } = new URL(String(message?.json.formUrl));
	await page.setViewportSize({ width: 720, height: 640 });
	await page.goto(new URL(pathname + search, n8n.url).href);
	await save('examples/approval-form', page.locator('.container').first());
}

async function saveExamples(stage: Stage, editor: Editor): Promise<void> {
	const { client, service } = stage;
	const credentials = [
		await saveCredential(client, { baseUrl: service.url, apiKey: service.apiKey }),
		// Nobody is asked: the workflows are shown and not run.
		await saveModelCredential(client, 'http://127.0.0.1:9/v1'),
	];
	for (const name of ON_PAGES) {
		const definition = prepare(readExample(name), credentials);
		const { id } = await client.createWorkflow(definition);
		await editor.page.setViewportSize(windowFor(definition));
		await editor.openWorkflow(id);
		await tidy(editor);
		await editor.get('zoom-to-fit').click();
		await editor.settle();
		await saveCanvas(`examples/${name}`, editor);
		if (name === 'approve-before-you-pay') await saveForm(stage, editor, id);
	}
}

runCommand(async () => {
	const stage = await Stage.open();
	const editor = await openEditor(stage, LOW).catch(async (error: unknown) => {
		await stage.close();
		throw error;
	});
	try {
		const { client, service, credential } = stage;
		await client.deleteCredential(credential.id);
		const { url: baseUrl, apiKey } = service;
		await saveCredential(client, { baseUrl, apiKey, models: MODELS });
		await savePanels(editor);
		await saveExamples(stage, editor);
	} catch (error) {
		await editor.page.screenshot({ path: join(ROOT, 'test/artefacts/screenshots-failed.png') });
		throw error;
	} finally {
		await editor.close();
		await stage.close();
	}
});
