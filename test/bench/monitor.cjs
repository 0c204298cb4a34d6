/**
 * Loaded into each process of n8n. A SIGUSR2 collects the garbage, and writes what is left of the memory and how long
 * the main thread was held up at most since the last one; a SIGWINCH writes a snapshot of the heap. Both go into the
 * folder that BENCH_MONITOR names, under the number of the process.
 */
const { renameSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { monitorEventLoopDelay } = require('node:perf_hooks');
const { setFlagsFromString, writeHeapSnapshot } = require('node:v8');
const { runInNewContext } = require('node:vm');

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();

/** In one step, for whoever waits for the file. */
function answer(ending, write) {
	const path = join(process.env.BENCH_MONITOR, `${process.pid}.${ending}`);
	write(`${path}.part`);
	renameSync(`${path}.part`, path);
}

process.on('SIGUSR2', () => {
	const blockedMs = delay.max / 1e6;
	collectGarbage();
	const { heapUsed, external } = process.memoryUsage();
	const state = JSON.stringify({ blockedMs, bytes: heapUsed + external });
	answer('json', (path) => writeFileSync(path, state));
	// The collection itself is no work of n8n's.
	setTimeout(() => delay.reset(), 100);
});

process.on('SIGWINCH', () => answer('heapsnapshot', writeHeapSnapshot));
