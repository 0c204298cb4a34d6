/**
 * @param name of the option, for the message
 * @throws where the text is no whole number of at least 1
 */
export function wholeNumber(name: string, text: string): number {
	const value = Number(text);
	if (!Number.isInteger(value) || value < 1) {
		throw new Error(`--${name} takes a whole number from 1 on, not "${text}".`);
	}
	return value;
}

/**
 * @param text names of parts, with commas between
 * @throws where one of them is not known
 */
export function partsOf<T extends string>(known: readonly T[], text: string): T[] {
	return text.split(',').map((name) => {
		const found = known.find((each) => each === name.trim());
		if (found === undefined) {
			throw new Error(`There is no part "${name}". There are: ${known.join(', ')}.`);
		}
		return found;
	});
}
