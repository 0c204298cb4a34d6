import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { cacheFolder } from '../n8n/cache';
import { OWN_GROUP } from '../n8n/children';
import { chooseN8nVersion } from '../n8n/version';
import { greetLender, Lender, LENDER } from './lender';

/** So long nobody borrowed anything. */
const IDLE_MS = 60 * 60_000;

/** Where a kept lender says how it is reached. */
const place = () => join(cacheFolder(), `lender-${chooseN8nVersion().version}`);

/** Has the tests of this process borrow n8n from a process that goes on for an hour after its last use. */
export async function openKeptLender(): Promise<void> {
	if (await findKept()) return;
	spawn(process.execPath, ['--import', 'tsx', __filename], {
		cwd: resolve(__dirname, '../..'),
		stdio: 'ignore',
		...OWN_GROUP,
	}).unref();
	while (!(await findKept())) await sleep(100);
}

async function findKept(): Promise<boolean> {
	try {
		process.env[LENDER] = readFileSync(place(), 'utf8');
		await greetLender();
		return true;
	} catch {
		delete process.env[LENDER];
		return false;
	}
}

async function keep(): Promise<void> {
	const close = await Lender.open(() => timer.refresh());
	const timer = setTimeout(async () => {
		rmSync(place());
		await close();
	}, IDLE_MS);
	writeFileSync(place(), process.env[LENDER] ?? '');
}

if (require.main === module) void keep();
