import { rmSync } from 'node:fs';

import { makeUserFolder } from '../n8n/userFolder';

/** Before all end-to-end tests: what is done once on a machine takes minutes, which no test is to wait for. */
export default async function prepare(): Promise<void> {
	rmSync(await makeUserFolder(), { recursive: true });
}
