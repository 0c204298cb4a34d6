/**
 * Rewrites the rows of one workflow in n8n's store of processed items.
 *
 * Usage: node remember.mjs <database file> <{ workflowId, nodeId, count } as JSON>
 */
import { createHash, randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';

const [, , path, values] = process.argv;
const { workflowId, nodeId, count } = JSON.parse(values);

const database = new DatabaseSync(path, { timeout: 30_000 });
const insert = database.prepare(
  "INSERT INTO processed_data (workflowId, context, createdAt, updatedAt, value) VALUES (?, ?, datetime('now'), datetime('now'), ?)",
);
database.exec('BEGIN IMMEDIATE');
database.prepare('DELETE FROM processed_data WHERE workflowId = ?').run(workflowId);
for (let index = 0; index < count; index++) {
  const taskId = randomUUID();
  const digest = createHash('sha256').update(taskId).digest('hex').slice(0, 32);
  const signatures = [0, 1, 2].map((question) => `${taskId} by execution 1, ${question}`);
  const data = [taskId, ...signatures].map((text) =>
    createHash('md5').update(text).digest('base64'),
  );
  insert.run(workflowId, `n:${nodeId}:${digest}`, JSON.stringify({ mode: 'entries', data }));
}
database.exec('COMMIT');
// As it is where the rows came one by one: written to the disk, and not left to the next who writes.
database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
database.close();
