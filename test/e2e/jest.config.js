/** The packed tarball in a real n8n. Each file starts an n8n of its own, and mostly waits: two at once fit two cores. */
module.exports = {
	rootDir: '../..',
	testEnvironment: 'node',
	// Sockets that end after their test file still use globals that jest would take away.
	testEnvironmentOptions: { globalsCleanup: 'off' },
	roots: ['<rootDir>/test/e2e'],
	testMatch: ['**/*.test.ts'],
	transform: { '^.+\\.ts$': '@swc/jest' },
	maxWorkers: 2,
	testTimeout: 120_000,
};
