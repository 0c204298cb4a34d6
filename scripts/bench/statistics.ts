const mean = (values: readonly number[]) =>
	values.reduce((sum, value) => sum + value, 0) / values.length;

/** @returns the value in the middle; NaN where there is none */
export function median(values: readonly number[]): number {
	const sorted = [...values].sort((one, other) => one - other);
	const middle = (sorted.length - 1) / 2;
	return mean(sorted.slice(Math.floor(middle), Math.ceil(middle) + 1));
}
