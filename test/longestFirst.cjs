const { relative } = require('node:path');
const { default: Sequencer } = require('@jest/test-sequencer');

/** Seconds that the files take which take longest. */
const SECONDS = require('./seconds.json');

/** Begins the test files that take longest first, so that no worker is left with a long one when the others are done. */
module.exports = class LongestFirst extends Sequencer {
	sort(tests) {
		const of = ({ path }) => SECONDS[relative(__dirname, path).replaceAll('\\', '/')] ?? 0;
		return [...tests].sort((one, other) => of(other) - of(one));
	}
};
