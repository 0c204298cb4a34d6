import { spawn } from 'node:child_process';
import { join } from 'node:path';

import { service, useService } from './support';

useService({});

/** Runs the command line until it ends. */
function run(...options: string[]): Promise<{ code: number | null; errors: string }> {
	const main = join(__dirname, 'main.ts');
	const child = spawn(process.execPath, ['--import', 'tsx', main, ...options]);
	let errors = '';
	child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
	return new Promise((resolve) => child.on('close', (code) => resolve({ code, errors })));
}

describe('the command line', () => {
	it('says in one line which port is in use, and exits with 1', async () => {
		const { port } = new URL(service.url);
		const { code, errors } = await run('--port', port);
		expect([code, errors]).toEqual([
			1,
			expect.stringMatching(new RegExp(`^Port ${port} of .* in use.*\n`)),
		]);
	});

	it('refuses a port that is none', async () => {
		const { code, errors } = await run('--port', 'x');
		expect([code, errors]).toEqual([1, expect.stringContaining('--port takes a whole number')]);
	});
});
