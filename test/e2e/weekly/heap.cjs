/** Loaded into n8n: at SIGUSR2 it collects what nobody needs any more, and writes down how much memory is left in use. */
const { writeFileSync } = require('node:fs');
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

process.on('SIGUSR2', () => {
	collect();
	const { heapUsed, external } = process.memoryUsage();
	writeFileSync(`${process.env.N8N_USER_FOLDER}/heap`, String(heapUsed + external));
});
