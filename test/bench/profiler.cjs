/**
 * Loaded into n8n: a SIGUSR2 starts the recording of where its CPU time goes, the next one ends it and writes it to
 * the file that BENCH_PROFILE names.
 */
const { renameSync, writeFileSync } = require('node:fs');
const { Session } = require('node:inspector');

let session;

process.on('SIGUSR2', () => {
	if (session === undefined) {
		session = new Session();
		session.connect();
		session.post('Profiler.enable');
		session.post('Profiler.start');
		return;
	}
	session.post('Profiler.stop', (_error, { profile }) => {
		const path = process.env.BENCH_PROFILE;
		writeFileSync(`${path}.part`, JSON.stringify(profile));
		// In one step, for whoever waits for it.
		renameSync(`${path}.part`, path);
	});
	session.disconnect();
	session = undefined;
});
