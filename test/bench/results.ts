import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, platform, totalmem } from 'node:os';
import { join } from 'node:path';
import { max, median, min } from 'simple-statistics';

import type { Section } from './options';

/** What several measurements of one thing gave. */
export interface Sample {
	median: number;
	least: number;
	most: number;
	count: number;
}

/** One line of the table. */
export interface Row {
	/** Unique, for the budget. */
	id: string;
	what: string;
	unit: string;
	ours: Sample;
	/** What others need for the same, measured side by side. */
	peer?: { name: string; sample: Sample };
	/** What nobody can do better. */
	limit?: { name: string; value: number };
}

/** The figures depend on it: only ratios are comparable between machines. */
export interface Machine {
	cores: number;
	memoryGiB: number;
	platform: string;
	node: string;
	n8n: string;
}

export interface Results {
	machine: Machine;
	/** When each part was measured, and how often each figure. */
	measured: Partial<Record<Section, { at: string; runs: number }>>;
	rows: Partial<Record<Section, Row[]>>;
	/** What the soak saw, minute by minute. */
	soak?: SoakMinute[];
}

/** One minute of the soak. */
export interface SoakMinute {
	/** Minutes since the start. */
	at: number;
	/** Median until a callback is answered, ms. */
	answerMs: number;
	ledgerRows: number;
	/**
	 * By process of n8n: the memory in use after the garbage has been collected, and what the process holds of the
	 * machine's memory.
	 */
	memory: Record<string, { usedMiB: number; residentMiB: number }>;
}

/**
 * @param values at least one, in the unit of the row
 * @throws where a value is no number: a figure that could not be taken must not look like one
 */
export function sampleOf(values: readonly number[]): Sample {
	const given = [...values];
	if (given.length === 0 || given.some((value) => !Number.isFinite(value))) {
		throw new Error(`Nothing was measured: ${given.join(', ') || 'no value'}.`);
	}
	return { median: median(given), least: min(given), most: max(given), count: given.length };
}

/**
 * Makes the rows of one part.
 *
 * @param part stands before each id
 * @param about what all rows are about, where they have that in common
 */
export const rowsOf =
	(part: string, about?: string) =>
	(
		id: string,
		what: string,
		unit: string,
		ours: number | readonly number[],
		more: Pick<Row, 'peer' | 'limit'> = {},
	): Row => ({
		id: `${part}-${id}`,
		what: about === undefined ? what : `${about}: ${what}`,
		unit,
		ours: sampleOf([ours].flat()),
		...more,
	});

/** What others need, for `rowsOf`. */
export const peerOf = (name: string, values: number | readonly number[]) => ({
	peer: { name, sample: sampleOf([values].flat()) },
});

/** What nobody can do better, for `rowsOf`. */
export const limitOf = (name: string, value: number) => ({ limit: { name, value } });

/**
 * Makes the rows of one part that compare ours with others.
 *
 * @param rowOf of the part
 * @param name of the others
 * @param ours what was measured, run by run
 */
export const rowsBeside =
	<T>(rowOf: ReturnType<typeof rowsOf>, ours: T[], name: string, others: T[]) =>
	(
		id: string,
		what: string,
		unit: string,
		figure: (measured: T) => number | number[],
		limit?: Pick<Row, 'limit'>,
	): Row =>
		rowOf(id, what, unit, ours.flatMap(figure), {
			...peerOf(name, others.flatMap(figure)),
			...limit,
		});

export function describeMachine(node: string, n8n: string): Machine {
	return {
		cores: cpus().length,
		memoryGiB: Math.round(totalmem() / 2 ** 30),
		platform: `${platform()} ${process.arch}`,
		node,
		n8n,
	};
}

const FILE = 'results.json';

/** @returns the stored results; undefined where there are none */
export function readResults(folder: string): Results | undefined {
	const path = join(folder, FILE);
	return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Results) : undefined;
}

/** Stores what has been measured so far, so that an interrupted run keeps its finished parts. */
export function writeResults(folder: string, results: Results): void {
	mkdirSync(folder, { recursive: true });
	writeFileSync(join(folder, FILE), `${JSON.stringify(results, rounded, 2)}\n`);
}

/** Six digits are more than any figure here is good for. */
function rounded(_key: string, value: unknown): unknown {
	return typeof value === 'number' ? Number(value.toPrecision(6)) : value;
}
