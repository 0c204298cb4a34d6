import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { MISTAKES } from './mistakes';
import { historyOf, replay, search } from './search';
import { sentences } from './sentences/sentences';
import { simulate } from './simulate';
import { ROOT } from './world/nodeSources';

const traceOf = async (seed: number) => (await simulate(historyOf(seed))).trace.join('\n');

describe('the simulation', () => {
	it('gives the same trace for a seed each time, byte for byte, whatever came before', async () => {
		const first = new Map<number, string>();
		for (let seed = 1; seed <= 2; seed++) first.set(seed, await traceOf(seed));
		for (let seed = 2; seed >= 1; seed--) expect(await traceOf(seed)).toBe(first.get(seed));
	});

	it.each([4, 33])('gives the same trace for seed %i in a process of its own', async (seed) => {
		await traceOf(seed + 1);
		const main = resolve(__dirname, 'main.ts');
		const { stdout } = await promisify(execFile)(
			process.execPath,
			['--import', 'tsx', main, '--seed', String(seed)],
			{ cwd: ROOT },
		);
		const { text, isGreen } = await replay(seed);
		expect(stdout).toBe(`${text}\n`);
		expect(isGreen).toBe(true);
	});

	it.each(MISTAKES)('can make its mistake: $what', ({ words, file, from }) => {
		const code = readFileSync(join(ROOT, 'nodes/MediaGeneration', file), 'utf8');
		expect(code.split(from)).toHaveLength(2);
		expect(Object.keys(sentences).filter((each) => each.startsWith(words))).toHaveLength(1);
	});

	it.each([21, 31, 41, 51, 61, 71])(
		'finds every sentence of the contract to hold in ten histories, from seed %d on',
		async (from) => {
			const { violations } = await search(from, 10);
			expect(violations).toEqual([]);
		},
	);
});
