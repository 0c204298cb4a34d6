const { TestEnvironment } = require('jest-environment-node');

/** By this message jest tells a worker that there is no more to do. */
const END = 2;

// n8n's timers of time limits go on after an answer, and jest gives a worker half a second to end by itself. On a machine
// that does much else even a worker without timers needs longer, and jest says that tests leak.
process.on('message', ([kind] = []) => {
	if (kind === END) process.exit(0);
});

module.exports = TestEnvironment;
