/**
 * Loaded into each process of n8n. A SIGUSR2 collects the garbage, and writes how many bytes are in use then, into the
 * folder that BENCH_MONITOR names, under the number of the process.
 */
const { renameSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

process.on('SIGUSR2', () => {
	collectGarbage();
	const { heapUsed, external } = process.memoryUsage();
	const path = join(process.env.BENCH_MONITOR, `${process.pid}.txt`);
	writeFileSync(`${path}.part`, String(heapUsed + external));
	// In one step, for whoever waits for the file.
	renameSync(`${path}.part`, path);
});
