const { roots, forceExit, ...common } = require('../../jest.config');

// `npm run test:weekly`: what takes long, and what few users set n8n to.
const isWeekly = process.env.npm_lifecycle_event === 'test:weekly';

/** The packed tarball in a real n8n, of which each file starts its own. */
module.exports = {
	...common,
	rootDir: '../..',
	roots: ['<rootDir>/test/e2e'],
	testPathIgnorePatterns: [isWeekly ? '/e2e/[^/]*$' : '/e2e/weekly/'],
	testSequencer: '<rootDir>/test/e2e/sequencer.cjs',
	globalSetup: '<rootDir>/test/e2e/prepare.ts',
	// These tests wait a third of the time. On a slow machine more of them at once make n8n lose its database.
	maxWorkers: 3,
	// On such a machine a test takes three times as long.
	testTimeout: 300_000,
};
