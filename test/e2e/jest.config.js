/** The packed tarball in a real n8n, which is lent to one file after the other unless it needs another environment. */
module.exports = {
	rootDir: '../..',
	testEnvironment: 'node',
	// Sockets that end after their test file still use globals that jest would take away.
	testEnvironmentOptions: { globalsCleanup: 'off' },
	roots: ['<rootDir>/test/e2e'],
	globalSetup: '<rootDir>/test/e2e/openLender.ts',
	globalTeardown: '<rootDir>/test/e2e/closeLender.ts',
	testSequencer: '<rootDir>/test/longestFirst.cjs',
	testMatch: ['**/*.test.ts'],
	transform: { '^.+\\.ts$': '@swc/jest' },
	// A third of the time these tests wait.
	maxWorkers: 5,
	testTimeout: 120_000,
};
