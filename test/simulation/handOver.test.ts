import { HAND_OVER_TROUBLES, type History, PLAIN } from './history';
import { simulate } from './simulate';
import { NodeSources } from './world/nodeSources';

/** A run is handed over from the memory of its process to n8n's database: whatever happens in these moments, happens here. */

const sources = new NodeSources();

/** Three tasks, of which one has ended when the run is suspended. */
const HANDED_OVER: History = {
	...PLAIN,
	slowestQueryMs: 20,
	node: { ...PLAIN.node, suspendAfter: 0.1, items: 3 },
	service: { ...PLAIN.service, longestTaskMs: 20_000, sendsTwice: true },
};

const atOnce = (history: History): History => ({
	...history,
	node: { ...history.node, suspendAfter: 0 },
});

const upTo = (end: number, step: number) =>
	Array.from({ length: Math.ceil(end / step) }, (_, index) => index * step);

/** Lets histories happen. @returns what of the contract does not hold, and in how many of them the fault happened */
async function happen(histories: History[], fault: RegExp) {
	const violations: string[] = [];
	let count = 0;
	for (const history of histories) {
		const outcome = await simulate(history, sources);
		if (outcome.faults.some((each) => fault.test(each))) count++;
		const told = JSON.stringify(history.handOvers.concat(history.kills as never));
		violations.push(
			...outcome.violations.map(({ sentence, what }) => `${told}: not so: ${sentence}: ${what}`),
		);
	}
	return { violations, count };
}

describe.each(['one process', 'queue mode'] as const)('with n8n in %s', (n8n) => {
	describe.each([
		['at once', atOnce({ ...HANDED_OVER, n8n })],
		['after a while', { ...HANDED_OVER, n8n }],
	])('while a run is suspended (%s)', (_when, history) => {
		it.each(HAND_OVER_TROUBLES)(
			'%s may happen at any moment',
			async (what) => {
				const histories = upTo(120, 12).map((afterMs) => ({
					...history,
					salt: afterMs,
					handOvers: [{ afterMs, what }],
				}));
				const { violations, count } = await happen(histories, / while a run is suspended$/);
				expect(violations).toEqual([]);
				// In some histories all tasks end while the run is held.
				expect(count).toBeGreaterThanOrEqual(0.8 * histories.length);
			},
			120_000,
		);
	});

	it('n8n may be killed at any effect of a run, before its suspension, in it and after it', async () => {
		const histories = upTo(40, 1).map((afterEffects) => ({
			...HANDED_OVER,
			n8n,
			salt: afterEffects,
			kills: [0, 1, 2].map((process) => ({
				process,
				of: 'anything' as const,
				afterEffects,
				isSeen: afterEffects % 2 === 0,
				downMs: 1_000,
			})),
		}));
		const { violations, count } = await happen(histories, / killed$/);
		expect(violations).toEqual([]);
		expect(count).toBeGreaterThan(histories.length / 2);
	}, 240_000);
});
