import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import type { N8nProcess } from '../n8n/process';

/**
 * Has the trigger remember tasks, as if as many callbacks had come before: the rows that its ledger has n8n write,
 * one for each task.
 *
 * @param count of tasks, in place of those that are remembered
 */
export function remember(n8n: N8nProcess, workflowId: string, nodeId: string, count: number): void {
	sql(n8n, { workflowId, nodeId, count });
}

/** Forgets all tasks of a workflow's trigger. */
export function forget(n8n: N8nProcess, workflowId: string): void {
	sql(n8n, { workflowId, nodeId: '', count: 0 });
}

/** n8n's Node.js brings SQLite; ours may be too old for it. */
function sql(
	{ userFolder, install }: N8nProcess,
	values: { workflowId: string; nodeId: string; count: number },
): void {
	const database = join(userFolder, '.n8n', 'database.sqlite');
	const args = [join(__dirname, 'remember.mjs'), database, JSON.stringify(values)];
	execFileSync(install.nodeBinary, args, { stdio: ['ignore', 'ignore', 'inherit'] });
}
