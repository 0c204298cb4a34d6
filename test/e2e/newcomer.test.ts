import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

import { demoFolder } from '../../scripts/start/editor';
import { cacheFolder } from '../n8n/cache';
import { N8nClient } from '../n8n/client';
import { freePort } from '../n8n/ports';
import { startN8n } from '../n8n/process';
import { isLikeN8n3, N8N_3, NO_RUNNER } from '../n8n/settings';
import { chooseN8nVersion } from '../n8n/version';

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
/** What a newcomer has: the files of the repository, and the dependencies that every command installs first. */
let clone: string;
let home: string;
beforeAll(() => {
	folder = mkdtempSync(join(tmpdir(), 'media-generation-newcomer-'));
	clone = join(folder, 'clone');
	home = join(folder, 'home');
	mkdirSync(home);
	const files = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' });
	for (const file of files.trim().split('\n')) {
		mkdirSync(dirname(join(clone, file)), { recursive: true });
		cpSync(join(ROOT, file), join(clone, file), { preserveTimestamps: true });
	}
	// Installing them takes a minute. `.ci/run` does so in a fresh clone, by the same command, before all tests.
	symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
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

test("the README's commands bring the package into an n8n that is there already", async () => {
	const [make = '', install = ''] = commandsOf('Install');
	run(make, clone);
	const there = install.replaceAll('/path/to', clone);
	expect(there).not.toBe(install);
	run(there, folder);

	const env = { ...NO_RUNNER, ...(isLikeN8n3() && N8N_3) };
	const n8n = await startN8n({ userFolder: home, env });
	try {
		const client = new N8nClient(n8n.url);
		await client.setUp();
		const types = (await client.nodeTypes()).map(({ name }) => name);
		for (const node of ['', 'Trigger', 'Credits']) {
			expect(types).toContain(`n8n-nodes-media-generation.mediaGeneration${node}`);
		}
	} finally {
		await n8n.stop();
	}
}, 900_000);

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
