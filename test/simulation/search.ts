import fc from 'fast-check';

import { histories, type History } from './history';
import type { Violation } from './sentences';
import { settingOf } from './setting';
import { type Outcome, simulate } from './simulate';
import type { NodeSources } from './world/nodeSources';

/** Small histories are no more worth than others: it is the faults that count. */
const ONE = { numRuns: 1, unbiased: true };

/** The history that a seed stands for. */
export function historyOf(seed: number): History {
	const [history] = fc.sample(histories, { ...ONE, seed });
	if (!history) throw new Error(`Seed ${seed} has no history`);
	return history;
}

export interface Found {
	violations: Array<Violation & { seed: number }>;
	/** How many histories had which fault. */
	faults: Record<string, number>;
	/** How many histories had which exception that n8n makes unavoidable. */
	exceptions: Record<string, number>;
}

/** Adds one to the count of each name. */
export function count(names: readonly string[], counts: Record<string, number>): void {
	for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
}

/** Lets a number of histories happen, one for each seed. */
export async function search(
	from: number,
	histories: number,
	sources: NodeSources,
	isEnough: (found: Found) => boolean = () => false,
): Promise<Found> {
	const found: Found = { violations: [], faults: {}, exceptions: {} };
	for (let seed = from; seed < from + histories; seed++) {
		const { violations, faults, exceptions } = await simulate(historyOf(seed), sources);
		count(faults, found.faults);
		count(exceptions, found.exceptions);
		found.violations.push(...violations.map((violation) => ({ ...violation, seed })));
		if (isEnough(found)) break;
	}
	return found;
}

/**
 * Lets the history of one seed happen again. Where it violates a sentence, it is made as short as it can be while it
 * violates the same.
 */
export async function replay(
	seed: number,
	sources: NodeSources,
): Promise<{ isGreen: boolean; text: string }> {
	const first = await simulate(historyOf(seed), sources);
	const [violation] = first.violations;
	if (!violation) {
		return {
			isGreen: true,
			text: [
				...settingOf(historyOf(seed)),
				'',
				...first.trace,
				'',
				`seed ${seed}: every sentence holds`,
			].join('\n'),
		};
	}
	let shortest = { history: historyOf(seed), outcome: first };
	const property = fc.asyncProperty(histories, async (history) => {
		const outcome = await simulate(history, sources);
		if (!outcome.violations.some(({ sentence }) => sentence === violation.sentence)) return;
		shortest = { history, outcome };
		throw new Error(violation.sentence);
	});
	await fc.check(property, { ...ONE, seed });
	return { isGreen: false, text: describe(seed, shortest.history, shortest.outcome) };
}

function describe(seed: number, history: History, { trace, violations }: Outcome): string {
	return [
		'The shortest history that goes wrong in the same way:',
		'',
		...settingOf(history),
		'',
		...trace,
		'',
		`As data, for a test: ${JSON.stringify(history)}`,
		'',
		...violations.map(({ sentence, what }) => `seed ${seed}: not so: ${sentence}: ${what}`),
	].join('\n');
}
