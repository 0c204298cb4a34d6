const every = require('../../jest.config.js');

/** The tests of what the product does; the others look at the repository, of which there is only a copy here. */
module.exports = {
	...every,
	rootDir: '../..',
	roots: [`<rootDir>/test/${process.env.MUTANTS_TESTS ?? 'unit'}`],
	testPathIgnorePatterns: [
		'/node_modules/',
		'<rootDir>/test/unit/[^/]+\\.test\\.ts$',
		'<rootDir>/test/unit/(n8n|release)/',
	],
	setupFilesAfterEnv: [...every.setupFilesAfterEnv, '<rootDir>/test/mutants/loadProduct.cjs'],
	testSequencer: '<rootDir>/test/mutants/coveringFirst.cjs',
};
