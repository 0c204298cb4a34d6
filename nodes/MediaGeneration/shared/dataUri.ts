/** Longer data URIs are cut in the output: a batch of pictures would swell the execution's data by all of them. */
const MAX_SHOWN_CHARACTERS = 4096;

/** How much of a long one is shown. */
const BEGINNING = 64;

/** How a data URI begins, and no text whose first word is `Data:`. */
const DATA_URI = /^\s*data:([\w.+-]+\/|[;,])/i;

/** Deeper than any record; what is deeper still goes out as it is. */
const MAX_DEPTH = 32;

/**
 * A copy with long data URIs cut, wherever they stand: pictures that were sent along come back in the service's records.
 *
 * @param whole the name of a field that is left as it is
 */
export function cutDataUris<T>(value: T, whole?: string, depth = 0): T {
	if (typeof value === 'string') return cutDataUri(value) as T;
	if (depth >= MAX_DEPTH) return value;
	return mapEntries(value, (entry, name = '') =>
		name === whole ? entry : cutDataUris(entry, whole, depth + 1),
	) as T;
}

/** @returns the text as it is, unless it is a long data URI */
export function cutDataUri(text: string): string {
	if (text.length <= MAX_SHOWN_CHARACTERS || !DATA_URI.test(text)) return text;
	// By way of a buffer: a part of a text keeps the whole of it in memory.
	const beginning = Buffer.from(text.slice(0, BEGINNING)).toString();
	return `${beginning}… (${text.length} characters)`;
}

/** Whether a value has a data URI that was cut, however deep it stands: what an output shows of a file is not the file. */
export function hasCutDataUri(value: unknown): boolean {
	if (typeof value === 'string')
		return DATA_URI.test(value) && /^[^…]{0,200}… \(.*\)$/s.test(value);
	if (typeof value !== 'object' || value === null || writesItself(value)) return false;
	return Object.values(value).some(hasCutDataUri);
}

const writesItself = (value: object) => 'toJSON' in value && typeof value.toJSON === 'function';

/** A copy of a list or an object with each entry replaced. Anything else, and what says itself how it is written, stays. */
export function mapEntries(
	value: unknown,
	replace: (entry: unknown, name?: string) => unknown,
): unknown {
	if (Array.isArray(value)) return value.map((entry) => replace(entry));
	if (typeof value !== 'object' || value === null || writesItself(value)) return value;
	return Object.fromEntries(
		Object.entries(value).map(([name, entry]) => [name, replace(entry, name)]),
	);
}
