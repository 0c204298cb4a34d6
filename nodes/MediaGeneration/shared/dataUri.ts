/** Longer data URIs are cut in the output: a batch of pictures would swell the execution's data by all of them. */
const MAX_SHOWN_CHARACTERS = 4096;
/** How much of a long one is shown. */
const BEGINNING = 64;

/** A value in which every long data URI is cut, however deep it stands. */
export function cutDataUris(value: unknown): unknown {
	return typeof value === 'string' ? cutDataUri(value) : mapEntries(value, cutDataUris);
}

/** @returns the text as it is, unless it is a long data URI */
export function cutDataUri(text: string): string {
	if (text.length <= MAX_SHOWN_CHARACTERS || !/^\s*data:/i.test(text)) return text;
	return `${text.slice(0, BEGINNING)}… (${text.length} characters)`;
}

/** Whether a value has a data URI that was cut, however deep it stands: what an output shows of a file is not the file. */
export function hasCutDataUri(value: unknown): boolean {
	if (typeof value === 'string') return /^data:[^…]{0,200}… \([^)]*\)$/.test(value);
	if (typeof value !== 'object' || value === null || 'toJSON' in value) return false;
	return Object.values(value).some(hasCutDataUri);
}

/** A copy of a list or an object with each entry replaced. Anything else, and what says itself how it is written, stays. */
export function mapEntries(value: unknown, replace: (entry: unknown) => unknown): unknown {
	if (Array.isArray(value)) return value.map((entry) => replace(entry));
	if (typeof value !== 'object' || value === null || 'toJSON' in value) return value;
	return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, replace(entry)]));
}
