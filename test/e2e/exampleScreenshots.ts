/** Takes the pictures of the examples in docs/images/examples/: part of `npm run screenshots`. */
import { runCommand } from '../commandLine';
import { prepare, readExample, saveCredential, saveModelCredential } from '../demo/examples';
import { outputItems, type WorkflowDefinition } from '../n8n/client';
import type { Editor } from './editor';
import { openEditor } from './openEditor';
import { save, saveCanvas, tidy } from './pictures';
import type { Stage } from './stage';

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

const SUSPENSION_TIMEOUT_MS = 60_000;

/** @returns the size of a window in which n8n shows the workflow at about `ZOOM` */
function windowFor({ nodes }: WorkflowDefinition): { width: number; height: number } {
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
async function saveForm(
	{ client, n8n }: Stage,
	{ page }: Editor,
	workflowId: string,
): Promise<void> {
	const executionId = await client.run(workflowId);
	await client.waitForSuspension(executionId, SUSPENSION_TIMEOUT_MS);
	const [message] = outputItems(await client.getExecution(executionId), 'Write the message');
	const { pathname, search } = new URL(String(message?.json.formUrl));
	await page.setViewportSize({ width: 720, height: 640 });
	await page.goto(new URL(pathname + search, n8n.url).href);
	await save('examples/approval-form', page.locator('.container').first());
}

async function main(names: string[]): Promise<void> {
	const { stage, editor } = await openEditor();
	try {
		const { client, service } = stage;
		const credentials = [
			await saveCredential(client, { baseUrl: service.url, apiKey: service.apiKey }),
			// Nobody is asked: the workflows are shown and not run.
			await saveModelCredential(client, 'http://127.0.0.1:9/v1'),
		];
		for (const name of names) {
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
	} finally {
		await editor.close();
		await stage.close();
	}
}

const chosen = process.argv.slice(2);
runCommand(async () => await main(chosen.length > 0 ? chosen : ON_PAGES));
