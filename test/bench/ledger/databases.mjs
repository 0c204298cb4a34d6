/** The two databases of n8n behind one face, with the statements that n8n itself sends (logged by n8n 2.41.1). */
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { DatabaseSync } from 'node:sqlite';

/** Clock ticks a second in /proc, the same on every Linux that Node.js runs on. */
const TICK_MS = 10;

/** n8n's SQLite module waits so long for another process's lock, and then the callback fails. */
const N8N_BUSY_MS = 1_000;

/** How old the oldest row is; the rows are spread evenly over the time since. */
const DAYS = 40;

const COLUMNS =
  '"ProcessedData"."updatedAt" AS "ProcessedData_updatedAt", "ProcessedData"."createdAt" AS "ProcessedData_createdAt", "ProcessedData"."context" AS "ProcessedData_context", "ProcessedData"."workflowId" AS "ProcessedData_workflowId"';
const FIND = (first, second) =>
  `SELECT ${COLUMNS}, "ProcessedData"."value" AS "ProcessedData_value" FROM "processed_data" "ProcessedData" WHERE (("ProcessedData"."workflowId" = ${first}) AND ("ProcessedData"."context" = ${second})) LIMIT 1`;

/** What the trigger has n8n write for a task. */
export function rowOf(nodeId, taskId) {
  const entry = (text) => createHash('md5').update(text).digest('base64');
  const digest = createHash('sha256').update(taskId).digest('hex').slice(0, 32);
  const signatures = [0, 1, 2].map((question) => `${taskId} by execution 1, ${question}`);
  const data = [taskId, ...signatures].map(entry);
  return { context: `n:${nodeId}:${digest}`, value: JSON.stringify({ mode: 'entries', data }) };
}

export async function connect({ engine, ...where }) {
  return engine === 'SQLite' ? new Sqlite(where) : await Postgres.connect(where);
}

class Sqlite {
  constructor({ file }) {
    this.database = new DatabaseSync(file, { timeout: N8N_BUSY_MS });
    this.database.exec('PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON');
    this.find = this.database.prepare(FIND('?', '?'));
    this.insert = this.database.prepare(
      `INSERT INTO "processed_data"("updatedAt", "createdAt", "context", "workflowId", "value") VALUES (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW'), STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW'), ?, ?, ?)`,
    );
    this.findAgain = this.database.prepare(
      `SELECT ${COLUMNS} FROM "processed_data" "ProcessedData" WHERE ("ProcessedData"."context" = ? AND "ProcessedData"."workflowId" = ?)`,
    );
  }

  /** CPU time of the database so far, ms: here that of this process. */
  cpuMs() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }

  async record(workflowId, { context, value }) {
    if (this.find.get(workflowId, context) !== undefined) return false;
    this.insert.run(context, workflowId, value);
    this.findAgain.get(context, workflowId);
    return true;
  }

  async run(sql) {
    return Number(this.database.prepare(sql).run().changes);
  }

  /** Writes the rows of so many tasks in place of all rows, the oldest first, as they would have come. */
  async fill(workflowId, nodeId, count) {
    const { value } = rowOf(nodeId, randomUUID());
    this.database.exec('DELETE FROM processed_data; VACUUM');
    // The whole index in memory, or each row would be a read of the disk; and nothing of it has to outlive a crash.
    this.database.exec(
      'PRAGMA cache_size = -2000000; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF',
    );
    this.database
      .prepare(
        `INSERT INTO processed_data (context, createdAt, updatedAt, workflowId, value)
         WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < ${count}),
           rows AS (SELECT datetime(unixepoch() - ${DAYS} * 86400 * (1 - i / ${count}.0), 'unixepoch') AS at FROM numbers)
         SELECT ? || lower(hex(randomblob(16))), at, at, ?, ? FROM rows`,
      )
      .run(`n:${nodeId}:`, workflowId, value);
    this.database.exec(
      'PRAGMA cache_size = -2000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL',
    );
  }

  async bytes() {
    const { bytes } = this.database
      .prepare(
        "SELECT sum(pgsize) AS bytes FROM dbstat WHERE aggregate = TRUE AND name IN ('processed_data', 'sqlite_autoindex_processed_data_1')",
      )
      .get();
    return bytes;
  }

  async close() {
    this.database.close();
  }
}

class Postgres {
  /** @param where.modules the file of n8n's installation from which `pg` is found */
  static async connect({ modules, name, host, port }) {
    const pg = createRequire(modules)('pg');
    const client = new pg.Client({ host, port, user: 'postgres', database: name });
    await client.connect();
    const { rows } = await client.query('select pg_backend_pid() as pid');
    return new Postgres(client, rows[0].pid);
  }

  constructor(client, pid) {
    this.client = client;
    this.pid = pid;
  }

  /** CPU time of the server's process for this connection so far, ms. */
  cpuMs() {
    const stat = readFileSync(`/proc/${this.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  }

  async record(workflowId, { context, value }) {
    const { rows } = await this.client.query(FIND('$1', '$2'), [workflowId, context]);
    if (rows.length > 0) return false;
    await this.client.query(
      'INSERT INTO "processed_data"("updatedAt", "createdAt", "context", "workflowId", "value") VALUES (DEFAULT, DEFAULT, $1, $2, $3) RETURNING "updatedAt", "createdAt"',
      [context, workflowId, value],
    );
    return true;
  }

  async run(sql) {
    const { rowCount } = await this.client.query(sql);
    return rowCount;
  }

  async fill(workflowId, nodeId, count) {
    const { value } = rowOf(nodeId, randomUUID());
    await this.client.query('TRUNCATE processed_data');
    await this.client.query(
      `INSERT INTO processed_data ("workflowId", context, "createdAt", "updatedAt", value)
       SELECT $1, $2 || md5(gen_random_uuid()::text), at, at, $3
       FROM (SELECT now() - interval '${DAYS} days' * (1 - i::float / ${count}) AS at FROM generate_series(1, ${count}) i) rows`,
      [workflowId, `n:${nodeId}:`, value],
    );
    await this.client.query('VACUUM ANALYZE processed_data');
  }

  async bytes() {
    const { rows } = await this.client.query(
      "SELECT pg_total_relation_size('processed_data')::float8 AS bytes",
    );
    return rows[0].bytes;
  }

  async close() {
    await this.client.end();
  }
}
