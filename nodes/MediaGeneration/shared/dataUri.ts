/** Longer data URIs are cut in the output: the images of a batch would swell the data of the execution. */
const MAX_SHOWN_CHARACTERS = 4096;

/** How many characters of a long data URI are shown. */
const BEGINNING = 64;

/** Matches a data URI, and not a text whose first word is `Data:`. */
const DATA_URI = /^\s*data:([\w.+-]+\/|[;,])/i;

/** Deeper than any record; anything deeper is left as it is. */
const MAX_DEPTH = 32;

/** A copy with long data URIs cut, except in a field named `whole`: records repeat the images that were sent. */
export function cutDataUris<T>(value: T, whole?: string, depth = 0): T {
	if (typeof value === 'string') return cutDataUri(value) as T;
	if (depth >= MAX_DEPTH) return value;
	return mapEntries(value, (entry, name = '') =>
		name === whole ? entry : cutDataUris(entry, whole, depth + 1),
	) as T;
}

/** @returns the text, cut if it is a long data URI */
export function cutDataUri(text: string): string {
	if (text.length <= MAX_SHOWN_CHARACTERS || !DATA_URI.test(text)) return text;
	// The buffer makes a copy: a slice keeps the whole text in memory.
	const beginning = Buffer.from(text.slice(0, BEGINNING)).toString();
	return `${beginning}… (${text.length} characters)`;
}

/** Whether a text is a cut data URI: what an output shows of a file is not the file. */
export const isCutDataUri = (text: string): boolean =>
	DATA_URI.test(text) && /^[^…]{0,200}… \(.*\)$/s.test(text);

/** Whether a value contains such a text at any depth. */
export const hasText = (value: unknown, isSuch: (text: string) => boolean): boolean =>
	leavesIn(value).some((leaf) => typeof leaf === 'string' && isSuch(leaf));

/**
 * All values at any depth that are neither lists nor objects. An object with `toJSON` counts as one value.
 *
 * @param around the objects around the value: an object that contains itself is looked through once
 */
export const leavesIn = (value: unknown, around: readonly unknown[] = []): unknown[] => {
	if (!hasEntries(value)) return [value];
	if (around.includes(value)) return [];
	return Object.values(value).flatMap((entry) => leavesIn(entry, [...around, value]));
};

const hasEntries = (value: unknown): value is object =>
	typeof value === 'object' &&
	value !== null &&
	!('toJSON' in value && typeof value.toJSON === 'function');

/** A copy of a list or an object with each entry replaced. Other values, and objects with `toJSON`, stay as they are. */
export function mapEntries(
	value: unknown,
	replace: (entry: unknown, name?: string) => unknown,
): unknown {
	if (Array.isArray(value)) return value.map((entry) => replace(entry));
	if (!hasEntries(value)) return value;
	return Object.fromEntries(
		Object.entries(value).map(([name, entry]) => [name, replace(entry, name)]),
	);
}
