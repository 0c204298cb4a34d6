import { max, mean, median } from 'simple-statistics';

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
