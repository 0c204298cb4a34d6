import { inspect } from 'node:util';
import fc from 'fast-check';

import { histories, type History, PLAIN } from './history';
import type { Violation } from './sentences/sentences';
import { simulate } from './simulate';
import type { NodeSources } from './world/nodeSources';

/** Small histories are no more worth than others: it is the faults that count. */
const ONE = { numRuns: 1, unbiased: true };

/** The history that a seed stands for. */
export function historyOf(seed: number): History {
	const [history] = fc.sample(histories, { ...ONE, seed });
	if (!history) throw new Error(`Seed ${seed} has no history`);
	return history;
}

/** What some histories came to. */
export interface Found {
	violations: Array<Violation & { seed: number }>;
	/** Of each history the faults that it had, and the exceptions that n8n makes unavoidable. */
	faults: string[];
	exceptions: string[];
}

/** Adds what others came to. */
export function add(found: Found, other: Found): void {
	found.violations.push(...other.violations);
	found.faults.push(...other.faults);
	found.exceptions.push(...other.exceptions);
}

/** Lets a number of histories happen, one for each seed. */
export async function search(from: number, count: number, sources?: NodeSources): Promise<Found> {
	const found: Found = { violations: [], faults: [], exceptions: [] };
	for (let seed = from; seed < from + count; seed++) {
		const { violations, ...outcome } = await simulate(historyOf(seed), sources);
		add(found, { ...outcome, violations: violations.map((each) => ({ ...each, seed })) });
	}
	return found;
}

/**
 * Lets the history of one seed happen again. Where it violates a sentence, it is made as short as it can be while it
 * violates the same.
 *
 * @param words of the sentence that is meant, if it violates several
 */
export async function replay(
	seed: number,
	sources?: NodeSources,
	words = '',
): Promise<{ isGreen: boolean; text: string }> {
	let history = historyOf(seed);
	let outcome = await simulate(history, sources);
	const violation = outcome.violations.find(({ sentence }) => sentence.includes(words));
	if (violation) {
		const property = fc.asyncProperty(histories, async (shorter) => {
			const again = await simulate(shorter, sources);
			if (!again.violations.some(({ sentence }) => sentence === violation.sentence)) return;
			[history, outcome] = [shorter, again];
			throw new Error(violation.sentence);
		});
		await fc.check(property, { ...ONE, seed });
	}
	const { violations, trace } = outcome;
	const lines = [
		`${violation ? 'The shortest history that goes wrong in the same way, b' : 'B'}eside PLAIN:`,
		inspect(unlike(structuredClone(history), PLAIN), { depth: null, breakLength: 120 }),
		'',
		...trace,
		'',
		...violations.map(
			({ sentence, user, what }) => `seed ${seed}: not so, for ${user}: ${sentence}: ${what}`,
		),
		...(violation ? [] : [`seed ${seed}: every sentence holds`]),
	];
	return { isGreen: violation === undefined, text: lines.join('\n') };
}

/** What of a history, or of a part of it, is not as in the plain one. */
function unlike(value: object, plain: object): object {
	const changed = Object.entries(value).filter(
		([name, each]) => JSON.stringify(each) !== JSON.stringify(plain[name as never]),
	);
	return Object.fromEntries(
		changed.map(([name, each]) =>
			typeof each === 'object' && !Array.isArray(each)
				? [name, unlike(each as object, plain[name as never])]
				: [name, each],
		),
	);
}
