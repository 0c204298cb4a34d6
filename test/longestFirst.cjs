const { existsSync, readFileSync } = require('node:fs');
const { join, relative } = require('node:path');
const { default: Sequencer } = require('@jest/test-sequencer');

/** Seconds that each file takes, where it takes more than a few. */
const SECONDS = join(__dirname, 'seconds.json');

/** What is not listed there. */
const FEW = 5;

/** Begins the test files that take longest first, so that no worker is left with a long one when the others are done. */
module.exports = class LongestFirst extends Sequencer {
	sort(tests) {
		const seconds = existsSync(SECONDS) ? JSON.parse(readFileSync(SECONDS, 'utf8')) : {};
		const of = ({ path }) => seconds[relative(__dirname, path).replaceAll('\\', '/')] ?? FEW;
		return [...tests].sort((one, other) => of(other) - of(one));
	}
};
