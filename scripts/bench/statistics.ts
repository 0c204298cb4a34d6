export const mean = (values: readonly number[]) =>
	values.reduce((sum, value) => sum + value, 0) / values.length;

/** @returns the value in the middle; NaN where there is none */
export function median(values: readonly number[]): number {
	const sorted = [...values].sort((one, other) => one - other);
	const middle = (sorted.length - 1) / 2;
	return mean(sorted.slice(Math.floor(middle), Math.ceil(middle) + 1));
}

/** @returns by how much the values grow from each to the next: the slope of the line of least squares through them */
export function growth(values: readonly number[]): number {
	const [middle, average] = [(values.length - 1) / 2, mean(values)];
	const sum = (of: (value: number, index: number) => number) =>
		values.map(of).reduce((total, each) => total + each, 0);
	return (
		sum((value, index) => (index - middle) * (value - average)) /
		sum((_, index) => (index - middle) ** 2)
	);
}
