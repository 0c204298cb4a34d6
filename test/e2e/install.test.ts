import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { IDataObject } from 'n8n-workflow';
import type { Locator, Page } from 'playwright-core';

import { demoFolder } from '../../scripts/start/editor';
import { cacheFolder } from '../n8n/cache';
import { freePort } from '../n8n/ports';
import { chooseN8nVersion } from '../n8n/version';
import { PUBLISHED, type Published, StandIn } from '../service/standIns';
import { choose, type Editor, inEditor, openEditorOf } from './editor';
import { openScene } from './scene';
import { Stage } from './stage';

/** What a newcomer does: installs the package by the README's commands, and makes the first pictures in the editor. */

const ROOT = resolve(__dirname, '../..');

/** The commands of a section of the README, as somebody would copy them. */
function commandsOf(section: string): string[] {
	const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
	const [, text = ''] = readme.split(new RegExp(`^## ${section}$`, 'm'));
	return [...(text.split(/^## /m)[0] ?? '').matchAll(/^```sh\n(.*?)^```/gms)].map(
		([, commands = '']) => commands,
	);
}

let folder: string;
/** What a newcomer has: the files of the repository, and nothing installed. */
let clone: string;
let home: string;
beforeAll(() => {
	folder = mkdtempSync(join(tmpdir(), 'media-generation-newcomer-'));
	clone = join(folder, 'clone');
	home = join(folder, 'home');
	mkdirSync(home);
	const files = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' });
	// What is deleted and not committed yet is listed as well.
	for (const file of files
		.trim()
		.split('\n')
		.filter((name) => existsSync(join(ROOT, name)))) {
		mkdirSync(dirname(join(clone, file)), { recursive: true });
		cpSync(join(ROOT, file), join(clone, file), { preserveTimestamps: true });
	}
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What was downloaded for this repository is not downloaded again: the registry is not what is tested. */
const npmCache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim();

/** Runs commands as a person would in a terminal with an empty home folder. */
function run(commands: string, cwd: string, env: NodeJS.ProcessEnv = {}): string {
	// Without what an outer `npm run` put there: it would win over the folder's own settings.
	const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'));
	return execFileSync('bash', ['-ec', commands], {
		cwd,
		env: { ...Object.fromEntries(inherited), HOME: home, npm_config_cache: npmCache, ...env },
		encoding: 'utf8',
		stdio: 'pipe',
	});
}

const MODEL = 'framevendor/between-two-frames';
const PROMPT = 'Waves "roll" in, slowly; the beam turns';
const STYLE = "a child's watercolour, \\ and “soft”";

/** What nobody types who writes no code. */
const CODE = /[{}[\]]/;

/** From the keyboard to the mouse. */
const HAND_MS = 1_000;

/** Types into a field, in place of what stands there, and leaves it. */
async function type(field: Locator, text: string): Promise<void> {
	if (CODE.test(text)) throw new Error(`Nobody is to type this: ${text}`);
	const page = field.page();
	await field.click();
	await page.keyboard.press('ControlOrMeta+A');
	await page.keyboard.type(text);
	await page.keyboard.press('Tab');
	// The editor takes a text over a moment after the last key, and shows nothing of it: nobody is faster than that.
	await page.waitForTimeout(HAND_MS);
}

async function drag(source: Locator, target: Locator): Promise<void> {
	const { mouse } = source.page();
	await target.scrollIntoViewIfNeeded();
	await source.hover();
	await mouse.down();
	const box = await target.boundingBox();
	if (!box) throw new Error('There is nothing to drop it on.');
	await mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 20 });
	// It drops what the editor has seen arrive.
	await target.hover();
	await mouse.up();
}

/** A picture of one pixel. */
const PICTURE = Buffer.from(
	'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
	'base64',
);

/** A file that nobody looks into. */
const frame = (name: string) => ({ name, mimeType: 'image/png', buffer: Buffer.from(name) });

const uriOf = (name: string) => `data:image/png;base64,${frame(name).buffer.toString('base64')}`;

describe("an n8n into which the README's commands have brought the package", () => {
	const scene = openScene({
		open: async () => {
			const [make = '', install = ''] = commandsOf('Installation');
			run(make, clone);
			const there = install.replaceAll('/path/to', clone);
			expect(there).not.toBe(install);
			run(there, folder);
			return await Stage.open({ userFolder: home });
		},
	});

	const { describe } = inEditor('The first pictures');

	describe('in the editor', () => {
		let editor: Editor;
		openEditorOf(scene, (opened) => (editor = opened));

		describe('the first picture with kie.ai, as the page on services says', () => {
			const KEY = 'key-of-this-account';
			/** What kie.ai's page of a model shows: the body of a whole order. */
			const EXAMPLE = {
				model: 'bytedance/seedream',
				callBackUrl: 'https://your-domain.com/api/callback',
				input: { prompt: 'A cat', image_size: 'square_hd', enable_safety_checker: true },
			};
			let standIn: StandIn;
			let url: string;
			const server = createServer((request, response) => {
				let text = '';
				request.on('data', (part: Buffer) => (text += part.toString()));
				request.on('end', () => {
					const { method = '', url: path = '', headers } = request;
					if (path === '/1.png') return void response.end(PICTURE);
					const body = text === '' ? undefined : (JSON.parse(text) as IDataObject);
					const reply = standIn.answer(method, path, headers, body);
					response.writeHead(reply.status, { 'content-type': 'application/json' });
					response.end(JSON.stringify(reply.body));
				});
			});
			beforeAll(async () => {
				await scene.deleteCredentials();
				await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
				url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
				const kie = PUBLISHED.find(({ service }) => service === 'kie') as Published;
				const { model } = EXAMPLE;
				const input = (prompt: string) => ({ image_size: 'portrait_4_3', prompt });
				const order = (prompt: string) => ({ model, input: input(prompt) });
				standIn = new StandIn({ ...kie, order }, KEY, { url: `${url}/1.png`, bytes: PICTURE });
			});
			afterAll(() => server.close());

			test('the service is chosen by its name, and the picture has the size that was chosen', async () => {
				await editor.add('Media Generation', 'Generate image');
				await editor.firstCredential();
				await editor.choose('service', 'kie.ai');
				await editor.fill('apiKey', KEY);
				await editor.dialog.getByText('Add Model').click();
				await editor.fill('id', EXAMPLE.model);
				await editor.fill('priceUsd', '0.03');
				await editor.fill('inputExample', JSON.stringify(EXAMPLE));
				// In the place of kie.ai, which this machine does not ask.
				await editor.fill('baseUrl', url);
				await editor.get('credential-save-button').click();
				await editor.dialog.waitFor({ state: 'hidden' });
				expect(standIn.asked.map(({ path }) => path)).toContain('/api/v1/chat/credit');

				await editor.chooseModel(EXAMPLE.model);
				await editor.fill('prompt', 'x');
				await editor.modelField('image_size').locator('input').first().fill('portrait_4_3');
				await editor.execute();
				await editor.showOutput('Binary');
				await editor.get('ndv-view-binary-data').first().waitFor();
				await editor.outputHas('1 task, about 0.03 USD');
				expect(standIn.unknown).toEqual([]);
				expect(standIn.ids).toHaveLength(1);
			}, 240_000);
		});

		describe('a workflow of an own, with mouse and keyboard, and not one brace', () => {
			beforeAll(async () => await scene.deleteCredentials());

			async function addForm() {
				await editor.search('form');
				await editor.entry('n8n Form').click();
				await editor.entry('On new n8n Form event').click();
				await type(editor.inputOf('formTitle'), 'A film between two frames');
				for (const [place, label] of ['Prompt', 'First frame', 'Last frame'].entries()) {
					await editor.panel.getByText('Add Form Element').click();
					await type(editor.inputOf('fieldLabel', place), label);
					if (label.endsWith('frame')) await editor.choose('fieldType', 'File', place);
				}
			}

			async function fillForm(form: Page) {
				await type(form.getByLabel('Prompt'), PROMPT);
				await form.getByLabel('First frame').setInputFiles(frame('first'));
				await form.getByLabel('Last frame').setInputFiles(frame('last'));
				await form.getByRole('button', { name: 'Submit' }).click();
				await form.getByText('Your response has been recorded').waitFor();
				await form.close();
			}

			async function addCredential() {
				await editor.firstCredential();
				await type(editor.inputOf('baseUrl'), scene.service.url);
				await type(editor.inputOf('apiKey'), scene.service.apiKey);
				await editor.dialog.getByText('Add Model').click();
				await type(editor.inputOf('id'), MODEL);
				await type(editor.inputOf('priceUsd'), '0.5');
				await editor.get('credential-save-button').click();
				await editor.dialog.waitFor({ state: 'hidden' });
			}

			async function addField(name: string, kind: string, value: string) {
				const fields = editor.get('assignment-collection-additionalFields');
				const place = await fields.getByTestId('assignment').count();
				await fields.getByText('Add Field').click();
				const row = fields.getByTestId('assignment').nth(place);
				await type(row.getByTestId('assignment-name').locator('input'), name);
				const typeEntry = editor.get(`action-${kind}`).locator('visible=true');
				await choose(row.getByTestId('assignment-type-select'), typeEntry);
				await type(row.getByTestId('assignment-value').locator('input, textarea').first(), value);
			}

			async function addFile(place: number, field: string, name: string) {
				await editor.get('fixed-collection-files').getByText('Add File').click();
				await type(editor.inputOf('inputField', place), field);
				await type(editor.inputOf('binaryPropertyName', place), name);
			}

			test('a workflow sends two frames, a seed and a style to a model that the node does not know', async () => {
				await addForm();
				const window = editor.page.waitForEvent('popup');
				await editor.execute();
				await fillForm(await window);
				// Of this panel the names of the files are read, which the form gives them.
				await editor.outputHas('First_frame');
				await editor.closePanel();

				await editor.add('Media Generation', 'Generate video', 'AI video');
				await addCredential();

				await editor.enterModel(MODEL);
				await editor.choose('imageSource', 'None');
				const input = editor.get('ndv-input-panel');
				await input.getByText('Schema', { exact: true }).click();
				await drag(input.getByText('Prompt', { exact: true }).first(), editor.parameter('prompt'));
				// What explains the expression lies over the fields below.
				await editor.panel.getByText('When Do the Items Go On', { exact: true }).click();
				await editor.addOption('Additional Fields');
				await addField('seed', 'number', '7');
				await addField('style', 'string', STYLE);
				await editor.addOption('Files');
				await addFile(0, 'first_frame', 'First_frame');
				await addFile(1, 'last_frame', 'Last_frame');
				await editor.addOption('Max Cost (USD)');
				await type(editor.inputOf('maxCostUsd'), '0.4');

				await editor.execute();
				await editor.outputHas('1 task would cost 0.5 USD, which is above the limit of 0.4 USD');
				expect(scene.tasks).toEqual([]);

				await type(editor.inputOf('maxCostUsd'), '1');
				await editor.execute();
				await editor.showOutput('Schema');
				await editor.outputHas('SUCCESS');
				await editor.outputHas('1 task, about 0.5 USD');
				const shown = await editor.output.innerText();

				const [task, ...others] = scene.tasks;
				expect(others).toEqual([]);
				expect(task?.record).toMatchObject({ model: MODEL, state: 'SUCCESS' });
				expect(task?.record.input).toEqual({
					prompt: PROMPT,
					first_frame: uriOf('first'),
					last_frame: uriOf('last'),
					seed: 7,
					style: STYLE,
				});
				expect(shown).toContain(task?.taskId);
				expect(shown).toContain(task?.record.resultUrls?.[0]);
			}, 240_000);
		});
	});
});

test("the README's npm start runs the example batch in a clone, and all of its tasks end as expected", async () => {
	const command = 'npm start';
	expect(readFileSync(join(ROOT, 'README.md'), 'utf8')).toContain(`\`${command}\` in a clone`);
	// n8n itself is not installed anew for it: that is `test/n8n`, which installs it for every other test.
	const cache = dirname(cacheFolder());
	const port = await freePort();
	const ports = `--port ${port} --service-port ${await freePort()}`;
	try {
		const output = run(`${command} -- --once ${ports}`, clone, { MEDIA_GENERATION_CACHE: cache });
		expect(output).toContain('As expected: 11 succeeded and 1 failed on purpose.');
	} finally {
		rmSync(demoFolder(chooseN8nVersion().version, port), { recursive: true, force: true });
	}
}, 900_000);
