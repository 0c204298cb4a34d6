const Sequencer = require('@jest/test-sequencer').default;

/** Files that wait long for n8n's minute: were they the last ones, the machine would wait with them. */
const FIRST = ['process', 'restart'];

/** A fresh clone knows no durations, and would begin with the largest files. */
module.exports = class extends Sequencer {
	sort(tests) {
		const isFirst = ({ path }) => FIRST.some((name) => path.endsWith(`/${name}.test.ts`));
		const sorted = super.sort(tests);
		return [...sorted.filter(isFirst), ...sorted.filter((test) => !isFirst(test))];
	}
};
