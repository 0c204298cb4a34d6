/** The packed tarball in a real n8n. One file after the other: each starts an n8n of its own. */
module.exports = {
	rootDir: '../..',
	testEnvironment: 'node',
	// Sockets that end after their test file still use globals that jest would take away.
	testEnvironmentOptions: { globalsCleanup: 'off' },
	roots: ['<rootDir>/test/e2e'],
	testMatch: ['**/*.test.ts'],
	transform: { '^.+\\.ts$': '@swc/jest' },
	maxWorkers: 1,
	testTimeout: 120_000,
};
