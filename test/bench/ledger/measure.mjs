/**
 * Measures n8n's store of processed items at one size after the other, on a database that n8n has set up and does not
 * use. Run with n8n's Node.js.
 *
 * Usage: node measure.mjs <{ database, workflowId, nodeId, sizes, statements: { atOnce, cleanUp } } as JSON>
 * Prints one line of JSON for each size.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

import { connect, rowOf } from './databases.mjs';

const CALLS = 2_000;

/** A callback comes so often while something else goes on. */
const EVERY_MS = 20;

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const late = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)];

/** Runs statements on a connection of their own, in a thread of their own: SQLite holds up its thread. */
async function otherSide() {
  const { database, work } = workerData;
  const connection = await connect(database);
  const startedAt = performance.now();
  if (work.undone) await connection.run('BEGIN');
  // Others come in between.
  while ((await connection.run(work.sql)) > 0 && work.repeated) await sleep(10);
  if (work.undone) await connection.run('ROLLBACK');
  parentPort.postMessage({ seconds: (performance.now() - startedAt) / 1000 });
  await connection.close();
}

async function main() {
  const { database, workflowId, nodeId, sizes, statements } = JSON.parse(process.argv[2]);
  const connection = await connect(database);
  const newRow = () => rowOf(nodeId, randomUUID());

  /** Callbacks while the other side works: the longest wait of one, and how many failed. */
  const callbacksDuring = async (work) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { database, work } });
    let result;
    let isOver = false;
    const ended = new Promise((resolve, reject) => {
      worker.once('message', (message) => (result = message));
      worker.once('error', reject);
      worker.once('exit', resolve);
    }).finally(() => (isOver = true));
    // It is awaited below, when the last callback has its answer.
    ended.catch(() => {});
    const waits = [];
    let failed = 0;
    while (result === undefined && !isOver) {
      const at = performance.now();
      try {
        await connection.record(workflowId, newRow());
      } catch {
        failed++;
      }
      waits.push(performance.now() - at);
      await sleep(EVERY_MS);
    }
    await ended;
    return { ...result, callbacks: waits.length, failed, longestWaitMs: Math.max(...waits) };
  };

  for (const size of sizes) {
    const fillAt = performance.now();
    await connection.fill(workflowId, nodeId, size);
    console.error(`${size} rows written in ${Math.round((performance.now() - fillAt) / 1000)} s`);
    const bytesEach = (await connection.bytes()) / size;

    const rows = Array.from({ length: CALLS }, newRow);
    const measureCalls = async () => {
      const cpu = connection.cpuMs();
      const times = [];
      for (const row of rows) {
        const at = performance.now();
        await connection.record(workflowId, row);
        times.push(performance.now() - at);
      }
      return {
        ms: median(times),
        lateMs: late(times),
        cpuMs: (connection.cpuMs() - cpu) / CALLS,
      };
    };
    const first = await measureCalls();
    const again = await measureCalls();

    const isSqlite = database.engine === 'SQLite';
    const atOnce = await callbacksDuring({ sql: statements.atOnce, undone: true });
    console.error(`${size}: clean-up at once took ${atOnce.seconds.toFixed(1)} s`);
    const cleanUp = await callbacksDuring({ sql: statements.cleanUp, repeated: isSqlite });
    console.error(`${size}: clean-up took ${cleanUp.seconds.toFixed(1)} s`);
    const vacuum = await callbacksDuring({ sql: isSqlite ? 'VACUUM' : 'VACUUM processed_data' });
    console.log(JSON.stringify({ size, bytesEach, first, again, atOnce, cleanUp, vacuum }));
  }
  await connection.close();
}

await (isMainThread ? main() : otherSide());
