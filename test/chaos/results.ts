import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';
import { max, mean, median } from 'simple-statistics';

import type { CampaignResult } from './campaign';
import type { PartName } from './options';

/** What several measurements of one thing gave. */
export interface Figures {
	mean: number;
	median: number;
	most: number;
}

/** @returns zeros where nothing was measured */
export const figures = (values: number[]): Figures =>
	values.length === 0
		? { mean: 0, median: 0, most: 0 }
		: { mean: mean(values), median: median(values), most: max(values) };

/** What each part came to, when, with which seed, and what whoever ran it has to say about it. */
export type Stored<T> = T & { seed?: number; on?: string; remark?: string };

export interface Results extends Partial<Record<PartName, unknown>> {
	silent?: Stored<CampaignResult>;
	kills?: Stored<CampaignResult>;
	held?: Stored<CampaignResult>;
	queue?: Stored<CampaignResult>;
	lost?: Stored<CampaignResult>;
	chaos?: Stored<CampaignResult>;
	/** What end-to-end tests have measured of the same thing; whoever ran them enters it. */
	tests?: Array<{ what: string; came: string; on: string }>;
}

const FILE = 'durable.json';

export function readResults(folder: string): Results {
	const path = join(folder, FILE);
	return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Results) : {};
}

export async function writeResults(folder: string, results: Results): Promise<void> {
	const text = await format(JSON.stringify(results, rounded), { parser: 'json', printWidth: 100 });
	writeFileSync(join(folder, FILE), text);
}

/** Four digits are more than any figure here is good for. */
function rounded(_key: string, value: unknown): unknown {
	return typeof value === 'number' && !Number.isInteger(value)
		? Number(value.toPrecision(4))
		: value;
}
