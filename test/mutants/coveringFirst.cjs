const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { default: Sequencer } = require('@jest/test-sequencer');

/** What the first run, in which nothing is changed, notes of each test file. */
const NOTES = join(__dirname, 'notes.json');

/**
 * Stryker names the tests that come through a changed place, and has jest look for them in all files, which takes longer
 * than the tests. This leaves out the files that have none of them, and begins with the quickest: the first test that
 * fails ends the run.
 */
module.exports = class CoveringFirst extends Sequencer {
	constructor(options) {
		super(options);
		this.pattern = options.globalConfig?.testNamePattern;
	}

	sort(tests) {
		if (!this.pattern || !existsSync(NOTES)) return super.sort(tests);
		const notes = JSON.parse(readFileSync(NOTES, 'utf8'));
		const named = new RegExp(this.pattern, 'i');
		return tests
			.filter(({ path }) => notes[path]?.names.some((name) => named.test(name)))
			.sort((one, other) => notes[one.path].ms - notes[other.path].ms);
	}

	cacheResults(tests, results) {
		super.cacheResults(tests, results);
		if (this.pattern) return;
		const notes = results.testResults.map(({ testFilePath, perfStats, testResults }) => [
			testFilePath,
			{ ms: perfStats.runtime, names: testResults.map(({ fullName }) => fullName) },
		]);
		writeFileSync(NOTES, JSON.stringify(Object.fromEntries(notes)));
	}
};
