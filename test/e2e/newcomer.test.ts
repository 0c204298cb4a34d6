import { execFileSync } from 'node:child_process';
import {
	cpSync,
	mkdirSync,
	mkdtempSync,
	readFileSync,
	rmSync,
	symlinkSync,
	utimesSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

import { N8nClient } from '../n8n/client';
import { startN8n } from '../n8n/process';

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
beforeAll(() => {
	folder = mkdtempSync(join(tmpdir(), 'media-generation-newcomer-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the README's commands bring the package into an n8n that is there already", async () => {
	const [make = '', install = ''] = commandsOf('Install');
	const clone = join(folder, 'clone');
	const files = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' })
		.trim()
		.split('\n');
	for (const file of files) {
		mkdirSync(dirname(join(clone, file)), { recursive: true });
		cpSync(join(ROOT, file), join(clone, file));
	}
	// Instead of a minute's `npm ci`, which is not what this is about.
	symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'), 'junction');
	utimesSync(join(clone, 'package-lock.json'), 0, 0);

	const home = join(folder, 'home');
	mkdirSync(home);
	// Without what an outer `npm run` put there: it would win over the folder's own settings.
	const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'));
	const env = { ...Object.fromEntries(inherited), HOME: home };
	execFileSync('bash', ['-ec', make], { cwd: clone, env, stdio: 'pipe' });
	const there = install.replaceAll('/path/to', clone);
	expect(there).not.toBe(install);
	execFileSync('bash', ['-ec', there], { cwd: folder, env, stdio: 'pipe' });

	const n8n = await startN8n({ userFolder: home });
	try {
		const client = new N8nClient(n8n.url);
		await client.setUp();
		const types = (await client.nodeTypes()).map(({ name }) => name);
		expect(types).toEqual(
			expect.arrayContaining(
				['mediaGeneration', 'mediaGenerationTrigger', 'mediaGenerationCredits'].map(
					(name) => `n8n-nodes-media-generation.${name}`,
				),
			),
		);
	} finally {
		await n8n.stop();
	}
}, 600_000);
