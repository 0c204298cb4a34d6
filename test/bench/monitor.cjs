/**
 * Loaded into n8n: a SIGUSR2 collects the garbage, and writes what is left of the memory and how long the main thread
 * was held up at most since the last one to the file that BENCH_MONITOR names.
 */
const { renameSync, writeFileSync } = require('node:fs');
const { monitorEventLoopDelay } = require('node:perf_hooks');
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();

process.on('SIGUSR2', () => {
	const blockedMs = delay.max / 1e6;
	collectGarbage();
	const { heapUsed, external } = process.memoryUsage();
	const path = process.env.BENCH_MONITOR;
	writeFileSync(`${path}.part`, JSON.stringify({ blockedMs, bytes: heapUsed + external }));
	// In one step, for whoever waits for it.
	renameSync(`${path}.part`, path);
	// The collection itself is no work of n8n's.
	setTimeout(() => delay.reset(), 100);
});
