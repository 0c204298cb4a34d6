/** @returns the number with its noun, e.g. `1 task` or `3 tasks` */
export const count = (number: number, noun: string): string =>
	`${number} ${noun}${number === 1 ? '' : 's'}`;
