/**
 * Runs n8n, and ends it together with the process that started it, however that one ended: the starter
 * holds the other end of the pipe on file descriptor 3, and the system closes it even after a SIGKILL.
 *
 * Usage: node run-n8n.cjs <n8n's command line script> <n8n's arguments …>
 */
const { Socket } = require('node:net');

const starter = new Socket({ fd: 3 });
starter.on('error', () => {});
starter.on('close', () => {
	// n8n leads a process group of its own (see process.ts); its task runner is in it.
	if (process.platform === 'win32') process.exit(1);
	process.kill(-process.pid, 'SIGKILL');
});
starter.resume();
starter.unref();

process.argv.splice(1, 1);
require(process.argv[1]);
