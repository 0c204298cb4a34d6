import { HAND_OVER_TROUBLES, type History, plainBut } from './history';
import { simulate } from './simulate';

/** A run is handed over from the memory of its process to n8n's database: whatever happens in these moments, happens here. */

/** Three tasks, of which one has ended when the run is suspended after a while. */
const handedOver = (n8n: History['n8n'], suspendAfter: number): History =>
	plainBut({
		n8n,
		slowestQueryMs: 20,
		node: { suspendAfter, items: 3 },
		service: { longestTaskMs: 20_000, sendsTwice: true },
	});

const upTo = (end: number, step: number) =>
	Array.from({ length: Math.ceil(end / step) }, (_, index) => index * step);

/** The contract holds in all of the histories, and the fault happens in such a part of them. */
async function expectGreen(histories: History[], fault: RegExp, part: number) {
	const told: unknown[] = [];
	let count = 0;
	for (const history of histories) {
		const { violations, faults } = await simulate(history);
		if (faults.some((each) => fault.test(each))) count++;
		told.push(...violations.map((violation) => ({ ...history, ...violation })));
	}
	expect(told).toEqual([]);
	expect(count).toBeGreaterThanOrEqual(part * histories.length);
}

describe.each(['one process', 'queue mode'] as const)('with n8n in %s', (n8n) => {
	it.each(
		HAND_OVER_TROUBLES.flatMap(
			(what) =>
				[
					[what, 'at once', 0],
					[what, 'after a while', 0.1],
				] as const,
		),
	)(
		'%s may happen at any moment while a run is suspended (%s)',
		async (what, _when, suspendAfter) => {
			const history = handedOver(n8n, suspendAfter);
			const histories = upTo(120, 12).map((afterMs) => ({
				...history,
				salt: afterMs,
				handOvers: [{ afterMs, what }],
			}));
			// In some histories all tasks end while the run is held.
			await expectGreen(histories, / while a run is suspended$/, 0.8);
		},
		120_000,
	);

	it('n8n may be killed at any effect of a run, before its suspension, in it and after it', async () => {
		const histories = upTo(40, 1).map((afterEffects) => ({
			...handedOver(n8n, 0.1),
			salt: afterEffects,
			kills: [0, 1, 2].map((process) => ({
				...({ process, of: 'anything', afterEffects } as const),
				...{ isSeen: afterEffects % 2 === 0, downMs: 1_000 },
			})),
		}));
		await expectGreen(histories, / killed$/, 0.5);
	}, 240_000);
});
