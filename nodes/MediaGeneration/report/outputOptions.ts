/** How finished tasks become output items: the same three options on the action node and on the trigger. */
export interface OutputOptions {
	/** Attach each result as binary data. */
	download: boolean;
	/** The first binary field; further results get `_1`, `_2`, … appended. */
	binaryField: string;
	/** One output item for each result URL. */
	split: boolean;
}

/** @param option reads one entry of the node's `options` collection */
export function readOutputOptions(option: (name: string) => unknown): OutputOptions {
	const field = option('outputBinaryField');
	return {
		download: option('downloadResults') === true,
		binaryField: typeof field === 'string' && field.trim() !== '' ? field.trim() : 'data',
		split: option('splitResults') === true,
	};
}
