const { TestEnvironment } = require('jest-environment-node');

/** By this message jest tells a worker that there is no more to do. */
const END = 2;

// n8n's timers of time limits go on after an answer, so that a worker would not end by itself.
process.on('message', ([kind] = []) => {
	if (kind === END) process.exit(0);
});

module.exports = TestEnvironment;
