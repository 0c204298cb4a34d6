// What n8n logs of refused requests and stopped nodes is what many tests are about.
process.env.N8N_LOG_LEVEL ??= 'silent';

/** Unit tests, whole workflows and the simulated service's own tests: all that needs no real n8n. */
module.exports = {
	testEnvironment: `${__dirname}/test/environment.cjs`,
	// Sockets that end after their test file still use globals that jest would take away.
	testEnvironmentOptions: { globalsCleanup: 'off' },
	roots: ['unit', 'workflow', 'service', 'simulation'].map((folder) => `<rootDir>/test/${folder}`),
	// By default jest leaves one processor idle, of two.
	maxWorkers: '100%',
	// No test takes a twentieth of that, but a machine that does much else makes it wait.
	testTimeout: 600_000,
	testMatch: ['**/*.test.ts'],
	setupFilesAfterEnv: ['<rootDir>/test/listLengths.cjs'],
	transform: {
		'^.+\\.[tj]s$': [
			'@swc/jest',
			{ jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'commonjs' } },
		],
	},
	// A machine that does much else takes its time to end a worker, too.
	workerGracefulExitTimeout: 60_000,
	// n8n's timers of time limits go on after the answer, and cannot be cut short.
	forceExit: true,
};
