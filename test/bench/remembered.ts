import { literal, querySqlite } from '../n8n/database';
import type { N8nProcess } from '../n8n/process';

/** As long as what the ledger has n8n write of a task and three questions. */
const VALUE = JSON.stringify({
	mode: 'entries',
	data: Array<string>(4).fill('1B2M2Y8AsgTpgAmY7PhCfg=='),
});

/**
 * Has the trigger remember tasks, as if as many callbacks had come before: the rows that its ledger has n8n write,
 * one for each task.
 *
 * @param count of tasks, in place of those that are remembered
 */
export async function remember(
	n8n: N8nProcess,
	workflowId: string,
	nodeId: string,
	count: number,
): Promise<void> {
	const [workflow, context, value] = [workflowId, `n:${nodeId}:`, VALUE].map(literal);
	await querySqlite(
		n8n,
		`DELETE FROM processed_data WHERE workflowId = ${workflow}`,
		`INSERT INTO processed_data (workflowId, context, createdAt, updatedAt, value)
		 WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < ${count})
		 SELECT ${workflow}, ${context} || lower(hex(randomblob(16))), datetime('now'), datetime('now'), ${value}
		 FROM numbers WHERE i <= ${count}`,
	);
	// As it is where the rows came one by one: written to the disk, and not left to the next who writes.
	await querySqlite(n8n, 'PRAGMA wal_checkpoint(TRUNCATE)');
}
