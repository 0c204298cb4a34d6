import { resolve } from 'node:path';

import { historyOf, search } from './search';
import { simulate } from './simulate';
import { NodeSources } from './world/nodeSources';

const sources = new NodeSources(resolve(__dirname, '../..'));

describe('the simulation', () => {
	it('gives the same trace for a seed each time, byte for byte', async () => {
		for (let seed = 1; seed <= 5; seed++) {
			const first = await simulate(historyOf(seed), sources);
			const second = await simulate(historyOf(seed), sources);
			expect(second.trace.join('\n')).toBe(first.trace.join('\n'));
			expect(first.trace.length).toBeGreaterThan(5);
		}
	}, 60_000);

	it('finds every sentence of the contract to hold in the histories of 120 seeds', async () => {
		const { violations } = await search(21, 120, sources);
		expect(violations).toEqual([]);
	}, 180_000);
});
