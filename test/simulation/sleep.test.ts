import { type History, plainBut } from './history';
import { simulate } from './simulate';
import { SLEEP_TROUBLES } from './troubles';

/** A run goes from the memory of its process to n8n's database, and back: whatever happens in these moments, happens here. */

/** Four tasks, of which some are created and have ended when the run goes to sleep. */
const asleep = (n8n: History['n8n'], suspendAfter: number): History =>
	plainBut({
		n8n,
		slowestQueryMs: 20,
		node: { suspendAfter, items: 4, timeoutSeconds: 120 },
		service: { taskSeconds: 13, isSpread: true, maxUnfinished: 2 },
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
		[...new Set(SLEEP_TROUBLES)].flatMap(
			(what) =>
				[
					[what, 'at once', 0],
					[what, 'after a while', 0.05],
				] as const,
		),
	)(
		'%s may happen at any moment while a run goes to sleep (%s)',
		async (what, _when, suspendAfter) => {
			const history = asleep(n8n, suspendAfter);
			const histories = upTo(120, 24).map((afterMs) => ({
				...history,
				salt: afterMs,
				sleeps: [{ afterMs, what }],
			}));
			await expectGreen(histories, / while a run goes to sleep$/, 0.8);
		},
	);

	it.each(['anything', 'later turns'] as const)(
		'n8n may be killed between any two steps of a run (%s), which is then retried',
		async (of) => {
			const histories = upTo(of === 'later turns' ? 60 : 40, 2).map((afterEffects) => ({
				...asleep(n8n, of === 'later turns' ? 0 : 0.05),
				salt: afterEffects,
				kills: [0, 1, 2].map((process) => ({
					...{ process, of, afterEffects },
					...{ isSeen: afterEffects % 4 === 0, downMs: 1_000 },
				})),
			}));
			await expectGreen(histories, / killed$/, 0.4);
		},
	);
});
