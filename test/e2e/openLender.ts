import { rmSync } from 'node:fs';

import { makeUserFolder } from '../n8n/userFolder';
import { openKeptLender } from './keptLender';
import { Lender } from './lender';

/** Before all end-to-end tests. With `KEEP_N8N` set, n8n is lent by a process that outlives them. */
export default async function openLender(): Promise<void> {
	// What is done once on a machine takes minutes, which no test is to wait for.
	rmSync(await makeUserFolder(), { recursive: true });
	if (process.env.KEEP_N8N) await openKeptLender();
	else Object.assign(globalThis, { closeLender: await Lender.open() });
}
