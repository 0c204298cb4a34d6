import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, platform, totalmem } from 'node:os';
import { join } from 'node:path';

/** What several measurements of one thing gave. */
export interface Sample {
	median: number;
	least: number;
	most: number;
	count: number;
}

/** One line of the table. */
export interface Row {
	what: string;
	unit: string;
	ours: Sample;
	/** What others need for the same, measured side by side. */
	peer?: { name: string; sample: Sample };
	/** What nobody can do better. */
	limit?: { name: string; value: number };
}

/** What was measured so far, by part. */
export interface Results {
	/** The figures depend on it: only ratios are comparable between machines. */
	machine?: { cores: number; memoryGiB: number; platform: string; node: string; n8n: string };
	/** When each part was measured, and how often each figure. */
	measured: Record<string, { at: string; runs: number }>;
	rows: Record<string, Row[]>;
}

/** @returns the value in the middle; NaN where there is none */
export function median(values: readonly number[]): number {
	const sorted = values.toSorted((one, other) => one - other);
	const [below = NaN, above = NaN] = [Math.floor, Math.ceil].map(
		(round) => sorted[round((sorted.length - 1) / 2)],
	);
	return (below + above) / 2;
}

/** @throws where a value is no number: a figure that could not be taken must not look like one */
function sampleOf(values: number[]): Sample {
	if (values.length === 0 || values.some((value) => !Number.isFinite(value))) {
		throw new Error(`Nothing was measured: ${values.join(', ') || 'no value'}.`);
	}
	return {
		median: median(values),
		least: Math.min(...values),
		most: Math.max(...values),
		count: values.length,
	};
}

/** Makes one line of the table of what was measured: at least one value, in the unit of the row. */
export function rowOf(
	what: string,
	unit: string,
	ours: number[],
	{ peer, limit }: { peer?: { name: string; values: number[] }; limit?: Row['limit'] } = {},
): Row {
	return {
		...{ what, unit, ours: sampleOf(ours) },
		...(peer && { peer: { name: peer.name, sample: sampleOf(peer.values) } }),
		...(limit && { limit }),
	};
}

export const describeMachine = (node: string, n8n: string): Results['machine'] => ({
	cores: cpus().length,
	memoryGiB: Math.round(totalmem() / 2 ** 30),
	platform: `${platform()} ${process.arch}`,
	node,
	n8n,
});

const FILE = 'results.json';

/** @returns the stored results */
export function readResults(folder: string): Results {
	const path = join(folder, FILE);
	if (!existsSync(path)) return { measured: {}, rows: {} };
	return JSON.parse(readFileSync(path, 'utf8')) as Results;
}

/** Stores what has been measured so far, so that an interrupted run keeps its finished parts. */
export function writeResults(folder: string, results: Results): void {
	mkdirSync(folder, { recursive: true });
	// More digits than any figure here is good for.
	const rounded = (_key: string, value: unknown) =>
		typeof value === 'number' ? Number(value.toPrecision(6)) : value;
	writeFileSync(join(folder, FILE), `${JSON.stringify(results, rounded, 2)}\n`);
}
